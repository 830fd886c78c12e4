-- A count that goes down to zero, and its waiters. The twin of src/kernel/countdown.cpp: the same
-- numbered steps in the same order; tests/store/redis/twin_test.cpp checks that they are equal.
--
--   KEYS[1] record    "hf1 latch count remaining expires_at waiters next_seq", or "hf1 after T
--                     latch …": permits.lua
--   KEYS[2] data      hash, owner -> "since peer note" of a waiter
--   KEYS[3] waiting   sorted set of owners in order of arrival
--   KEYS[4] places    sorted set of waiting owners by the time when their queue entry expires; and
--                     '' by 0, as in permits.lua
--   KEYS[5] leases    of a lock that had the name: in_use.lua
--   arrivals          sorted set of the owners that arrived, by the time when the arrival is
--                     forgotten; it outlives the latch, so no lock has that key
--
--   KEYS[6] the time, in tests only
--
-- ARGV: verb owner count drop place keep peer note repeats, and except in tests "until" or "until
-- after", as in permits.lua

local call, match, format, sub = redis.call, string.match, string.format, string.sub

local REMEMBER, RETRY_AFTER = @remember_us@, @retry_after_us@
local @countdown_outcome@

local record_key, data, waiting, places, arrivals = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[1] .. ':a'
local verb, owner = ARGV[1], ARGV[2]
local asked, drop, place, keep = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local repeats = tonumber(ARGV[9])

local fixed = KEYS[6]
local clock, due, after, lets_go = fixed, nil, nil, verb == 'leave' or verb == 'inspect'
if not fixed then
  local t, stamp = call('TIME'), ARGV[10]
  clock = t[1] .. sub('00000' .. t[2], -6)
  due, after = sub(stamp, 1, 16), #stamp > 16 and sub(stamp, 18)
  if clock > due and not lets_go then return redis.error_reply('HOLDFAST_LATE ' .. clock .. ' 0') end
  if after and after < clock then after = nil end
end
local now = tonumber(clock)

local text = call('GET', record_key)
@after.lua@
local mark = after or known
local idle = 'mutex 0 0 0 0 0 0 0'  -- what remains of an unused name

local count, remaining, expires, waiters, seq = 0, 0, 0, 0, 0
local dirty = says_more
local reply = {DONE, 0, now, 0}
local told  -- tests only: the notifications, in order

-- ---- the record ---------------------------------------------------------------------------------

-- Returns the other kind that uses the name, or a description of the damage.
local function load()
  if not text then return nil end
  local c, r, e, w, s = match(text, '^hf1 latch (%d+) (%d+) (%d+) (%d+) (%d+)$')
  if c then
    count, remaining, expires = tonumber(c), tonumber(r), tonumber(e)
    waiters, seq = tonumber(w), tonumber(s)
    -- No valid number is greater until the year 2286.
    if math.max(count, remaining, expires, waiters, seq) <= 9999999999999999 then return nil end
    return nil, 'HOLDFAST_CORRUPT the record is damaged'
  end
  local kind, capacity, fence = match(text, '^hf1 (%l[%l_]*) (%d+) (%d+)')
  if kind and kind ~= 'latch' then
    local leases = KEYS[5]
    if kind == 'rate_limiter' then return kind end
    if capacity ~= '0' then
@in_use.lua@
      if in_use then return kind end
    end
    idle = kind .. ' 0 ' .. fence .. ' 0 0 0 0 0'
    return nil
  end
  if match(text, '^hf1 ') then return nil, 'HOLDFAST_CORRUPT the record is damaged' end
  if match(text, '^hf%d+ ') then return nil, 'HOLDFAST_NEWER written by a newer holdfast' end
  return nil, 'HOLDFAST_FOREIGN not written by holdfast'
end

local function put(what, lasts)
  if mark then what, lasts = 'after ' .. mark .. ' ' .. what, math.max(lasts, mark - now) end
  call('SET', record_key, 'hf1 ' .. what)
  if not fixed then call('PEXPIRE', record_key, format('%.0f', lasts / 1000 + 1)) end
end

-- The arrivals stay: an arrival repeated after the end has been counted, and makes no new latch.
local function clear()
  call('DEL', record_key, data, waiting, places)
  if mark then put(idle, 0) end
  count, remaining, expires, waiters, seq, dirty = 0, 0, 0, 0, 0, false
end

local function save()
  if dirty and count == 0 and mark then put(idle, 0) end
  if not dirty or count == 0 then return end
  put(format('latch %.0f %.0f %.0f %.0f %.0f', count, remaining, expires, waiters, seq), expires - now)
  if fixed then return end
  for i = 2, 4 do call('PEXPIRE', KEYS[i], format('%.0f', (expires - now) / 1000 + 1)) end
end

local function drop_waiter(o)
  if call('ZREM', waiting, o) == 0 then return end
  call('ZREM', places, o)
  call('HDEL', data, o)
  waiters = waiters - 1
  dirty = true
end

-- Step 1. inspect of a name that is not a latch writes nothing.
local function expire()
  if count == 0 and verb == 'inspect' then return end
  local until_now = format('%.0f', now)
  call('ZREMRANGEBYSCORE', arrivals, '-inf', until_now)
  if count == 0 then return end
  if expires <= now then return clear() end
  if waiters == 0 then return end
  for _, o in ipairs(call('ZRANGEBYSCORE', places, 1, until_now)) do drop_waiter(o) end
end

local function use()
  if count == 0 then
    call('DEL', data, waiting, places)  -- a lost record may have left these
    count, remaining = asked, asked
  end
  expires = math.max(expires, now + keep)
  dirty = true
end

local function state() return (count ~= 0 and remaining == 0) and OPEN or CLOSED end

local function tell_all()
  if waiters == 0 then return end
  for _, o in ipairs(call('ZRANGE', waiting, 0, -1)) do
    local to = match(call('HGET', data, o) or '', '^%d+ (%S+) ')
    if to then
      local said = format('opened %s 0 0 %s', o, record_key)
      if told then told[#told + 1] = said .. ' ' .. to end
@publish.lua@
    end
  end
  call('DEL', data, waiting, places)
  waiters, seq = 0, 0
end

-- ---- step 4: the commands -----------------------------------------------------------------------

local commands = {}

-- The key lives until the last arrival in it is forgotten.
local function keep_arrivals()
  if fixed then return end
  local last = tonumber(call('ZRANGE', arrivals, -1, -1, 'WITHSCORES')[2])
  call('PEXPIRE', arrivals, format('%.0f', (last - now) / 1000 + 1))
end

function commands.arrive()
  if call('ZSCORE', arrivals, owner) then
    -- A write, because the WAIT of Redis 7.2 and later waits for replicas only if its connection
    -- has written.
    keep_arrivals()
    reply[1] = state()
    return
  end
  local left = count == 0 and asked or remaining
  if drop == 0 or drop > left then
    reply[1], reply[2] = TOO_MANY, left
    return
  end
  use()
  remaining = remaining - drop
  call('ZADD', arrivals, format('%.0f', now + math.max(repeats, REMEMBER)), owner)
  keep_arrivals()
  if remaining == 0 then tell_all() end
  reply[1] = state()
end

function commands.wait()
  use()
  reply[1] = state()
  if reply[1] == OPEN then return end
  reply[4] = math.min(RETRY_AFTER, math.floor(keep / 3))
  if place == 0 then return drop_waiter(owner) end
  local ends = format('%.0f', now + place)
  local new, is_there = call('ZADD', places, ends, owner, 0, ''), call('ZSCORE', waiting, owner)
  if waiters > 0 and new > (is_there and 0 or 1) then
    -- The places were evicted: a waiter that has none and stops asking would stay for ever.
    for _, o in ipairs(call('ZRANGE', waiting, 0, -1)) do call('ZADD', places, ends, o) end
  end
  if is_there then return end
  seq = seq + 1
  waiters = waiters + 1
  call('ZADD', waiting, format('%.0f', seq), owner)
  call('HSET', data, owner, format('%.0f %s %s', now, ARGV[7], ARGV[8]))
end

function commands.leave() drop_waiter(owner) end

function commands.remove() clear() end

local function found_arrivals()
  local all, list = {}, call('ZRANGE', arrivals, 0, -1, 'WITHSCORES')
  for i = 1, #list, 2 do all[#all + 1] = {list[i], tonumber(list[i + 1])} end
  return all
end

local function found_waiting()
  local all = {}
  for _, o in ipairs(call('ZRANGE', waiting, 0, -1)) do
    local since, peer, note = match(call('HGET', data, o) or '0 - ', '^(%d+) (%S+) (.*)$')
    all[#all + 1] = {o, tonumber(call('ZSCORE', places, o)), since, peer, sub(note, 1, 4096)}
  end
  return all
end

function commands.inspect()
  if count == 0 then return end
  reply[5], reply[6], reply[7], reply[8], reply[9] = count, remaining, expires, found_arrivals(), found_waiting()
end

-- ---- the steps ----------------------------------------------------------------------------------

local other, problem = load()
if problem then return redis.error_reply(problem) end
if fixed then told = {} end
local uses = verb == 'arrive' or verb == 'wait'
if other then
@head.lua@
  reply[1], reply[5] = KIND_MISMATCH, other
  return reply
end
-- 1. An expired latch is removed, and so are expired queue entries.
expire()
-- 2. All users of a latch name the same count.
if uses and count ~= 0 and count ~= asked then
  reply[1], reply[5] = CAPACITY_MISMATCH, count
  save()
  return reply
end
-- 3., 4. The command itself.
commands[verb]()
save()
if reply[1] ~= TOO_MANY then reply[2] = remaining end
if told and verb ~= 'inspect' then reply[5] = told end
return reply
