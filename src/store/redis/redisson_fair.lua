-- The fair lock of Redisson (Java): the hash of redisson.lua, a list of waiters, and a sorted set
-- of the times when each waiter is given up. The last waiter's time is later than that of the
-- waiter before it by a fixed patience. When a waiter leaves, the times of all waiters behind it
-- become earlier by as much, but not earlier than the time of the waiter that leaves. Only the
-- first in the list may take a free lock; a release notifies it on a channel of its own. An
-- additional sorted set of holdfast's tells until when holdfast's waiters are known to live. So the
-- next holdfast program that asks for the lock removes a dead waiter, without waiting for those
-- minutes to pass.
--
--   KEYS[1]  the lock                        KEYS[2]  the list
--   KEYS[3]  when each waiter is given up    KEYS[4]  holdfast's waiters
--   ARGV     verb owner milliseconds channel, milliseconds that a queue entry lasts (0: does not
--            wait); "until …"
--
-- Answers as redisson.lua does. Times are the server's, in milliseconds.

local verb, owner, ms, channel, place = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local patience = 300000  -- Redisson's default; it may be configured otherwise

@late.lua@
@redisson_hash.lua@
for i, wanted in ipairs({'list', 'zset', 'zset'}) do
  local found = redis.call('TYPE', KEYS[i + 1]).ok
  if found ~= 'none' and found ~= wanted then return {3, 'a queue that is a ' .. found, 0} end
end
local now = math.floor(now_us / 1000)

-- After a long wait all times are near their ends, and only the renewals extend them: taking off
-- the whole patience would end them.
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
  -- An earlier attempt may arrive late, after the lease was extended.
  if verb == 'extend' or redis.call('PTTL', KEYS[1]) < tonumber(ms) then redis.call('PEXPIRE', KEYS[1], ms) end
  return {0, '', 0}
end
if mine then
  redis.call('DEL', KEYS[1])
  kind = 'none'
end

-- A waiter with an impossibly late time would block all waiters behind it.
local latest = verb == 'add' and redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')[2]
if latest and tonumber(latest) > 1000000000000000 then return {3, 'a queue with a time that is ' .. latest, 0} end

-- 2. Dead waiters: holdfast's by the mark that they no longer renew, the others, at the head of the
-- list, by their times.
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

-- 3. The lock is free: for any caller if the list is empty, otherwise for the first waiter.
if verb == 'add' and kind == 'none' and (not first or first == owner) then
  if first then leave(owner) end
  redis.call('HINCRBY', KEYS[1], owner, 1)
  redis.call('PEXPIRE', KEYS[1], ms)
  return {0, '', 0}
end

-- 4. A waiter stays queued for as long as it is known to live.
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

-- 5. The first waiter is notified that it may take the lock.
local told = 0
if kind == 'none' and first and first ~= owner then told = redis.call('PUBLISH', channel .. ':' .. first, '0') end
if verb == 'remove' then return {mine and 0 or 2, '', told} end
if kind == 'none' then return {1, shown(first or ''), 0} end
return {1, shown(redis.call('HKEYS', KEYS[1])[1]), redis.call('PTTL', KEYS[1])}
