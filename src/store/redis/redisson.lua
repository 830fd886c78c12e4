-- The reentrant lock of Redisson (Java): a hash, owner → how often it has entered, with a time to
-- live. A release is announced on the lock's channel. The fenced lock also counts its acquisitions.
--
--   KEYS[1]  the lock    KEYS[2]  of a fenced lock: the token of the last acquisition
--   ARGV     verb owner milliseconds channel "until …"
--
-- Answers {state, owner or a description of the key, milliseconds left}. State: 0 done, 1 taken, 2
-- empty, 3 not of this layout. When done, the second value is the token of a fenced lock. After a
-- release, the third value is the number of subscribers that received the announcement.

local verb, owner, ms, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

@late.lua@
@redisson_hash.lua@
@whole.lua@
if kind ~= 'none' then
  if verb == 'look' or redis.call('HEXISTS', KEYS[1], owner) == 0 then
    return {1, shown(redis.call('HKEYS', KEYS[1])[1]), redis.call('PTTL', KEYS[1])}
  end
elseif verb ~= 'add' then
  return {2, '', 0}
end

if verb == 'remove' then
  redis.call('DEL', KEYS[1])
  return {0, '', redis.call('PUBLISH', channel, '0')}
else
  local token = KEYS[2] and (redis.pcall('GET', KEYS[2]) or '0') or ''
  if KEYS[2] and (whole(token) or -1) < 0 then
    return {3, 'a token that is ' .. (type(token) == 'string' and shown(token) or 'none'), 0}
  end
  if kind == 'none' then
    if KEYS[2] then token = tostring(redis.call('INCR', KEYS[2])) end
    redis.call('HINCRBY', KEYS[1], owner, 1)
  elseif verb == 'add' and redis.call('PTTL', KEYS[1]) >= tonumber(ms) then
    -- An earlier attempt that arrives late, after the lease was extended.
    return {0, token, 0}
  end
  redis.call('PEXPIRE', KEYS[1], ms)
  return {0, token, 0}
end
