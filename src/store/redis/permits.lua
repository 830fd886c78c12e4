-- Who gets it? The twin of src/kernel/permits.cpp: the same numbered steps in the same order, next to
-- the data and on the server's clock. tests/store/redis/twin_test.cpp replays random histories
-- through both and demands equal answers; a change here is a change there.
--
-- What differs is only where things lie. The kernel walks over lists; a server with ten thousand
-- waiters must not. So the record is a line of text, the one holder of a name with capacity 1 is part
-- of it (a free mutex costs one GET and one SET), and everything that can be many is looked up:
--
--   KEYS[1] record  "hf1 kind capacity last_fence used waiters next_seq kept_until[ holder]"
--                   holder: "owner fence from lease since lingers peer note", if the capacity is 1; the
--                   last two of the numbers before it are 0 then, while nobody waits
--   KEYS[2] data    hash, owner -> "w weight priority seq lease since lingers peer note" of a waiter,
--                   "h weight fence since lingers peer note" of a holder, if the capacity is more than 1
--   KEYS[3] queue   sorted set of seq .. owner by -priority: the order of service
--   KEYS[4] places  sorted set of waiting owners by the end of their place
--   KEYS[5] leases  sorted set of holding owners by the end of their lease, capacity more than 1
--   KEYS[6] the time, in tests only
--
-- ARGV: verb owner | lease place flags | kind capacity weight | peer note priority instead_of | fence_at_least;
-- a verb that needs nothing of what stands after a | is sent without it. The most frequent command has a form of its
-- own: "lock" is to acquire a mutex, with ARGV: lock owner lease "lingers peer note" "flags place priority".
-- Times are microseconds, which a double holds exactly until the year 2255.

local call, match, format, sub = redis.call, string.match, string.format, string.sub

local GRANTED, QUEUED, BUSY, DONE, ABSENT, KIND_MISMATCH, CAPACITY_MISMATCH = 0, 1, 2, 3, 4, 5, 6

local record_key, verb, owner, lease = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local fixed = KEYS[6]
local clock = fixed
if not clock then
  local t = call('TIME')
  clock = t[1] .. sub('00000' .. t[2], -6)
end

-- ---- the short way: a mutex that nobody waits for --------------------------------------------------
-- The same steps for what is asked most, at half the cost: each call, word, function, and number that
-- becomes text counts. So times stay the text that they are (16 digits until the year 2286), no lists
-- are answered, and the server itself ends the lease: the key lasts as long. What does not look as
-- expected takes the long way.

local text = call('GET', record_key)
local record, answer

if verb == 'lock' then
  if not text or #text == 36 and sub(text, 1, 12) == 'hf1 mutex 0 ' then  -- nobody has it
    local last, fence = text and sub(text, 13, 28), clock
    if last and last >= clock then fence = format('%.0f', last + 1) end
    record = 'hf1 mutex 1 ' .. fence .. ' 1 0 0 0 ' .. owner .. ' ' .. fence .. ' ' .. clock .. ' ' .. lease .. ' ' ..
             clock .. ' ' .. ARGV[4]
    answer = fence .. ' ' .. clock
  end
elseif (verb == 'release' or verb == 'renew') and text and sub(text, 29, 70) == ' 1 0 0 0 ' .. owner .. ' ' and
       sub(text, 1, 12) == 'hf1 mutex 1 ' then
  local fence = sub(text, 13, 28)
  if fence > clock then
    -- The clock was set back: what remains of the name has to remain for longer.
  elseif fixed and match(text, '^%d+ (%d+)', 71) + match(text, '^%d+ %d+ (%d+)', 71) <= tonumber(fixed) then
    -- Time that only a test knows has ended it.
  elseif verb == 'release' then
    record, answer = 'hf1 mutex 0 ' .. fence .. ' 0 0 0 0', DONE
  else
    local rest = match(text, '^%d+ %d+ %d+( .*)$', 71)
    if rest and sub(lease, -3) == '000' then
      record, answer = sub(text, 1, 70) .. fence .. ' ' .. clock .. ' ' .. lease .. rest, fence .. ' ' .. clock
    end
  end
end

if record and fixed then
  call('SET', record_key, record)
  return answer == DONE and {DONE, 0, 0, tonumber(fixed), 0, 0, 0} or answer
elseif record then
  local lasts = answer == DONE and '1001' or sub(lease, 1, -4)
  if redis.pcall('SET', record_key, record, 'PX', lasts).err then
    if answer ~= DONE then call('SET', record_key, record) end  -- for its error
    call('DEL', record_key)  -- a server whose memory is full still lets go
  end
  return answer
end

-- ---- the long way ---------------------------------------------------------------------------------

local tonumber, max, min = tonumber, math.max, math.min

local CLAIM, LOOK_AGAIN, LOOK_STEP = 500000, 1000000, 250000
local SLACK = 60000000      -- keys that hold many live longer, so that not every step prolongs them
local FENCE_KEPT = 1000000  -- what remains of an idle name, and for how long: its last fence

local data, queue, places, leases = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local place, flags = tonumber(ARGV[4]), ARGV[5] or ''
local asked_kind, asked_capacity, weight = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])
local peer, note, priority, leaving = ARGV[9], ARGV[10], ARGV[11] or '0', ARGV[12] or ''
local at_least = tonumber(ARGV[13] or '0')
if verb == 'lock' then
  verb, asked_kind, asked_capacity, weight = 'acquire', 'mutex', 1, 1
  peer, note = match(ARGV[4], '^[01] (%S+) (.*)$')
  flags, place, priority = match(ARGV[5], '^(%a*) (%d+) (%-?%d+)$')
  place = tonumber(place)
end
lease = tonumber(lease)
local wait, detached = match(flags, 'w') ~= nil, match(flags, 'd') ~= nil
local lingers = match(flags, 'l') and 1 or 0
local now = tonumber(clock)
local told = fixed and {}  -- tests only: the notices, in order
local inbox = match(record_key, '^(.-):{') .. ':inbox:'  -- of a peer

-- ---- the record ---------------------------------------------------------------------------------

local kind, capacity, fence, used, waiters, seq, kept = '-', 0, 0, 0, 0, 0, 0
local held               -- the one holder, if the capacity is 1
local absent_before = true
local dirty, created = false, false
local reply = {DONE, 0, 0, now, 0, 0, 0}

local function load()
  if not text then return true end
  local other = match(text, '^hf1 (%l[%l_]*) ')
  if other == 'latch' or other == 'rate_limiter' then return false, nil, other end
  local k, c, f, u, w, s, t, rest = match(text, '^hf1 (%l[%l_]*) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) ?(.*)$')
  if not k then
    if match(text, '^hf%d+ ') then return nil, 'HOLDFAST_NEWER written by a newer holdfast' end
    return nil, 'HOLDFAST_FOREIGN not written by holdfast'
  end
  kind, capacity, fence, used = k, tonumber(c), tonumber(f), tonumber(u)
  waiters, seq, kept = tonumber(w), tonumber(s), tonumber(t)
  absent_before = capacity == 0 or capacity == 1 and waiters == 0
  if waiters > 0 then waiters = call('ZCARD', queue) end
  if capacity == 1 and used > 0 then
    local o, hf, from, lasts, since, l, peer, note =
        match(rest, '^(%x+) (%d+) (%d+) (%d+) (%d+) ([01]) (%S+) (.*)$')
    if not o then return nil, 'HOLDFAST_CORRUPT the record is damaged' end
    held = {owner = o, fence = tonumber(hf), expires = from + lasts, since = since, lingers = tonumber(l),
            peer = peer, note = note}
    kept = max(kept, held.expires)
  end
  return true
end

local function prolong()
  for i = 2, 5 do call('PEXPIRE', KEYS[i], format('%.0f', (kept - now) / 1000 + 1)) end
end

local function save()
  if not dirty then return end
  local in_use = used > 0 or waiters > 0
  local tail = ''
  if held then
    tail = format(' %s %.0f %.0f %.0f %s %d %s %s', held.owner, held.fence, now, held.expires - now, held.since,
                  held.lingers, held.peer, held.note)
    if waiters == 0 then seq, kept = 0, 0 end
  end
  local until_at = held and waiters == 0 and held.expires or kept
  local lasts = in_use and until_at - now or FENCE_KEPT + max(0, fence - now)
  local text = format('hf1 %s %.0f %.0f %.0f %.0f %.0f %.0f%s', kind, capacity, fence, used, waiters, seq, kept, tail)
  if fixed then
    call('SET', record_key, text)
  elseif redis.pcall('SET', record_key, text, 'PX', format('%.0f', lasts / 1000 + 1)).err then
    if in_use then call('SET', record_key, text) end  -- for its error
    call('DEL', record_key)  -- a server whose memory is full still lets go
  end
end

-- Keys outlive what is in them, and never by much.
local function keep_until(at)
  dirty = true
  local many = waiters > 0 or capacity > 1
  if at <= kept and not created then return end
  kept = max(kept, many and at + SLACK or at)
  created = false
  if many and not fixed then prolong() end
end

-- What a lost record left of its queue must not come back to life with the next one.
local function before_first(is_first)
  if not is_first then return end
  created = true
  if absent_before then
    call('DEL', data, queue, places, leases)
    absent_before = false
  end
end

-- ---- holders and waiters ------------------------------------------------------------------------

local function holder_of(o)
  if capacity == 1 then return held and held.owner == o and held or nil end
  if used == 0 then return nil end
  local raw = call('HGET', data, o)
  if not raw or sub(raw, 1, 1) ~= 'h' then return nil end
  local weight, f, since, l, peer, note = match(raw, '^h (%d+) (%d+) (%d+) ([01]) (%S+) (.*)$')
  return {owner = o, weight = tonumber(weight), fence = tonumber(f), since = since, lingers = tonumber(l), peer = peer,
          note = note}
end

local function put_holder(h)
  if capacity == 1 then
    held = h
  else
    call('HSET', data, h.owner, format('h %.0f %.0f %s %d %s %s', h.weight, h.fence, h.since, h.lingers, h.peer, h.note))
    call('ZADD', leases, format('%.0f', h.expires), h.owner)
  end
  keep_until(h.expires)
end

local function prolong_holder(h, expires)
  h.expires = expires
  if capacity > 1 then call('ZADD', leases, format('%.0f', expires), h.owner) end
  keep_until(expires)
end

local function drop_holder(o)
  local h = holder_of(o)
  if not h then return false end
  dirty = true
  if capacity == 1 then
    held, used = nil, 0
  else
    used = used - h.weight
    call('HDEL', data, o)
    call('ZREM', leases, o)
  end
  return true
end

local function waiter_of(o)
  if waiters == 0 then return nil end
  local raw = call('HGET', data, o)
  if not raw or sub(raw, 1, 1) ~= 'w' then return nil end
  local weight, priority, s, l, since, lingers, peer, note =
      match(raw, '^w (%d+) (%-?%d+) (%d+) (%d+) (%d+) ([01]) (%S+) (.*)$')
  return {owner = o, weight = tonumber(weight), priority = priority, member = format('%014x', tonumber(s)) .. o,
          lease = tonumber(l), since = since, lingers = tonumber(lingers), peer = peer, note = note}
end

local function drop_waiter(o, known, member)
  local w = known or waiter_of(o)
  if not w and not member then
    if waiters > 0 then call('ZREM', places, o) end  -- its data was evicted
    return false
  end
  dirty = true
  waiters = waiters - 1
  call('ZREM', queue, w and w.member or member)
  call('ZREM', places, o)
  call('HDEL', data, o)
  return true
end

local function put_place(o, expires)
  call('ZADD', places, format('%.0f', expires), o)
  keep_until(expires)
end

local function enqueue()
  before_first(waiters == 0)
  seq = seq + 1
  waiters = waiters + 1
  call('ZADD', queue, -priority, format('%014x', seq) .. owner)
  call('HSET', data, owner, format('w %.0f %d %.0f %.0f %.0f %d %s %s', weight, priority, seq, lease, now, lingers, peer, note))
  put_place(owner, now + place)
end

-- Step 1. What has run out is gone, whoever looks.
local function expire()
  if capacity == 1 then
    if held and held.expires <= now then drop_holder(held.owner) end
  elseif used > 0 then
    for _, o in ipairs(call('ZRANGEBYSCORE', leases, '-inf', format('%.0f', now))) do drop_holder(o) end
  end
  if waiters > 0 then
    for _, o in ipairs(call('ZRANGEBYSCORE', places, '-inf', format('%.0f', now))) do drop_waiter(o) end
  end
end

-- Also when the record was lost: time has gone on since the fences that were in it.
local function next_fence()
  fence = max(fence + 1, now)
  dirty = true
  return fence
end

-- One of several stores of a quorum learns what another one has granted.
local function raise_fence(h)
  if at_least <= h.fence then return end
  h.fence = at_least
  fence = max(fence, at_least)
  h.expires = h.expires or tonumber(call('ZSCORE', leases, h.owner))
  put_holder(h)
end

local function grant(o, weight, lasts, lingers, peer, note)
  before_first(capacity > 1 and used == 0 and waiters == 0)
  used = used + weight
  local h = {owner = o, weight = weight, fence = next_fence(), expires = now + lasts,
             since = format('%.0f', now), lingers = lingers, peer = peer, note = note}
  put_holder(h)
  if o == owner then raise_fence(h) end
  return h
end

local function tell(what, o, peer, fence, expires)
  local text = format('%s %s %.0f %.0f %s', what, o, fence, expires, record_key)
  if told then told[#told + 1] = text .. ' ' .. peer end
  call('PUBLISH', inbox .. peer, text)
end

-- Whoever keeps it idle gives it up.
local function tell_lingering()
  local function maybe(h, expires)
    if h and h.lingers == 1 then tell('wanted', h.owner, h.peer, h.fence, expires) end
  end
  if held then maybe(held, held.expires) end
  if capacity == 1 or used == 0 then return end
  local pairs_of = call('ZRANGE', leases, 0, -1, 'WITHSCORES')
  for i = 1, #pairs_of, 2 do maybe(holder_of(pairs_of[i]), tonumber(pairs_of[i + 1])) end
end

-- Step 6. Serves the head of the queue for as long as it fits. Who asks for it is there to receive its
-- grant, and gets the whole lease; the others have to claim theirs. If some still wait, those served are
-- told so.
local function hand_over()
  local asks = verb == 'acquire' or verb == 'renew'
  local served = false
  while waiters > 0 do
    local head = call('ZRANGE', queue, 0, 0)[1]
    local o = sub(head, 15)
    local w = waiter_of(o)
    if w and used + w.weight > capacity then
      if served then tell_lingering() end
      return served
    end
    drop_waiter(o, w, head)
    if w then  -- else its data was evicted: it asks again
      local own = asks and o == owner
      local lasts = own and w.lease or min(w.lease, CLAIM)
      grant(o, w.weight, lasts, w.lingers, own and detached and '-' or w.peer, w.note)
      if not own then tell('granted', o, w.peer, fence, now + lasts) end
      served = true
    end
  end
  return served
end

local function earliest_end()
  if held then return held.expires end
  if capacity == 1 or used == 0 then return nil end
  return tonumber(call('ZRANGE', leases, 0, 0, 'WITHSCORES')[2])
end

-- The first in line looks when the lease in its way ends; the others are told when it is their turn.
local function describe_wait(position)
  local wait = min(LOOK_AGAIN, LOOK_STEP * position)
  local first = position == 1 and earliest_end()
  if first then wait = min(wait, first - now) end
  reply[5], reply[6] = max(wait, 1000), position
end

local function position_of(w) return call('ZRANK', queue, w.member) + 1 end

local function report_holding(h)
  reply[1], reply[2] = GRANTED, h.fence
  reply[3] = h.expires or tonumber(call('ZSCORE', leases, h.owner))
end

-- ---- step 5: the commands -----------------------------------------------------------------------

local commands = {}

function commands.acquire()
  local mine = holder_of(owner)
  if mine then
    if detached and mine.peer ~= '-' then
      mine.peer, mine.expires = '-', now + lease
      put_holder(mine)
    else
      prolong_holder(mine, now + lease)
    end
    raise_fence(mine)
    hand_over()
    return report_holding(holder_of(owner))
  end
  if waiters == 0 and used + weight <= capacity then  -- into the queue and at once out of it
    return report_holding(grant(owner, weight, lease, lingers, detached and '-' or peer, note))
  end
  if waiters == 0 and not wait then
    describe_wait(1)
    tell_lingering()
    reply[1] = BUSY
    return
  end
  if waiter_of(owner) then put_place(owner, now + place) else enqueue() end
  local served = hand_over()
  mine = holder_of(owner)
  if mine then return report_holding(mine) end
  describe_wait(position_of(waiter_of(owner)))
  reply[1] = wait and QUEUED or BUSY
  if reply[6] == 1 and not served then tell_lingering() end
  if wait then return end
  drop_waiter(owner)  -- those behind may fit now that it has given up
  hand_over()
end

function commands.renew()
  local mine = holder_of(owner)
  if mine then prolong_holder(mine, now + lease) end
  if waiter_of(owner) then put_place(owner, now + place) end
  hand_over()
  mine = mine or holder_of(owner)
  if mine then return report_holding(mine) end
  local place = waiter_of(owner)
  reply[1] = place and QUEUED or ABSENT
  if place then describe_wait(position_of(place)) end
end

function commands.release()
  reply[1] = (drop_holder(owner) or drop_waiter(owner)) and DONE or ABSENT
  hand_over()
end

-- Up only if there is room at once: two readers that both wait for the other to leave would wait for
-- ever. Whoever becomes stronger gets a new fence.
function commands.resize()
  local mine = holder_of(owner)
  if mine and capacity == 1 then mine.weight = 1 end
  if not mine then
    reply[1] = ABSENT
  elseif used - mine.weight + weight > capacity then
    reply[1] = BUSY
  else
    if weight > mine.weight then mine.fence = next_fence() end
    used = used - mine.weight + weight
    mine.weight = weight
    mine.expires = mine.expires or tonumber(call('ZSCORE', leases, owner))
    put_holder(mine)
    report_holding(mine)
  end
  hand_over()
end

function commands.evict()
  local everyone = match(owner, '^0+$')
  local gone = 0
  if not everyone then
    gone = drop_holder(owner) and 1 or 0
  elseif capacity == 1 then
    gone = held and drop_holder(held.owner) and 1 or 0
  elseif used > 0 then
    for _, o in ipairs(call('ZRANGE', leases, 0, -1)) do gone = gone + (drop_holder(o) and 1 or 0) end
  end
  reply[1], reply[6] = gone > 0 and DONE or ABSENT, gone
  hand_over()
end

-- ---- step 2: a look -----------------------------------------------------------------------------

local function found_holders()
  local all = {}
  local function add(h, expires)
    all[#all + 1] = {h.owner, h.weight or 1, h.fence, expires, h.since, h.peer, h.note, h.lingers}
  end
  if held then add(held, held.expires) end
  if capacity > 1 and used > 0 then
    local pairs_of = call('ZRANGE', leases, 0, -1, 'WITHSCORES')
    for i = 1, #pairs_of, 2 do
      local h = holder_of(pairs_of[i])
      if h then add(h, tonumber(pairs_of[i + 1])) end
    end
  end
  return all
end

local function found_waiters()
  local all = {}
  if waiters == 0 then return all end
  for _, member in ipairs(call('ZRANGE', queue, 0, -1)) do
    local w = waiter_of(sub(member, 15))
    if w then
      all[#all + 1] = {w.owner, w.weight, tonumber(w.priority), w.lease, tonumber(call('ZSCORE', places, w.owner)),
                       w.since, w.peer, w.note, w.lingers}
    end
  end
  return all
end

-- ---- the steps ----------------------------------------------------------------------------------

local ours, problem, other = load()
if problem then return redis.error_reply(problem) end
if not ours then  -- something that nobody holds has the name
  reply[1] = (verb == 'acquire' or verb == 'inspect') and KIND_MISMATCH or ABSENT
  reply[8], reply[9] = other, 0
  return reply
end
-- 1. What has run out is gone.
expire()
-- 2. A look changes nothing else.
if verb == 'inspect' then
  reply[8], reply[9], reply[10], reply[11], reply[12] = kind, capacity, fence, found_holders(), found_waiters()
  save()
  return reply
end
-- 3. A name is one thing at a time; one that nobody uses may become another.
if verb == 'acquire' then
  if used == 0 and waiters == 0 then
    kind, capacity = asked_kind, asked_capacity
    absent_before = true
  elseif kind ~= asked_kind or capacity ~= asked_capacity then
    reply[1] = kind ~= asked_kind and KIND_MISMATCH or CAPACITY_MISMATCH
    reply[8], reply[9] = kind, capacity
    save()
    return reply
  end
end
-- 4. One leaves so that another of the same session can come: one step, not two.
if leaving ~= '' then
  reply[7] = (drop_holder(leaving) or drop_waiter(leaving)) and 1 or 0
end
-- 5., 6. The command itself, and the hand-over that may follow from it.
commands[verb]()
-- 7. Nothing is left behind but the fence, and that only until the clock has gone past it for sure.
if used == 0 and waiters == 0 and capacity ~= 0 then
  capacity, seq, kept, dirty = 0, 0, 0, true
end
save()
if told then reply[8] = told end
return reply
