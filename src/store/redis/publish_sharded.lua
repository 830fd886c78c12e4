-- What a cluster has in the place of publish.lua. The sessions that wait for a name listen at the node that has its slot,
-- which this one is: no message has to go over the bus of the cluster then. Nobody listens here: one of an older holdfast,
-- one whose connection for this is not there (yet, or any more), a server before 7.0, a user without the right.
local before, tag = match(KEYS[1], '^(.-):({.*)$')
local heard = redis.pcall('SPUBLISH', before .. ':inbox:' .. tag .. ':' .. to, said)
if type(heard) == 'table' or heard == 0 then call('PUBLISH', before .. ':inbox:' .. to, said) end
