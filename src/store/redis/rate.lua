-- Decides whether a request may go through now, by several token buckets together. The twin of
-- src/kernel/rate.cpp: the same numbered steps in the same order; tests/store/redis/twin_test.cpp
-- checks that they are equal. Uses no functions and no text, which cost more here than the
-- arithmetic.
--
--   KEYS[1] refunds  sorted set of the refunds of the last minute, by the time when they are
--                    forgotten
--   KEYS[2] record   "hf1 rate_limiter 1 until": the name is in use until then; or "hf1 after T
--                    rate_limiter …"
--   KEYS[3…] buckets "<ddddddd" version used at unit gain step capacity, each removed when
--                    it is full; "<dddddddd" has one more field, reserved_until
--
-- ARGV: verb tokens ahead version | "<dddd" unit gain step capacity for each bucket, or "<ddddd"
-- with due_at | owner | time (tests only). All numbers are whole and none is greater than 2^53: a
-- double holds them.

local call, floor, sub, read, write = redis.call, math.floor, string.sub, struct.unpack, struct.pack

local REMEMBER, SLACK, MOST_UNITS = @remember_us@, 1000000, 4503599627370496
local @rate_outcome@

local verb, tokens, version = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[4])
local count = #KEYS - 2
local takes, refunds = verb == 'take', verb == 'refund'

local now = tonumber(ARGV[count + 6])
local on_server_time = not now
if on_server_time then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end

-- ---- the record ---------------------------------------------------------------------------------

local texts = call('MGET', unpack(KEYS, 2))
local record = texts[1]
local known_until, mark = 0, nil  -- the `after` of permits.lua, which the new record keeps
if record then
  local after, rest = string.match(record, '^hf1 after (%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d) (.*)$')
  if after then
    -- No client waits for years.
    if after - now > 100000000000000 then return redis.error_reply('HOLDFAST_CORRUPT the record is damaged') end
    record = 'hf1 ' .. rest
    if tonumber(after) > now then mark = after end
  end
  local last = string.match(record, '^hf1 rate_limiter 1 (%d+)$')
  if last and #last < 17 then
    known_until = tonumber(last)
  else
    local kind, capacity = string.match(record, '^hf1 (%l[%l_]*) (%d+) ')
    if not kind or kind == 'rate_limiter' or kind == 'after' then
      if string.match(record, '^hf1 ') then return redis.error_reply('HOLDFAST_CORRUPT the record is damaged') end
      if string.match(record, '^hf%d+ ') then return redis.error_reply('HOLDFAST_NEWER written by a newer holdfast') end
      return redis.error_reply('HOLDFAST_FOREIGN not written by holdfast')
    end
    if kind == 'latch' then return {KIND_MISMATCH, now, 0, 0, kind} end
    if capacity ~= '0' then
      local text, leases, places = record, KEYS[1], KEYS[2] .. ':p'
@in_use.lua@
      if in_use then return {KIND_MISMATCH, now, 0, 0, kind} end
    end
  end
end

-- ---- the steps ----------------------------------------------------------------------------------

local buckets = {}  -- {version, used, at, units, wait, unit, gain, step, capacity, rule, come back, reserved_until, due_at}
local fits, wait, went_over = true, 0, false
for i = 1, count do
  local rule, due, text = ARGV[i + 4], now, texts[i + 1]
  if #rule == 40 then rule, due = sub(rule, 1, 32), read('<d', rule, 33) end
  local v, used, at, back, till, unit, gain, step, capacity = version, 0, now, 0, 0
  -- 1. Adds the tokens that have come back since.
  if text then
    if #text == 56 then
      v, used, at, unit, gain, step, capacity = read('<ddddddd', text)
    elseif #text == 64 then
      v, used, at, unit, gain, step, capacity, till = read('<dddddddd', text)
    else
      return redis.error_reply('HOLDFAST_CORRUPT a bucket is damaged')
    end
    -- All fields are whole numbers, neither infinite nor NaN.
    for j, n in ipairs({v, used, at, till, unit, gain, step, capacity}) do
      if not (n >= (j > 4 and 1 or 0) and n <= 2 * MOST_UNITS and n == floor(n)) then
        return redis.error_reply('HOLDFAST_CORRUPT a bucket is damaged')
      end
    end
    if at > now then  -- the clock was set back
      till = till > at - now and till - (at - now) or 0
      at = now
    end
    local steps = floor((now - at) / step)
    if steps < floor((used + gain - 1) / gain) then
      back = steps * gain
    else
      v, used, at, till, unit = version, 0, now, 0, nil
    end
  end
  -- 2. The greatest version of a rule applies.
  if not unit then
    unit, gain, step, capacity = read('<dddd', rule)
  elseif v == version then
    if sub(text, 25, 56) ~= rule then return {CAPACITY_MISMATCH, now, wait, i - 1} end
  elseif v > version then
    rule = sub(text, 25, 56)
  else  -- used tokens stay used, in whole tokens
    local last = at
    if used > capacity then last = at + floor((used - capacity + gain - 1) / gain) * step end
    if till > last then last = till end
    till = last > now and last or 0
    local whole = floor((used - back + unit - 1) / unit)
    unit, gain, step, capacity = read('<dddd', rule)
    local most = floor(capacity / unit)
    if most < whole then till = last + floor((capacity + gain - 1) / gain) * step end
    v, used, at, back, went_over = version, (whole < most and whole or most) * unit, now, 0, true
  end
  -- 3. A request for more tokens than the bucket can hold is refused at once.
  local limit = floor(capacity / unit)
  if takes and tokens > limit then return {TOO_MANY, now, wait, i - 1} end
  local units = (tokens < limit and tokens or limit) * unit
  fits = fits and used - back <= MOST_UNITS - units
  local over, mine = used + units - capacity, 0
  if over > 0 then
    mine = at + floor((over + gain - 1) / gain) * step - now
    if mine < 0 then mine = 0 end
    if mine > wait then wait = mine end
  end
  buckets[i] = {v, used, at, units, mine, unit, gain, step, capacity, rule, back, till, due}
end

-- 4. All buckets give their tokens, or none does.
local reply = {DONE, now, wait, 0}
local changed, granted, gives = false, false, false
if takes then
  granted = fits and wait <= tonumber(ARGV[3])
  reply[1] = granted and GRANTED or REFUSED
  changed = granted or went_over
elseif refunds then
  local owner = ARGV[count + 5]
  call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
  if not call('ZSCORE', KEYS[1], owner) then
    call('ZADD', KEYS[1], now + REMEMBER, owner)
    gives = true
  end
  if on_server_time then call('PEXPIRE', KEYS[1], REMEMBER / 1000) end
  changed, reply[3] = true, 0
end
local longest = 0
for i = 1, count do
  local b = buckets[i]
  local used, at, gain, step, capacity, back = b[2], b[3], b[7], b[8], b[9], b[11]
  if granted then
    used, at = used - back + b[4], at + back / gain * step
    back = 0
    if b[12] <= at then b[12] = 0 end
  elseif gives then
    -- Refunds all tokens but those that come back between the time of the request and the last time
    -- that was promised to other requests.
    local units, last, due = b[4], at, b[13]
    if used > capacity then last = at + floor((used - capacity + gain - 1) / gain) * step end
    if b[12] > last then last = b[12] end
    if due < last then
      local steps = floor((last - due + step - 1) / step)
      if steps < floor((units + gain - 1) / gain) then
        units = units - steps * gain
        if last > at then b[12] = last end
      else
        units = 0
      end
    end
    used = used > units and used - units or 0
  end
  b[2], b[3] = used, at
  local full = at + floor((used + gain - 1) / gain) * step - now
  if full <= 0 then used, back, full = 0, 0, 0 end
  local left = capacity - used + back
  if full > longest then longest = full end
  local r = i * 4
  reply[r + 1], reply[r + 2] = floor(capacity / b[6]), left > 0 and floor(left / b[6]) or 0
  reply[r + 3], reply[r + 4] = refunds and 0 or b[5], full
end
if not changed then return reply end

-- 5. Full buckets need not be kept. Writes the record first, which says that the name is in use:
-- for a while longer than necessary, so that not every decision has to write it.
if longest > 0 and now + longest > known_until then
  local text = string.format('rate_limiter 1 %.0f', now + longest + SLACK)
  local lasts = longest + SLACK
  if mark then text, lasts = 'after ' .. mark .. ' ' .. text, math.max(lasts, mark - now) end
  text = 'hf1 ' .. text
  local where = record and 'XX' or 'NX'
  local written
  if on_server_time then
    written = call('SET', KEYS[2], text, where, 'PX', floor(lasts / 1000) + 1)
  else
    written = call('SET', KEYS[2], text, where)
  end
  if not written then  -- MGET returns nothing for other types
    return redis.error_reply('HOLDFAST_FOREIGN not written by holdfast')
  end
end
for i = 1, count do
  local b, full = buckets[i], reply[i * 4 + 4]
  if full <= 0 then
    if texts[i + 1] then call('DEL', KEYS[i + 2]) end
  else
    local text = write('<ddd', b[1], b[2], b[3]) .. b[10]
    if b[12] > 0 then text = text .. write('<d', b[12]) end
    if on_server_time then
      call('SET', KEYS[i + 2], text, 'PX', floor(full / 1000) + 1)
    else
      call('SET', KEYS[i + 2], text)
    end
  end
end
return reply
