-- Decides who acquires a lock. The twin of src/kernel/permits.cpp: the same numbered steps in the
-- same order, next to the data and on the server's clock. tests/store/redis/twin_test.cpp replays
-- random histories through both and demands equal answers; every change here needs the same change
-- there.
--
-- A server that evicts keys one by one may drop any of these keys alone. Before a command adds
-- something to a key, it checks that the key is still there: it has seen another owner's data in
-- it. If the key is gone, the script rebuilds all of it, with a time to live.
--
-- Only the data layout differs. The kernel walks over lists; a server with ten thousand waiters
-- must not. So the record is a line of text, and the single holder of a name with capacity 1 is
-- part of it (a free mutex costs one GET and one SET). Everything that can have many entries is
-- looked up by key:
--
--   KEYS[1] record  "hf1 kind capacity last_fence used waiters next_seq kept_until places_end[ holder]"
--                   places_end: no queue entry expires before this time
--                   waiters: 0 means none, any other number is approximate
--                   holder: "owner fence from lease since lingers peer note", if the capacity is 1;
--                   the last three of the numbers before it are 0 while the queue is empty. If a
--                   mutex has one waiter and next_seq is 0, then instead "size holder owner data":
--                   the waiter is part of the record, and the holder has `size` characters
--   KEYS[2] data    hash, owner -> "w weight priority seq lease since lingers peer note" of a
--                   waiter, "h weight fence since lingers peer note" of a holder, if the capacity
--                   is more than 1
--   KEYS[3] queue   sorted set of seq .. owner by -priority: the order of service
--   KEYS[4] places  sorted set of the sessions (peers) that have waiters, by the time when all
--                   their queue entries expire; an owner without a session has its own id as the
--                   member. The member '' has score 0: it tells a ZADD, without a further command,
--                   whether the key is new
--   KEYS[5] leases  sorted set of holding owners by the end of their lease, capacity more than 1;
--                   of an election: the last leaders, "fence since note" by fence
--   KEYS[6] the time, in tests only
--
-- ARGV: verb owner | lease queue_lease flags | kind capacity weight | peer note priority replaces
-- fence_at_least. A verb that needs no argument after a | is sent without those arguments. The
-- secret of a released holder follows at the end: the script passes it to the next owner, right
-- behind that holder, and no record contains it. The most frequent command has a form of its own:
-- "lock" acquires a mutex, with ARGV: lock owner lease "lingers peer note" "flags place priority".
-- Except in tests one more argument follows: "until", or "until after". The script refuses a
-- command that arrives later than `until`: its sender has given up, and the command may have been
-- overtaken by the release. A caller sends "after" if it has reason to believe that earlier
-- commands are still on their way. Then the record begins "hf1 after <after> kind …", and until
-- that time the script refuses every command whose `until` is not later than `after`. Times are
-- microseconds, which a double holds exactly until the year 2255.

local call, match, format, sub = redis.call, string.match, string.format, string.sub

local @permits_outcome@

local record_key, verb, owner, lease = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local fixed = KEYS[6]
local clock = fixed
if not clock then
  local t = call('TIME')
  clock = t[1] .. sub('00000' .. t[2], -6)
end

local text = call('GET', record_key)

local lets_go = verb == 'release' or verb == 'inspect'
local due, after
-- What the fast path has read of the queue: its last member, the data of the owner and of that
-- member, and whether the key of the places is gone.
local last, found, no_places
if not fixed then
  local stamp = ARGV[#ARGV]
  ARGV[#ARGV] = nil
  due, after = sub(stamp, 1, 16), #stamp > 16 and sub(stamp, 18)
  if clock > due and not lets_go then
    return redis.error_reply('HOLDFAST_LATE ' .. clock .. ' 0')
  end
  if after and after < clock then after = nil end
end

if not after then
@mutex.lua@
@barrier_asks.lua@
end
-- ---- the general path ----------------------------------------------------------------------------
-- Lua creates each function again whenever the script runs, and each variable of the script that a
-- function uses costs time. So the functions and the state that they share are fields of one table,
-- and code with a single caller is not a function.

local r = {
  kind = 'mutex', capacity = 0, fence = 0, used = 0, waiters = 0, seq = 0, kept = 0, places_end = 0,
  held = nil,  -- the only holder, if the capacity is 1
  dirty = false, created = false, absent_before = true,
  now = tonumber(clock),
  told = fixed and {},  -- tests only: the notifications, in order
  reply = {DONE, 0, 0, tonumber(clock), 0, 0, 0},
}

-- Keys outlive their content, but never by much: keys with many entries live a minute longer, so
-- that not every step has to extend them.
function r.keep_until(at)
  if at <= r.kept and not r.created then return end
  local many = r.waiters > 0 or r.capacity > 1
  r.kept = math.max(r.kept, many and at + 60000000 or at)
  r.dirty, r.created = true, false
  if not many or KEYS[6] then return end
  for i = 2, 5 do call('PEXPIRE', KEYS[i], format('%.0f', (r.kept - r.now) / 1000 + 1)) end
end

-- Removes the queue that a lost record may have left: it must not come back to life with the next
-- record.
function r.before_first()
  r.created = true
  if r.absent_before then
    call('DEL', KEYS[2], KEYS[3], KEYS[4], r.kind == 'election' and KEYS[4] or KEYS[5])
    r.absent_before = false
  end
end

-- A server that evicts one of the keys leaves a wrong count of holders or waiters, which nothing
-- can correct any more. So the script drops all of them: the holders learn it at their next
-- renewal, and the waiters ask again.
function r.forget_all()
  call('DEL', KEYS[2], KEYS[3], KEYS[4], KEYS[5])
  r.used, r.waiters, r.dirty = 0, 0, true
end

-- The same for the waiters alone. The same key holds the data of holders, which must stay.
function r.forget_waiters()
  local held = {}
  for _, o in ipairs(r.capacity > 1 and r.used > 0 and call('ZRANGE', KEYS[5], 0, -1) or {}) do
    held[o] = call('HGET', KEYS[2], o) or nil
  end
  call('DEL', KEYS[2], KEYS[3], KEYS[4])
  for o, data in pairs(held) do call('HSET', KEYS[2], o, data) end
  r.waiters, r.created = 0, true
  r.keep_until(0)
end

-- For when the places were evicted. A waiter that still asks must not lose its turn, and a waiter
-- that has stopped asking must not stay. So each waiter gets a new place, which lasts long enough
-- for it to ask again.
function r.place_all()
  local waiters, first, last_of_all = 0, nil, 0
  for _, member in ipairs(call('ZRANGE', KEYS[3], 0, -1)) do
    local w = r.waiter_of(sub(member, 15))
    if w then
      local at = r.place_of(w.owner, w.peer)
      -- Never shortens a place: an older holdfast may have created the key without ''.
      local ends = math.max(r.now + math.max(w.lease, 4 * @retry_after_us@), tonumber(call('ZSCORE', KEYS[4], at) or 0))
      call('ZADD', KEYS[4], format('%.0f', ends), at, 0, '')
      waiters, first, last_of_all = waiters + 1, math.min(first or ends, ends), math.max(last_of_all, ends)
    else
      call('ZREM', KEYS[3], member)
    end
  end
  if waiters == 0 then return r.forget_waiters() end
  r.waiters, r.places_end, r.created = waiters, first, true
  r.keep_until(last_of_all)
end

-- ---- holders and waiters ------------------------------------------------------------------------

function r.holder_of(o)
  local held = r.held
  if r.capacity == 1 then return held and held.owner == o and held or nil end
  if r.used == 0 then return nil end
  local raw = call('HGET', KEYS[2], o)
  if not raw or sub(raw, 1, 1) ~= 'h' then return nil end
  local weight, fence, since, lingers, peer, note = match(raw, '^h (%d+) (%d+) (%d+) ([01]) (%S+) (.*)$')
  return {owner = o, weight = tonumber(weight), fence = tonumber(fence), since = since, lingers = lingers,
          peer = peer, note = note}
end

function r.put_holder(h)
  r.dirty = true
  if r.capacity == 1 then
    r.held = h
  else
    call('HSET', KEYS[2], h.owner,
         format('h %.0f %.0f %s %s %s %s', h.weight, h.fence, h.since, h.lingers, h.peer, h.note))
    call('ZADD', KEYS[5], format('%.0f', h.expires), h.owner)
  end
  r.keep_until(h.expires)
end

function r.drop_holder(o)
  local h = r.holder_of(o)
  if not h then return false end
  r.dirty = true
  if r.capacity == 1 then
    r.held, r.used = nil, 0
  else
    r.used = r.used - h.weight
    call('HDEL', KEYS[2], o)
    call('ZREM', KEYS[5], o)
  end
  return h
end

function r.read_waiter(o, data)
  local weight, priority, seq, lease, since, lingers, peer, note =
      match(data, '^w (%d+) (%-?%d+) (%d+) (%d+) (%d+) ([01]) (%S+) (.*)$')
  if not weight then return nil end
  return {owner = o, weight = tonumber(weight), priority = priority, member = format('%014x', seq) .. o,
          lease = tonumber(lease), since = since, lingers = lingers, peer = peer, note = note}
end

-- For the caller's own owner. If the last member of the queue has no data, one of the keys was
-- evicted, and no waiter can be trusted any more.
function r.waiter_in_queue(o)
  if r.waiters == 0 then return nil end
  if not found then
    last = call('ZRANGE', KEYS[3], -1, -1)[1]
    found = call('HMGET', KEYS[2], o, sub(last or '', 15))
  end
  r.last = last and r.read_waiter(sub(last, 15), found[2] or '')
  if not r.last then return r.forget_waiters() end
  return r.read_waiter(o, found[1] or '')
end

-- An older holdfast may have added a waiter to an evicted queue without checking. The waiters that
-- were there before ask again.
function r.rank_of(member)
  return call('ZRANK', KEYS[3], member) or r.forget_waiters() or 0
end

function r.waiter_of(o)
  return r.waiters > 0 and r.read_waiter(o, call('HGET', KEYS[2], o) or '') or nil
end

-- The place belongs to the waiter's session, which may have other waiters.
function r.forget_waiter(o, w)
  r.dirty = true
  r.waiters = r.waiters - 1
  if r.waiters == 0 then
    call('DEL', KEYS[4])
  elseif not w or w.peer == '-' then
    call('ZREM', KEYS[4], o)
  end
  call('HDEL', KEYS[2], o)
end

function r.drop_waiter(o)
  local w = r.waiter_of(o)
  if w then
    call('ZREM', KEYS[3], w.member)
    r.forget_waiter(o, w)
  elseif r.waiters > 0 then
    call('ZREM', KEYS[4], o)  -- the waiter's data was evicted
  end
  return w ~= nil
end

function r.place_of(o, peer) return peer ~= '-' and peer or o end

-- A waiter that asks is alive, and so are all waiters of its session for the name. `known`: the
-- session already has a place, so a new place means that the places were evicted.
function r.put_place(o, peer, expires, known)
  local new = call('ZADD', KEYS[4], format('%.0f', expires), r.place_of(o, peer), 0, '')
  if new > (known and 0 or 1) and not r.created then
    r.place_all()
    call('ZADD', KEYS[4], format('%.0f', expires), r.place_of(o, peer))
  end
  if expires < r.places_end then r.places_end, r.dirty = expires, true end
  r.keep_until(expires)
end

function r.enqueue(w, place_ends)
  if r.waiters == 0 then
    r.before_first()
    r.places_end = place_ends
  end
  r.seq, r.waiters, r.dirty = r.seq + 1, r.waiters + 1, true
  local member = format('%014x', r.seq) .. w.owner
  call('ZADD', KEYS[3], -w.priority, member)
  call('HSET', KEYS[2], w.owner, format('w %.0f %d %.0f %.0f %s %s %s %s', w.weight, w.priority, r.seq, w.lease,
                                        w.since, w.lingers, w.peer, w.note))
  r.put_place(w.owner, w.peer, place_ends)
  return member
end

-- Increases also when the record was lost: the clock is ahead of the fences in the lost record.
function r.next_fence(at_least)
  r.fence = math.max(r.fence + 1, r.now, at_least or 0)
  r.dirty = true
  return r.fence
end

function r.grant(w, lasts, peer)
  if r.capacity > 1 and r.used == 0 then
    if r.waiters == 0 then r.before_first() end
    -- Creates the leases: their key was gone when the last member was removed.
    r.created = true
  end
  r.used = r.used + w.weight
  r.put_holder({owner = w.owner, weight = w.weight, fence = r.next_fence(w.owner == r.asks and r.at_least),
                expires = r.now + lasts, since = format('%.0f', r.now), lingers = w.lingers, peer = peer,
                note = w.note})
  -- So that an observer misses no leader, however short its term.
  if r.kind == 'election' then
    call('ZADD', KEYS[5], format('%.0f', r.fence), format('%.0f %.0f %s', r.fence, r.now, w.note))
    for _, old in ipairs(call('ZRANGE', KEYS[5], 0, -17)) do call('ZREM', KEYS[5], old) end
  end
end

function r.tell(what, o, to, fence, expires, secret)
  local said = format('%s %s %.0f %.0f %s%s', what, o, fence, expires, secret and secret .. ' ' or '', KEYS[1])
  if r.told then r.told[#r.told + 1] = said .. ' ' .. to end
@publish.lua@
end

-- Asks the sessions that keep the lock idle to release it.
function r.tell_lingering()
  local held = r.held
  if held and held.lingers == '1' then r.tell('wanted', held.owner, held.peer, held.fence, held.expires) end
  if r.capacity == 1 or r.used == 0 then return end
  local ends = call('ZRANGE', KEYS[5], 0, -1, 'WITHSCORES')
  for i = 1, #ends, 2 do
    local h = r.holder_of(ends[i])
    if h and h.lingers == '1' then r.tell('wanted', h.owner, h.peer, h.fence, tonumber(ends[i + 1])) end
  end
end

-- Step 6. Serves the head of the queue as long as it fits. The caller is waiting for its grant and
-- gets the whole lease; the other owners have to claim theirs. If waiters remain, the new holders
-- are notified of that.
function r.hand_over()
  local served = false
  while r.waiters > 0 and not r.held do
    -- With capacity 1 the lock is free now, so the head fits.
    local head = (r.capacity == 1 and call('ZPOPMIN', KEYS[3]) or call('ZRANGE', KEYS[3], 0, 0))[1]
    if not head then
      r.forget_waiters()  -- the queue was evicted
      break
    end
    local o = sub(head, 15)
    local w = r.waiter_of(o)
    if r.capacity > 1 then
      if w and r.used + w.weight > r.capacity then break end
      call('ZREM', KEYS[3], head)
    end
    r.forget_waiter(o, w)
    if w then  -- otherwise the waiter's data was evicted: the waiter asks again
      local own = o == r.asks
      local lasts = own and w.lease or math.min(w.lease, @claim_us@)
      r.grant(w, lasts, own and r.detached and '-' or w.peer)
      -- With priorities, another waiter may know from its reply that it is behind the released
      -- holder, although it is served later.
      local secret = w.priority == '0' and r.passed
      if not own then r.tell(secret and 'passed' or 'granted', o, w.peer, r.fence, r.now + lasts, secret) end
      served = true
    end
  end
  if served and r.waiters > 0 then r.tell_lingering() end
  return served
end

-- ---- the answers --------------------------------------------------------------------------------

-- The n-th waiter polls when n leases have ended, because no notification reports the end of a
-- lease. Only the first few waiters do so; the others are notified when their turn comes.
function r.describe_wait(position)
  local wait = math.min(@retry_after_us@, @retry_step_us@ * position)
  local ends = position == 1 and r.held and r.held.expires
  if r.capacity > 1 and r.used > 0 and wait < @retry_after_us@ then
    ends = call('ZRANGE', KEYS[5], position - 1, position - 1, 'WITHSCORES')[2]
  end
  if ends then wait = math.min(wait, ends - r.now) end
  r.reply[5], r.reply[6] = math.max(wait, @retry_after_at_least_us@), r.kind == 'barrier' and r.waiters or position
end

function r.report_holding(h)
  r.reply[1], r.reply[2] = GRANTED, h.fence
  r.reply[3] = h.expires or tonumber(call('ZSCORE', KEYS[5], h.owner))
  if r.kind == 'barrier' then r.reply[6] = tonumber(h.lingers) end
end

function r.save()
  if not r.dirty then return end
  local held, in_use, tail, until_at = r.held, r.used > 0 or r.waiters > 0, '', r.kept
  if held then
    tail = format(' %s %.0f %.0f %.0f %s %s %s %s', held.owner, held.fence, r.now, held.expires - r.now, held.since,
                  held.lingers, held.peer, held.note)
    if r.waiters == 0 then r.seq, r.kept, r.places_end, until_at = 0, 0, 0, held.expires end
  end
  -- An idle name leaves only its last fence; this computes how long.
  local lasts = in_use and math.max(until_at, r.fence) - r.now or 1000000 + math.max(0, r.fence - r.now)
  if r.after then lasts = math.max(lasts, r.after - r.now) end
  local record = format('hf1 %s%s %.0f %.0f %.0f %.0f %.0f %.0f %.0f%s', r.after and 'after ' .. r.after .. ' ' or '',
                        r.kind, r.capacity, r.fence, r.used, r.waiters, r.seq, r.kept, r.places_end, tail)
  if r.kind == 'election' and not KEYS[6] then call('PEXPIRE', KEYS[5], format('%.0f', lasts / 1000 + 3600000)) end
  if KEYS[6] then
    call('SET', KEYS[1], record)
  elseif redis.pcall('SET', KEYS[1], record, 'PX', format('%.0f', lasts / 1000 + 1)).err then
    if in_use then call('SET', KEYS[1], record) end  -- to return its error
    call('DEL', KEYS[1])  -- a release works even on a server whose memory is full
    if r.after then call('SET', KEYS[1], record, 'PX', format('%.0f', lasts / 1000 + 1)) end
  end
end

-- ---- the request, and the record ----------------------------------------------------------------

local now, reply = r.now, r.reply
local place, flags = tonumber(ARGV[4]), ARGV[5] or ''
local asked_kind, asked_capacity, weight = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])
local peer, note, priority, leaving = ARGV[9], ARGV[10], ARGV[11] or '0', ARGV[12] or ''
if verb == 'lock' then
  verb, asked_kind, asked_capacity, weight = 'acquire', 'mutex', 1, 1
  peer, note = match(ARGV[4], '^[01] (%S+) (.*)$')
  flags, place, priority = match(ARGV[5], '^(%a*) (%d+) (%-?%d+)$')
  place = tonumber(place)
end
lease = tonumber(lease)
local wait, lingers = match(flags, 'w') ~= nil, match(flags, 'l') and '1' or '0'
r.detached, r.asks = match(flags, 'd') ~= nil, (verb == 'acquire' or verb == 'renew') and owner
r.at_least = tonumber(ARGV[13]) or 0

@after.lua@
-- No record of holdfast is that long, and no client should receive data that another program stored
-- there.
if text and #text > 65536 then return redis.error_reply('HOLDFAST_CORRUPT the record is damaged') end
r.after, r.dirty = after or known, says_more  -- a command with an earlier `until` is too late

local first
if text then
  local kind, capacity, fence, used, waiters, seq, kept, places_end, holder =
      match(text, '^hf1 (%l[%l_]*) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) ?(.*)$')
  local other = kind or match(text, '^hf1 (%l[%l_]*) ')
  -- The name belongs to a kind that has no holders.
  if other == 'latch' or other == 'rate_limiter' then
@head.lua@
    reply[1] = (verb == 'acquire' or verb == 'inspect' or verb == 'notify') and KIND_MISMATCH or ABSENT
    reply[8], reply[9] = other, 0
    return reply
  elseif not kind then
    return redis.error_reply(match(text, '^hf1 ') and 'HOLDFAST_CORRUPT the record is damaged' or
                             match(text, '^hf%d+ ') and 'HOLDFAST_NEWER written by a newer holdfast' or
                             'HOLDFAST_FOREIGN not written by holdfast')
  end
  r.kind, r.capacity, r.fence, r.used = kind, tonumber(capacity), tonumber(fence), tonumber(used)
  r.waiters, r.seq, r.kept, r.places_end = tonumber(waiters), tonumber(seq), tonumber(kept), tonumber(places_end)
  -- No valid number is greater until the year 2286.
  if math.max(r.capacity, r.fence, r.used, r.waiters, r.seq, r.kept, r.places_end) > 9999999999999999 then
    return redis.error_reply('HOLDFAST_CORRUPT the record is damaged')
  end
  r.absent_before = r.capacity == 0 or r.capacity == 1 and r.waiters == 0
  if r.capacity == 1 and r.used > 0 then
    if r.waiters == 1 and r.seq == 0 then  -- in the record, where the fast path puts it
      local size, at = match(holder, '^(%d+) ()')
      if not size then return redis.error_reply('HOLDFAST_CORRUPT the record is damaged') end
      first = r.read_waiter(sub(holder, at + size + 1, at + size + 32), sub(holder, at + size + 34))
      holder = sub(holder, at, at + size - 1)
      r.waiters, r.absent_before = 0, true
    end
    local o, its_fence, from, lasts, since, l, p, n =
        match(holder, '^(%x+) (%d+) (%d+) (%d+) (%d+) ([01]) (%S+) (.*)$')
    if not o or math.max(its_fence, from + lasts) > 9999999999999999 then
      return redis.error_reply('HOLDFAST_CORRUPT the record is damaged')
    end
    r.held = {owner = o, weight = 1, fence = tonumber(its_fence), expires = from + lasts, since = since, lingers = l,
              peer = p, note = n}
    r.kept = math.max(r.kept, r.held.expires)
  end
end

@barrier_condition.lua@
-- ---- the steps ----------------------------------------------------------------------------------

local barrier, condition = r.kind == 'barrier', r.kind == 'condition_variable'
if barrier or condition or asked_kind == 'barrier' or asked_kind == 'condition_variable' then r.barrier_condition() end

-- 1. Expired leases and queue entries are dropped, for every command.
local held, gone = r.held, 0
if first and r.places_end <= now then
  first, r.dirty = nil, true
elseif first and (verb ~= 'inspect' or held.expires <= now) then
  r.enqueue(first, r.places_end)
end
if held and held.expires <= now then
  r.drop_holder(held.owner)
  gone = 1
end
if r.capacity > 1 and r.used > 0 then
  local one = call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')
  if not one[1] or not r.holder_of(one[1]) then
    r.forget_all()
    gone = 1
  elseif tonumber(one[2]) <= now then
    for _, o in ipairs(call('ZRANGEBYSCORE', KEYS[5], '-inf', clock)) do gone = gone + (r.drop_holder(o) and 1 or 0) end
  end
end
if barrier and r.waiters > 0 then
  local head = call('ZRANGE', KEYS[3], 0, 0)[1]
  if not head or not r.waiter_of(sub(head, 15)) or not call('ZRANGE', KEYS[4], 0, 0)[1] then r.forget_all() end
end
if r.waiters > 0 and r.places_end <= now then
  local over = {}
  for _, place in ipairs(call('ZRANGEBYSCORE', KEYS[4], 1, clock)) do over[place] = true end
  call('ZREMRANGEBYSCORE', KEYS[4], 1, clock)
  for _, member in ipairs(next(over) and call('ZRANGE', KEYS[3], 0, -1) or {}) do
    local w = r.waiter_of(sub(member, 15))
    if w and over[r.place_of(w.owner, w.peer)] then
      if barrier and w.peer ~= '-' then gone = gone + 1 end
      r.drop_waiter(w.owner)
    end
  end
  local ends = call('ZRANGE', KEYS[4], 0, 1, 'WITHSCORES')
  r.places_end, r.dirty = tonumber(ends[ends[1] == '' and 4 or 2]), true
  if not r.places_end and r.waiters > 0 then r.forget_waiters() end  -- evicted, and no waiter has asked since
  r.places_end = r.places_end or now
end
if no_places and r.waiters > 0 then r.place_all() end

if barrier and gone > 0 then r.scatter() end
if condition then r.wake(gone) end

-- 2. inspect changes nothing else.
if verb == 'inspect' then
  local holders, queue = {}, {}
  local function add(h, expires)
    holders[#holders + 1] = {h.owner, h.weight, h.fence, expires, h.since, h.peer, sub(h.note, 1, 4096), h.lingers}
  end
  if r.held then add(r.held, r.held.expires) end
  local ends = r.capacity > 1 and call('ZRANGE', KEYS[5], 0, -1, 'WITHSCORES') or {}
  for i = 1, #ends, 2 do
    local h = r.holder_of(ends[i])
    if h then add(h, tonumber(ends[i + 1])) end
  end
  for _, member in ipairs(r.waiters > 0 and call('ZRANGE', KEYS[3], 0, -1) or {}) do
    local w = r.waiter_of(sub(member, 15))
    if w then
      local ends = tonumber(call('ZSCORE', KEYS[4], r.place_of(w.owner, w.peer)) or r.places_end)
      queue[#queue + 1] = {w.owner, w.weight, tonumber(w.priority), w.lease, ends, w.since, w.peer, sub(w.note, 1, 4096),
                           w.lingers}
    end
  end
  if first and r.waiters == 0 then
    queue = {{first.owner, 1, tonumber(first.priority), first.lease, r.places_end, first.since, first.peer, first.note,
              first.lingers}}
  end
  reply[8], reply[9], reply[10], reply[11], reply[12] = r.kind, r.capacity, r.fence, holders, queue
  if r.kind == 'election' or not text then
    reply[13] = {}
    for _, leader in ipairs(call('ZRANGE', KEYS[5], 0, -1)) do
      local fence, since, note = match(leader, '^(%d+) (%d+) (.*)$')
      if fence then reply[13][#reply[13] + 1] = {fence, since, note} end
    end
  end
  r.save()
  return reply
end

-- 3. A name has one kind at a time; an unused name may change its kind.
if verb == 'acquire' or verb == 'notify' then
  if r.used == 0 and r.waiters == 0 then
    if r.kind == 'election' and asked_kind ~= 'election' then call('DEL', KEYS[5]) end
    r.kind, r.capacity, r.absent_before = asked_kind, asked_capacity, true
  elseif r.kind ~= asked_kind or r.capacity ~= asked_capacity then
    reply[1] = r.kind ~= asked_kind and KIND_MISMATCH or CAPACITY_MISMATCH
    reply[8], reply[9] = r.kind, r.capacity
    r.save()
    if r.told then reply[#reply + 1] = r.told end
    return reply
  end
  barrier, condition = r.kind == 'barrier', r.kind == 'condition_variable'
end
-- On a release, the secret proves to the next owner that the released holder was the one before it.
r.proves = r.kind == 'mutex' or r.kind == 'election'
if barrier or condition then
  r.hand_over = barrier and r.open_if_all_came or function() end
  r.tell_lingering = function() end
end

-- 4. One owner leaves and another of the same session comes, in one step.
if leaving ~= '' then
  local held = r.drop_holder(leaving)
  r.passed = held and r.proves and ARGV[14]
  r.completed = barrier and held and held.lingers == '1' and lingers == '0'
  reply[7] = (held or r.drop_waiter(leaving)) and 1 or 0
end

-- 5., 6. The command itself, and the hand-over that may follow from it. A server whose memory is
-- full lets a script go on writing if it has written before, even if only by a ZREM of nothing.
-- This also applies to an owner that already holds the lock or is queued: its command needs no more
-- memory, and an owner that was granted the lock learns it by asking.
local mine = verb ~= 'evict' and r.holder_of(owner)

-- At a barrier, a participant that arrives again names its arrival in the previous round. If that
-- arrival is no longer known, the barrier was broken.
local refused = false
if barrier and verb == 'acquire' then
  if r.detached then peer = '-' end
  wait = true
  if not mine and not r.waiter_of(owner) then
    refused = leaving ~= '' and reply[7] == 0 and ABSENT or r.used + r.waiters >= r.capacity and BUSY
  end
end

if refused then
  reply[1] = refused

elseif condition and mine and (verb == 'acquire' or verb == 'renew') then
  -- A woken waiter leaves the condition variable.
  r.report_holding(mine)
  r.drop_holder(owner)

elseif verb == 'notify' then
  reply[6] = condition and r.wake(weight) or 0
  reply[1] = reply[6] > 0 and DONE or ABSENT

elseif verb == 'release' then
  local was_held = r.drop_holder(owner)
  r.passed = was_held and r.proves and ARGV[3]
  reply[1] = (was_held or r.drop_waiter(owner)) and DONE or ABSENT
  if was_held and condition then r.wake(1) end
  r.hand_over()
  if barrier and reply[1] == DONE then r.forget_dropped() end

elseif verb == 'acquire' and not mine and r.waiters == 0 and r.used + weight <= r.capacity and not barrier and
       not condition then
  -- enters the queue and leaves it at once
  r.grant({owner = owner, weight = weight, lingers = lingers, note = note}, lease, r.detached and '-' or peer)
  r.report_holding(r.holder_of(owner))

elseif verb == 'acquire' and not mine and r.waiters == 0 and not wait then
  r.describe_wait(1)
  r.tell_lingering()
  reply[1] = BUSY

elseif verb == 'acquire' and not mine then
  local waiting = r.waiter_in_queue(owner)
  local member = waiting and waiting.member
  -- Then the new waiter is behind all others.
  local behind = r.waiters > 0 and not waiting and r.last.priority + 0 >= priority + 0 and r.last
  if waiting then
    call('ZREM', KEYS[5], '')
    r.put_place(owner, waiting.peer, now + place, true)
  else
    member = r.enqueue({owner = owner, weight = weight, priority = priority, lease = lease, since = clock,
                        lingers = lingers, peer = peer, note = note}, now + place)
  end
  local served = r.hand_over()
  mine = r.holder_of(owner)
  if mine then
    r.report_holding(mine)
  elseif not barrier or r.waiters > 0 then  -- otherwise all have arrived, and none of them will come again
    r.describe_wait(behind and r.waiters or r.rank_of(member) + 1)
    reply[1] = wait and QUEUED or BUSY
    if not waiting and wait then reply[7] = reply[7] + 2 end
    -- The owner whose secret, once released, tells this waiter that its turn has come.
    if wait and r.proves and (waiting and waiting.priority or priority) == '0' then
      local before = reply[6] > 1 and (behind and behind.member or call('ZRANGE', KEYS[3], reply[6] - 2, reply[6] - 2)[1])
      reply[8] = before and sub(before, 15) or r.held and r.held.owner
    end
    if reply[6] == 1 and not served then r.tell_lingering() end
    if not wait then
      r.drop_waiter(owner)  -- those waiters behind it may fit now that it has given up
      r.hand_over()
    end
  end

elseif verb == 'acquire' or verb == 'renew' then
  local waiting = not mine and r.waiter_in_queue(owner)
  local only_asks = barrier and verb == 'renew' and wait
  if mine and not only_asks then
    local least = 0
    if verb == 'acquire' then
      call('ZREM', KEYS[5], '')
      -- An earlier attempt may arrive late, after the lease was extended.
      if not barrier then least = mine.expires or tonumber(call('ZSCORE', KEYS[5], owner)) end
    end
    mine.expires = math.max(now + lease, least)
    if verb == 'acquire' and r.detached and not barrier then mine.peer = '-' end
    -- One of the stores of a quorum learns the fence that another store has granted.
    if r.at_least > mine.fence and not barrier then
      mine.fence, r.fence = r.at_least, math.max(r.fence, r.at_least)
    end
    r.put_holder(mine)
  elseif waiting and not only_asks then
    r.put_place(owner, waiting.peer, now + place, true)
  end
  r.hand_over()
  mine = mine or r.holder_of(owner)
  if mine then
    r.report_holding(mine)
  else
    if r.waiters == 0 then waiting = nil end  -- all participants have come, and none of them comes again
    reply[1] = waiting and QUEUED or ABSENT
    if waiting then r.describe_wait(r.rank_of(waiting.member) + 1) end
  end

elseif verb == 'resize' then
  -- Succeeds only if there is room at once: two readers that both wait for the other to leave would
  -- wait for ever. An owner whose weight grows gets a new fence.
  if not mine then
    reply[1] = ABSENT
  elseif r.used - mine.weight + weight > r.capacity then
    reply[1] = BUSY
  else
    if weight > mine.weight then mine.fence = r.next_fence() end
    r.used = r.used - mine.weight + weight
    mine.weight = weight
    mine.expires = mine.expires or tonumber(call('ZSCORE', KEYS[5], owner))
    r.put_holder(mine)
    r.report_holding(mine)
  end
  r.hand_over()

elseif verb == 'evict' then
  gone = 0
  if not match(owner, '^0+$') then
    gone = r.drop_holder(owner) and 1 or 0
  elseif r.held then
    gone = r.drop_holder(r.held.owner) and 1 or 0
  elseif r.used > 0 then
    for _, o in ipairs(call('ZRANGE', KEYS[5], 0, -1)) do gone = gone + (r.drop_holder(o) and 1 or 0) end
  end
  if barrier and match(owner, '^0+$') then gone = gone + r.waiters end
  reply[1], reply[6] = gone > 0 and DONE or ABSENT, gone
  if barrier and gone > 0 then r.scatter() end
  r.hand_over()
end

-- 7. Only the fence remains, and that only until the clock has certainly passed it.
if r.used == 0 and r.waiters == 0 and r.capacity ~= 0 then
  r.capacity, r.seq, r.kept, r.places_end, r.dirty = 0, 0, 0, 0, true
end
r.save()
if r.told then reply[#reply + 1] = r.told end
return reply
