-- The fair lock of Redisson (Java): the hash of redisson.lua, a list of those who wait, and a sorted set of when each of them
-- is given up. The last waiter is given up so much later than the one before it; a waiter that leaves takes that off the time of
-- all behind it, but leaves each at least the time that it had itself. The first in the list, and nobody else, may take a lock
-- that is free; whoever lets go tells it so, on a channel of its own. Beside it a sorted set of ours says until when our waiters
-- are known to live: a dead one leaves as soon as a program of ours comes by, and not when those minutes are over.
--
--   KEYS[1]  the lock    KEYS[2]  the list    KEYS[3]  when each is given up    KEYS[4]  our waiters
--   ARGV     verb owner milliseconds channel, milliseconds that a place lasts (0: does not wait); "until …"
--
-- Answers as redisson.lua. A time is one of the server, in milliseconds.

local verb, owner, ms, channel, place = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local patience = 300000  -- Redisson's own, unless it was configured

@late.lua@
@redisson_hash.lua@
for i, wanted in ipairs({'list', 'zset', 'zset'}) do
  local found = redis.call('TYPE', KEYS[i + 1]).ok
  if found ~= 'none' and found ~= wanted then return {3, 'a queue that is a ' .. found, 0} end
end
local now = math.floor(now_us / 1000)

-- After a long wait all are near their ends, which then only their renewals put off: the whole patience would end them.
local function leave(who)
  local had = tonumber(redis.call('ZSCORE', KEYS[3], who) or 0)
  local behind = false
  for _, other in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do
    if behind then
      local ends = tonumber(redis.call('ZSCORE', KEYS[3], other) or 0)
      redis.call('ZADD', KEYS[3], math.max(ends - patience, math.min(ends, had)), other)
    end
    behind = behind or other == who
  end
  redis.call('LREM', KEYS[2], 0, who)
  redis.call('ZREM', KEYS[3], who)
  redis.call('ZREM', KEYS[4], who)
end

-- 1. The holder.
local mine = kind ~= 'none' and redis.call('HEXISTS', KEYS[1], owner) == 1
if verb == 'extend' and not mine then return {2, '', 0} end
if mine and verb ~= 'remove' then
  -- An earlier attempt may arrive late, when the lease has been extended.
  if verb == 'extend' or redis.call('PTTL', KEYS[1]) < tonumber(ms) then redis.call('PEXPIRE', KEYS[1], ms) end
  return {0, '', 0}
end
if mine then
  redis.call('DEL', KEYS[1])
  kind = 'none'
end

-- What is given up at no time of this world would keep all behind it out.
local latest = verb == 'add' and redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')[2]
if latest and tonumber(latest) > 1000000000000000 then return {3, 'a queue with a time that is ' .. latest, 0} end

-- 2. Those who died: ours by the mark that they no longer renew, the others at the head of the list by its time.
for _, who in ipairs(redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', now)) do
  if who ~= owner then leave(who) end
end
if verb == 'remove' and not mine then leave(owner) end
local first = redis.call('LINDEX', KEYS[2], 0)
while first and first ~= owner do
  local ends = redis.call('ZSCORE', KEYS[3], first)
  if ends and tonumber(ends) > now then break end
  redis.call('LPOP', KEYS[2])
  redis.call('ZREM', KEYS[3], first)
  first = redis.call('LINDEX', KEYS[2], 0)
end

-- 3. It is free: for any caller if nobody waits, else for the first waiter.
if verb == 'add' and kind == 'none' and (not first or first == owner) then
  if first then leave(owner) end
  redis.call('HINCRBY', KEYS[1], owner, 1)
  redis.call('PEXPIRE', KEYS[1], ms)
  return {0, '', 0}
end

-- 4. A waiter is queued for as long as it is known to live.
if verb == 'add' and place > 0 then
  local given_up = redis.call('ZSCORE', KEYS[3], owner)
  if not given_up then
    local last = redis.call('LINDEX', KEYS[2], -1)
    local before = last and tonumber(redis.call('ZSCORE', KEYS[3], last)) or
                   now + math.min(redis.call('PTTL', KEYS[1]), 1000000000000)
    redis.call('RPUSH', KEYS[2], owner)
    redis.call('ZADD', KEYS[3], math.max(before, now) + patience, owner)
    first = first or owner
  elseif tonumber(given_up) < now + place then
    redis.call('ZADD', KEYS[3], now + place, owner)
  end
  redis.call('ZADD', KEYS[4], now + place, owner)
  redis.call('PEXPIRE', KEYS[4], patience * 2)
elseif verb == 'add' then
  leave(owner)
  first = redis.call('LINDEX', KEYS[2], 0)
end

-- 5. The first is told that it may come.
local told = 0
if kind == 'none' and first and first ~= owner then told = redis.call('PUBLISH', channel .. ':' .. first, '0') end
if verb == 'remove' then return {mine and 0 or 2, '', told} end
if kind == 'none' then return {1, shown(first or ''), 0} end
return {1, shown(redis.call('HKEYS', KEYS[1])[1]), redis.call('PTTL', KEYS[1])}
