-- A part of permits.lua and countdown.lua: sends a message to a session. Its channel reaches the
-- session at any server.
call('PUBLISH', match(KEYS[1], '^(.-):{') .. ':inbox:' .. to, said)
