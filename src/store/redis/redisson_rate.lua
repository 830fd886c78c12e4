-- The rate limiter of Redisson (Java): a hash says how many permits go through in how many milliseconds. A sorted set has each
-- request that was let through, with its time; a number, how many permits could be had if none of those ended. A request that
-- waits is counted at the time when it may go through: those of others that come before find that many fewer.
--
--   KEYS[1]  what is allowed    KEYS[2]  the number    KEYS[3]  the requests    KEYS[4]  this refund was counted
--   ARGV     verb, 16 bytes of the owner, how many, rate, interval, milliseconds ahead, when what is given back was to go through,
--            or "", "until …"
--
-- Answers {state, what is there or how many are free, milliseconds until there are so many, … until all are, when they go
-- through}: 0 taken or done, 1 refused, 3 none of this layout, 4 another rate (in place of what is there). Times are the
-- server's, in milliseconds.

local verb, id, count = ARGV[1], ARGV[2], tonumber(ARGV[3])
local rate, interval, ahead, due = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]

@late.lua@
-- 1. What is there. Whoever uses it first says what is allowed.
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'none' and kind ~= 'hash' then return {3, 'a ' .. kind, 0, 0, 0} end
for i, wanted in ipairs({'string', 'zset'}) do
  local found = redis.call('TYPE', KEYS[i + 1]).ok
  if found ~= 'none' and found ~= wanted then return {3, 'a limiter beside a ' .. found, 0, 0, 0} end
end
local made = redis.call('HMGET', KEYS[1], 'rate', 'interval', 'type', 'keepAliveTime')
if kind == 'hash' then
  if not (made[1] and made[2] and made[3]) then return {3, 'a hash that is no limiter', 0, 0, 0} end
  if made[3] ~= '0' then return {3, 'a limiter that counts each client by itself', 0, 0, 0} end
  if tonumber(made[1]) ~= rate or tonumber(made[2]) ~= interval then return {4, made[1] .. ' in ' .. made[2] .. ' ms', 0, 0, 0} end
elseif verb == 'take' then
  redis.call('HSET', KEYS[1], 'rate', ARGV[4], 'interval', ARGV[5], 'type', '0', 'keepAliveTime', '0')
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function permits_of(request)
  local _, permits = struct.unpack('Bc0I', request)
  return permits
end

-- 2. What ended longer than the interval ago is free again. The number is counted anew if it cannot be true.
local free = tonumber(redis.call('GET', KEYS[2]) or rate)
local ended = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now - interval)
for _, request in ipairs(ended) do free = free + permits_of(request) end
if free > rate then
  free = rate
  for _, request in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. now - interval, '+inf')) do
    free = free - permits_of(request)
  end
end
if verb ~= 'inspect' and #ended > 0 then
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now - interval)
  redis.call('SET', KEYS[2], free)
end

-- 3. Back: what went through then, or the oldest. What has come back by itself is in no request any more.
local function less(request, ends, by)
  redis.call('ZREM', KEYS[3], request)
  local _, permits = struct.unpack('Bc0I', request)
  local name = string.sub(request, 2, 1 + string.byte(request))
  if permits > by then redis.call('ZADD', KEYS[3], ends, struct.pack('Bc0I', #name, name, permits - by)) end
  free = free + math.min(permits, by)
  return by - math.min(permits, by)
end
if verb == 'refund' and kind ~= 'none' and redis.call('SET', KEYS[4], 1, 'NX', 'PX', 60000) then
  local first, last = due == '' and '-inf' or due, due == '' and '+inf' or due
  local left, all = count, redis.call('ZRANGEBYSCORE', KEYS[3], first, last, 'WITHSCORES')
  for i = 1, #all, 2 do
    if left > 0 then left = less(all[i], all[i + 1], left) end
  end
  redis.call('SET', KEYS[2], free)
end

-- 4. When there are so many, and when there are all: as those end that were let through.
local function when(wanted)
  local have, at, from = free, now, 0
  while have < wanted do
    local some = redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. now - interval, '+inf', 'WITHSCORES', 'LIMIT', from, 64)
    if #some == 0 then return at end
    for i = 1, #some, 2 do
      if have < wanted then have, at = have + permits_of(some[i]), some[i + 1] + interval end
    end
    from = from + 64
  end
  return math.max(at, now)
end
-- One that is repeated has gone through, or will.
local before = verb == 'take' and redis.call('ZSCORE', KEYS[3], struct.pack('Bc0I', #id, id, count))
local at = before and math.max(tonumber(before), now) or when(count)
local taken = verb == 'take' and (before or at - now <= ahead)
if taken and not before then
  free = free - count
  redis.call('ZADD', KEYS[3], at, struct.pack('Bc0I', #id, id, count))
  redis.call('SET', KEYS[2], free)
end
if verb ~= 'inspect' then
  local lasts = tonumber(made[4] or 0) > 0 and tonumber(made[4]) or redis.call('PTTL', KEYS[1])
  for i = 1, 3 do
    if lasts > 0 then redis.call('PEXPIRE', KEYS[i], lasts) end
  end
end
local last = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')[2]
return {(taken or verb ~= 'take') and 0 or 1, tostring(math.max(free, 0)), at - now,
        last and math.max(last + interval - now, 0) or 0, before and tonumber(before) or at}
