-- Both semaphores of Redisson (Java): a number of free permits. A release publishes on the channel
-- how many are free. RSemaphore has nothing else. RPermitExpirableSemaphore has a sorted set of the
-- permits in use, by their ids, with the time when each ends. Beside an RSemaphore, two keys of
-- holdfast's remember how many permits each of its holders has, and until when. So the permits of a
-- dead holdfast holder come back, and a repeated step counts once. These keys last for a year
-- longer: nothing else records those permits, which are missing until a holdfast program uses the
-- semaphore.
--
--   KEYS[1]  how many are free             KEYS[2]  RPermitExpirableSemaphore: the permits in use
--   KEYS[3]  ends of holdfast's holders
--   KEYS[4]  their permits; "held": the sum; "capacity": as they give it
--   KEYS[5]  the mark of a latch
--   ARGV     verb owner, the same in 16 bytes, weight capacity milliseconds channel, "1" for a
--            permit that expires; "until …"
--
-- Answers {state, a description of the key, milliseconds until some may be free}. State: 0 done, 1
-- too few are free, 2 that owner has none, 3 not of this layout, 4 another capacity (in place of
-- the description). look returns {1, how many are free, 0} and for each known holder: its id,
-- permits, milliseconds left, the capacity. Times are the server's.

local verb, owner, id = ARGV[1], ARGV[2], ARGV[3]
local weight, capacity, ms, channel, expires = tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6]), ARGV[7], ARGV[8] == '1'

@late.lua@
@whole.lua@
local year, at_no_time = 31536000000, 1000000000000000

-- 1. Checks the keys.
local kind, free = redis.call('TYPE', KEYS[1]).ok, nil
if kind ~= 'none' then
  if kind ~= 'string' then return {3, 'a ' .. kind, 0} end
  local text = redis.call('GET', KEYS[1])
  free = whole(text)
  if not free then return {3, shown(text), 0} end
end
for i, wanted in ipairs({'zset', 'zset', 'hash'}) do
  local found = redis.call('TYPE', KEYS[i + 1]).ok
  if found ~= 'none' and found ~= wanted then return {3, 'a number beside a ' .. found, 0} end
end
if redis.call('EXISTS', KEYS[5]) == 1 then return {3, 'a latch', 0} end
local now = math.floor(now_us / 1000)

-- Reads what holdfast's holders have, before anything is written. If another program removed the
-- number, all of that is void.
local has, held, all_have, ended_of_ours = {}, 0, false, {}
if free then
  local strange = nil
  local function read(field)
    local text = redis.call('HGET', KEYS[4], field)
    local number = not text and 0 or whole(text) or -1
    if number < 0 then strange = shown(field) .. ' ' .. shown(text) end
    return number
  end
  held, all_have = read('held'), read('capacity') > 0 and redis.call('HGET', KEYS[4], 'capacity')
  ended_of_ours = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now)
  has[owner] = read(owner)
  for _, who in ipairs(ended_of_ours) do has[who] = read(who) end
  local sum = 0
  for _, number in pairs(has) do sum = sum + number end
  if sum > held then strange = 'held ' .. held end
  for _, who in ipairs(verb == 'look' and redis.call('ZRANGE', KEYS[3], 0, -1) or {}) do has[who] = read(who) end
  local latest = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')[2]
  if latest and tonumber(latest) > at_no_time then strange = 'until ' .. latest end
  if strange then return {3, 'a number beside holders of ours that are damaged: ' .. strange, 0} end
else
  redis.call('DEL', KEYS[3], KEYS[4])
end

local function give_back(who)
  redis.call('ZREM', KEYS[3], who)
  redis.call('HDEL', KEYS[4], who)
  held = redis.call('HINCRBY', KEYS[4], 'held', 0 - has[who])
  if held == 0 then
    redis.call('DEL', KEYS[4])
    all_have = false
  end
  return has[who]
end
local function remember_ours()
  for i = 3, 4 do
    if redis.call('PTTL', KEYS[i]) < ms + year then redis.call('PEXPIRE', KEYS[i], ms + year + year / 12) end
  end
end
local function are_free(count)
  free = redis.call('INCRBY', KEYS[1], count)
  if free > 0 then return redis.call('PUBLISH', channel, free) end
  return 0
end

-- 2. Expired permits come back.
local ended = redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
for _, who in ipairs(ended_of_ours) do ended = ended + give_back(who) end
if free and ended > 0 then are_free(ended) end
local ours = redis.call('ZSCORE', KEYS[3], owner)
local permit = id  -- older versions wrote its id as text
if not redis.call('ZSCORE', KEYS[2], id) then permit = redis.call('ZSCORE', KEYS[2], owner) and owner end

if verb == 'look' then
  local in_use, of_ours = redis.call('ZCARD', KEYS[2]), redis.call('ZCARD', KEYS[3])
  if not free or in_use + of_ours == 0 and capacity == '0' then return {2, '', 0} end
  local answer = {1, free, 0}
  local function add(who, permits, ends, of)
    for _, word in ipairs({shown(who), permits, math.min(ends - now, at_no_time), of}) do table.insert(answer, word) end
  end
  local all = redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')
  for i = 1, #all, 2 do add(all[i], 1, all[i + 1], free + in_use) end
  all = redis.call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES')
  for i = 1, #all, 2 do add(all[i], has[all[i]], all[i + 1], tonumber(all_have or 0)) end
  return answer
end

-- 3. The caller holds permits.
if verb == 'remove' then
  if not ours and not permit then return {2, '', 0} end
  if permit then redis.call('ZREM', KEYS[2], permit) end
  return {0, '', are_free(permit and 1 or give_back(owner))}
end
if ours or permit then
  local ends = now + ms
  -- An earlier attempt may arrive late, after the lease was extended.
  local known = verb == 'add' and (ours or redis.call('ZSCORE', KEYS[2], permit))
  if known then ends = math.max(ends, math.min(tonumber(known), at_no_time)) end
  redis.call('ZADD', ours and KEYS[3] or KEYS[2], ends, ours and owner or permit)
  if ours then remember_ours() end
  return {0, '', 0}
end
if verb == 'extend' then return {2, '', 0} end

-- 4. Checks the kind and the size. Nothing records what the holders of an RSemaphore have that are
-- not holdfast's.
local in_use = redis.call('ZCARD', KEYS[2])
if expires and held > 0 then return {3, 'an RSemaphore', 0} end
if not expires and in_use > 0 then return {3, 'an RPermitExpirableSemaphore', 0} end
if not free then
  free = capacity - in_use
  redis.call('SET', KEYS[1], free)
  redis.call('PUBLISH', channel, free)
end
local total, of = free + held + in_use, all_have or capacity
if of ~= capacity then return {4, of, 0} end
if total > tonumber(of) or expires and total < tonumber(of) then return {4, tostring(total), 0} end

-- 5. Takes all permits, or none.
if free < weight then
  local next = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2] or redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2]
  return {1, '', next and math.min(next - now, at_no_time) or 0}
end
redis.call('DECRBY', KEYS[1], weight)
if expires then
  redis.call('ZADD', KEYS[2], now + ms, id)
  local left = redis.call('PTTL', KEYS[1])
  if left > 0 then redis.call('PEXPIRE', KEYS[2], math.min(left, at_no_time)) end
else
  redis.call('ZADD', KEYS[3], now + ms, owner)
  redis.call('HSET', KEYS[4], owner, weight, 'capacity', capacity)
  redis.call('HINCRBY', KEYS[4], 'held', weight)
  remember_ours()
end
return {0, '', 0}
