-- The rate limiter of Redisson (Java). A hash says how many permits may pass in how many
-- milliseconds. A sorted set has each request that was let through, with its time. A number says
-- how many permits are available if none of those requests ends. A waiting request counts at the
-- time when it may go through: earlier requests of others find that many permits fewer.
--
--   KEYS[1]  the rule        KEYS[2]  the number
--   KEYS[3]  the requests    KEYS[4]  this refund was counted
--   ARGV     verb, 16 bytes of the owner, how many, rate, interval, milliseconds ahead, the time
--            when the refunded request was to go through or "", "until …"
--
-- Answers {state, a description of the key or how many are free, milliseconds until there are so
-- many, … until all are free, when they go through}. State: 0 taken or done, 1 refused, 3 not of
-- this layout, 4 another rate (in place of the description). Times are the server's, in
-- milliseconds.

local verb, id, count = ARGV[1], ARGV[2], tonumber(ARGV[3])
local rate, interval, ahead, due = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]

@late.lua@
@whole.lua@
local at_no_time = 1000000000000000

-- 1. Checks the keys. The first user of the limiter sets the rate.
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
  local allows = shown(made[1]) .. ' in ' .. shown(made[2]) .. ' ms'
  if not (whole(made[1]) and whole(made[2])) then return {3, 'a limiter of ' .. allows, 0, 0, 0} end
  if made[4] and not whole(made[4]) then return {3, 'a limiter that is kept for ' .. shown(made[4]) .. ' ms', 0, 0, 0} end
  if whole(made[1]) ~= rate or whole(made[2]) ~= interval then return {4, allows, 0, 0, 0} end
end
local now = math.floor(now_us / 1000)
local strange = nil
local function permits_of(request)
  if #request ~= 5 + (string.byte(request) or 0) then
    strange = 'a limiter beside a request that is none'
    return 0
  end
  local _, permits = struct.unpack('Bc0I', request)
  return permits
end
local latest = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')[2]
if latest and tonumber(latest) > at_no_time then strange = 'a limiter beside a request of the time ' .. latest end

-- 2. Requests that ended longer than the interval ago are free again. The script counts the number
-- again if it cannot be right.
local number = redis.call('GET', KEYS[2])
if number and not whole(number) then return {3, 'a limiter beside the number ' .. shown(number), 0, 0, 0} end
local free = number and whole(number) or rate
local ended = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now - interval)
for _, request in ipairs(ended) do free = free + permits_of(request) end
if free > rate then
  free = rate
  for _, request in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. now - interval, '+inf')) do
    free = free - permits_of(request)
  end
end

-- Returns the time when `wanted` permits are free, as earlier requests end.
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

-- 3. Reads everything that it counts with before it writes anything; for a refund, which changes
-- the requests, those too.
local refunds = verb == 'refund' and kind ~= 'none' and redis.call('EXISTS', KEYS[4]) == 0
for _, request in ipairs(refunds and redis.call('ZRANGE', KEYS[3], 0, -1) or {}) do permits_of(request) end
local at = when(count)
if strange then return {3, strange, 0, 0, 0} end

if verb == 'take' and kind == 'none' then
  redis.call('HSET', KEYS[1], 'rate', ARGV[4], 'interval', ARGV[5], 'type', '0', 'keepAliveTime', '0')
end
if verb ~= 'inspect' and #ended > 0 then
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now - interval)
  redis.call('SET', KEYS[2], free)
end

-- 4. Refunds the requests of the given time, or the oldest. Permits that have come back by
-- themselves are in no request any more.
local function less(request, ends, by)
  redis.call('ZREM', KEYS[3], request)
  local permits, name = permits_of(request), string.sub(request, 2, 1 + string.byte(request))
  if permits > by then redis.call('ZADD', KEYS[3], ends, struct.pack('Bc0I', #name, name, permits - by)) end
  free = free + math.min(permits, by)
  return by - math.min(permits, by)
end
if refunds then
  redis.call('SET', KEYS[4], 1, 'PX', 60000)
  local first, last = due == '' and '-inf' or due, due == '' and '+inf' or due
  local left, all = count, redis.call('ZRANGEBYSCORE', KEYS[3], first, last, 'WITHSCORES')
  for i = 1, #all, 2 do
    if left > 0 then left = less(all[i], all[i + 1], left) end
  end
  redis.call('SET', KEYS[2], free)
  at = when(count)
end

-- 5. Takes permits. A repeated request has gone through already, or will.
local before = verb == 'take' and redis.call('ZSCORE', KEYS[3], struct.pack('Bc0I', #id, id, count))
if before then at = math.max(tonumber(before), now) end
local taken = verb == 'take' and (before or at - now <= ahead)
if taken and not before then
  free = free - count
  redis.call('ZADD', KEYS[3], at, struct.pack('Bc0I', #id, id, count))
  redis.call('SET', KEYS[2], free)
end
if verb ~= 'inspect' then
  local lasts = whole(made[4]) or 0
  if lasts <= 0 then lasts = math.min(redis.call('PTTL', KEYS[1]), at_no_time) end
  for i = 1, 3 do
    if lasts > 0 then redis.call('PEXPIRE', KEYS[i], lasts) end
  end
end
local last = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')[2]
return {(taken or verb ~= 'take') and 0 or 1, tostring(math.max(free, 0)), at - now,
        last and math.max(last + interval - now, 0) or 0, before and tonumber(before) or at}
