-- A part of permits.lua and countdown.lua: says something to a session, whose channel reaches it at whatever server it is.
call('PUBLISH', match(KEYS[1], '^(.-):{') .. ':inbox:' .. to, said)
