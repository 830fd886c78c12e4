-- Replaces publish.lua in a cluster. The sessions that wait for a name subscribe at the node that
-- serves its slot, which is this one, so no message has to cross the cluster bus. SPUBLISH reaches
-- no subscriber in these cases: a session of an older holdfast, a session whose sharded connection
-- is not there (not yet, or not any more), a server before 7.0, a user without the right.
local before, tag = match(KEYS[1], '^(.-):({.*)$')
local heard = redis.pcall('SPUBLISH', before .. ':inbox:' .. tag .. ':' .. to, said)
if type(heard) == 'table' or heard == 0 then call('PUBLISH', before .. ':inbox:' .. to, said) end
