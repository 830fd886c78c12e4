-- May it go through now? Token buckets, several decided on together. The twin of
-- src/kernel/rate.cpp: the same numbered steps in the same order; tests/store/redis/twin_test.cpp
-- holds them equal.
--
--   KEYS[1] refunds  sorted set of those of the last minute, by when they are forgotten
--   KEYS[2] record   "hf1 rate_limiter 1 until": the name is in use until then
--   KEYS[3…] buckets "version unit/gain/step/capacity used at", each gone when it is full
--
-- ARGV: verb tokens ahead version owner time (tests only, else empty) | unit/gain/step/capacity for
-- each bucket. All numbers are whole, and none is greater than 2^53.

local call, match, format, floor = redis.call, string.match, string.format, math.floor
local max, min, tonumber = math.max, math.min, tonumber

local REMEMBER, SLACK, MOST_UNITS = 60000000, 1000000, 4503599627370496
local GRANTED, REFUSED, TOO_MANY, DONE, KIND_MISMATCH, CAPACITY_MISMATCH = 0, 1, 2, 3, 4, 5

local verb, tokens, version = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[4])
local count = #KEYS - 2

local now = tonumber(ARGV[6])
local on_server_time = not now
if on_server_time then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end

local function rounded_up(units, of) return floor((units + of - 1) / of) end

-- How long until the bucket can do without so many units more.
local function wait_for(b, units)
  local over = b.used + units - b.capacity
  if over <= 0 then return 0 end
  return b.at + rounded_up(over, b.gain) * b.step - now
end

local function set_rule(b, v, rule)
  local unit, gain, step, capacity = match(rule, '^(%d+)/(%d+)/(%d+)/(%d+)$')
  b.version, b.rule = v, rule
  b.unit, b.gain, b.step, b.capacity = tonumber(unit), tonumber(gain), tonumber(step), tonumber(capacity)
end

-- ---- the record ---------------------------------------------------------------------------------

local reply = {DONE, now, 0, 0}
local texts = call('MGET', unpack(KEYS, 2))
local record = texts[1]
local known_until = 0
if record then
  local last = match(record, '^hf1 rate_limiter 1 (%d+)$')
  if last then
    known_until = tonumber(last)
  else
    local kind, capacity = match(record, '^hf1 (%l[%l_]*) (%d+) ')
    if not kind then
      if match(record, '^hf%d+ ') then return redis.error_reply('HOLDFAST_NEWER written by a newer holdfast') end
      return redis.error_reply('HOLDFAST_FOREIGN not written by holdfast')
    end
    if capacity ~= '0' then
      reply[1], reply[5] = KIND_MISMATCH, kind
      return reply
    end
  end
end

-- Steps 1 and 2 for one bucket. False if another rule of the same version is in force.
local function look_up(b, text, rule)
  local v, old, used, at
  if text then v, old, used, at = match(text, '^(%d+) (%S+) (%d+) (%d+)$') end
  if v then
    v, used, at = tonumber(v), tonumber(used), min(tonumber(at), now)
    set_rule(b, v, old)
    local steps = floor((now - at) / b.step)
    if steps < rounded_up(used, b.gain) then
      b.used, b.at = used - steps * b.gain, at + steps * b.step
      if v == version then return old == rule end
      if v < version then  -- what was used stays used, in whole tokens
        local whole = rounded_up(b.used, b.unit)
        set_rule(b, version, rule)
        b.went_over = true
        b.used, b.at = min(whole, floor(b.capacity / b.unit)) * b.unit, now
      end
      return true
    end
  end
  set_rule(b, version, rule)
  b.used, b.at = 0, now
  return true
end

local function describe(b, at, wait)
  reply[at], reply[at + 1] = floor(b.capacity / b.unit), floor(max(b.capacity - b.used, 0) / b.unit)
  reply[at + 2], reply[at + 3] = wait, wait_for(b, b.capacity)
end

-- A refund may be of more than a bucket holds by now.
local function units_of(b) return min(tokens, floor(b.capacity / b.unit)) * b.unit end

-- ---- the steps ----------------------------------------------------------------------------------

local buckets, fits, wait, went_over = {}, true, 0, false
for i = 1, count do
  local b = {}
  buckets[i] = b
  reply[4] = i - 1
  -- 1. What has come back is there again. 2. The greatest version of a rule is in force.
  if not look_up(b, texts[i + 1], ARGV[i + 6]) then
    return {CAPACITY_MISMATCH, now, wait, i - 1}
  end
  -- 3. What can never be had is not waited for.
  if verb == 'take' and tokens > floor(b.capacity / b.unit) then
    return {TOO_MANY, now, wait, i - 1}
  end
  local units = units_of(b)
  fits = fits and b.used <= MOST_UNITS - units
  went_over = went_over or b.went_over
  b.wait = wait_for(b, units)
  wait = max(wait, b.wait)
end
reply[3], reply[4] = wait, 0

-- 4. All give, or none.
local changed = verb == 'refund' or went_over and verb == 'take'
if verb == 'take' then
  reply[1] = (fits and wait <= tonumber(ARGV[3])) and GRANTED or REFUSED
  if reply[1] == GRANTED then
    changed = true
    for i = 1, count do buckets[i].used = buckets[i].used + units_of(buckets[i]) end
  end
elseif verb == 'refund' then
  call('ZREMRANGEBYSCORE', KEYS[1], '-inf', format('%.0f', now))
  local again = call('ZSCORE', KEYS[1], ARGV[5])
  if not again then call('ZADD', KEYS[1], format('%.0f', now + REMEMBER), ARGV[5]) end
  if on_server_time then call('PEXPIRE', KEYS[1], format('%.0f', REMEMBER / 1000)) end
  for i = 1, count do
    local b = buckets[i]
    if not again then b.used = b.used - min(b.used, units_of(b)) end
    b.wait = 0
  end
  reply[3] = 0
end
for i = 1, count do describe(buckets[i], 4 * i + 1, buckets[i].wait) end
if not changed then return reply end

-- 5. What is full need not be kept. First the record, which says that the name is in use: for a while
-- longer, so that not each decision has to say so.
local longest = 0
for i = 1, count do longest = max(longest, reply[4 * i + 4]) end
if longest > 0 and now + longest > known_until then
  local text = format('hf1 rate_limiter 1 %.0f', now + longest + SLACK)
  local where = record and 'XX' or 'NX'
  local life = format('%.0f', floor((longest + SLACK) / 1000) + 1)
  local written
  if on_server_time then
    written = call('SET', KEYS[2], text, where, 'PX', life)
  else
    written = call('SET', KEYS[2], text, where)
  end
  if not written then  -- MGET does not see other types
    return redis.error_reply('HOLDFAST_FOREIGN not written by holdfast')
  end
end
for i = 1, count do
  local b, full = buckets[i], reply[4 * i + 4]
  local text = full > 0 and format('%d %s %.0f %.0f', b.version, b.rule, b.used, b.at)
  if not text then
    if texts[i + 1] then call('DEL', KEYS[i + 2]) end
  elseif on_server_time then
    call('SET', KEYS[i + 2], text, 'PX', format('%.0f', floor(full / 1000) + 1))
  else
    call('SET', KEYS[i + 2], text)
  end
end
return reply
