-- The fast path of permits.lua, which includes this file. It serves the most frequent commands for
-- a mutex at a fraction of the cost of the general path. It takes the same steps, but here each
-- call, each string, each function, and each number that becomes text counts. So times stay text
-- (16 digits until the year 2286), and the script defines no functions. Every unusual state goes to
-- the general path: a fence ahead of the clock, an expired lease or queue entry, an owner that
-- repeats its request.
--
-- The server itself expires a lock without waiters: its key lives as long as the lease. A single
-- waiter is part of the record, so a hand-over is one GET, one SET, and one PUBLISH.

-- The new record and its time to live in ms; the reply; the notifications and the session that gets
-- them.
local record, answer, lasts, news, to
local goes_on = verb == 'release'  -- needs no more memory, so it works even on a full server

if verb == 'lock' then
  -- The mutex is free.
  if not text or #text == 38 and sub(text, 1, 12) == 'hf1 mutex 0 ' and sub(text, 13, 28) < clock then
    record = 'hf1 mutex 1 ' .. clock .. ' 1 0 0 0 0 ' .. owner .. ' ' .. clock .. ' ' .. clock .. ' ' .. lease .. ' ' ..
             clock .. ' ' .. ARGV[4]
    answer, lasts = clock .. ' ' .. clock, sub(lease, 1, -4)
  end
elseif verb == 'release' and text and sub(text, 29, 72) == ' 1 0 0 0 0 ' .. owner .. ' ' and
       sub(text, 1, 12) == 'hf1 mutex 1 ' then
  -- The queue is empty.
  local fence = sub(text, 13, 28)
  if fence > clock then
    -- The clock was set back: the rest of the name must be kept for longer.
  elseif fixed and match(text, '^%d+ (%d+)', 73) + match(text, '^%d+ %d+ (%d+)', 73) <= tonumber(fixed) then
    -- The lease has ended by the tests' own clock.
  else
    record, answer, lasts = 'hf1 mutex 0 ' .. fence .. ' 0 0 0 0 0', DONE, '1001'
  end
end

-- The mutex is held, and waiters may be queued.
if not answer and text and sub(text, 1, 12) == 'hf1 mutex 1 ' and sub(text, 13, 28) < clock then
  local now, head, size = clock + 0, sub(text, 1, 28), nil
  local waiters, seq, kept, places_end, at = match(text, '^ 1 (%d+) (%d+) (%d+) (%d+) ()', 29)
  local none, alone = waiters == '0', waiters == '1' and seq == '0'
  if alone then
    size, at = match(text, '^(%d+) ()', at)
  end
  local holder, fence, from, its, after, lingers, peer
  if at and #seq < 17 and #kept < 17 and #places_end < 17 and (none or places_end > clock) then
    holder, fence, from, its, after, lingers, peer = match(text, '^(%x+) (%d+) (%d+) (%d+) ()%d+ ([01]) (%S+) ', at)
  end
  local ends = holder and from + its or 0

  if ends <= now or ends > 9999999999999999 or #fence > 16 then
    -- A lease or queue entry has expired, or the record is damaged.

  elseif verb == 'lock' and owner ~= holder then
    local flags, place, priority = match(ARGV[5], '^(%a*) (%d+) (.*)$')
    local waits, stays, position, fresh = sub(flags, 1, 1) == 'w', now + place, none and 1, 2
    local before = waits and priority == '0' and holder
    if none and waits then
      local held = sub(text, at)
      record = head .. ' 1 1 0 0 ' .. format('%.0f', stays) .. ' ' .. #held .. ' ' .. held .. ' ' .. owner .. ' w 1 ' ..
               priority .. ' 0 ' .. lease .. ' ' .. clock .. ' ' .. ARGV[4]
      lasts = math.max(stays, ends) - now
    elseif alone and waits and sub(text, at + size + 1, at + size + 32) == owner then  -- repeated request
      record, position, fresh, goes_on = head .. ' 1 1 0 0 ' .. format('%.0f', stays) .. sub(text, 54), 1, 0, true
      before = match(text, '^w 1 0 ', at + size + 34) and holder
      lasts = math.max(stays, ends) - now
    elseif not none and not alone and waits and stays <= kept + 0 then
      last = call('ZRANGE', KEYS[3], -1, -1)[1]
      found = call('HMGET', KEYS[2], owner, sub(last or '', 15))
      local of, its_priority = match(ARGV[4], '^[01] (%S+)'), match(found[2] or '', '^w 1 (%S+) ')
      local placed = not found[1] and its_priority and
                     redis.pcall('ZADD', KEYS[4], format('%.0f', stays), of ~= '-' and of or owner, 0, '')
      if placed == 0 or placed == 1 then
        local member = format('%014x', seq + 1) .. owner
        call('ZADD', KEYS[3], -priority, member)
        call('HSET', KEYS[2], owner, 'w 1 ' .. priority .. ' ' .. seq + 1 .. ' ' .. lease .. ' ' .. clock .. ' ' .. ARGV[4])
        position = waiters + 1
        if its_priority + 0 < priority + 0 then
          position = call('ZRANK', KEYS[3], member) + 1
          last = position > 1 and call('ZRANGE', KEYS[3], position - 2, position - 2)[1]
        end
        if before and position > 1 then before = sub(last, 15) end
        if stays < places_end + 0 then places_end = format('%.0f', stays) end
        record = head .. ' 1 ' .. waiters + 1 .. ' ' .. seq + 1 .. ' ' .. kept .. ' ' .. places_end .. ' ' .. sub(text, at)
        lasts = kept - now
      elseif placed then  -- the general path retries it, also when the server is full
        if type(placed) == 'table' and not match(placed.err, 'OOM') then return placed end
        no_places = placed == 2
      end
    end
    if position then
      local again = math.min(@retry_after_us@, @retry_step_us@ * position, position == 1 and ends - now or @retry_after_us@)
      answer = {waits and QUEUED or BUSY, 0, 0, now, math.max(again, @retry_after_at_least_us@), position,
                waits and fresh or 0, before or nil}
    end
    if position == 1 and lingers == '1' then
      news, to = {'wanted ' .. holder .. ' ' .. fence .. ' ' .. format('%.0f', ends)}, peer
    end

  elseif verb == 'release' and owner == holder and not none then
    local first, data
    if alone then
      first, data = sub(text, at + size + 1, at + size + 32), sub(text, at + size + 34)
    elseif waiters == '1' or kept - now >= @claim_us@ then
      first = sub(call('ZPOPMIN', KEYS[3])[1] or '', 15)
      data = call('HGET', KEYS[2], first)
    end
    local priority, its, who, lingers, peer = match(data or '', '^w 1 (%S+) %d+ (%d+) %d+ (([01]) (%S+) .*)$')
    if its then  -- otherwise the waiter's data was evicted: the waiter asks again
      its = math.min(its, @claim_us@)
      local holds = ' ' .. first .. ' ' .. clock .. ' ' .. clock .. ' ' .. its .. ' ' .. clock .. ' ' .. who
      local told = first .. ' ' .. clock .. ' ' .. format('%.0f', now + its)
      answer, lasts, news, to = DONE, its, {'granted ' .. told}, peer
      if priority == '0' and ARGV[3] then news[1] = 'passed ' .. told .. ' ' .. ARGV[3] end
      if waiters == '1' then
        record = 'hf1 mutex 1 ' .. clock .. ' 1 0 0 0 0' .. holds
        if not alone then call('DEL', KEYS[2], KEYS[4]) end
      else
        record = 'hf1 mutex 1 ' .. clock .. ' 1 ' .. waiters - 1 .. ' ' .. seq .. ' ' .. kept .. ' ' .. places_end .. holds
        lasts = kept - now
        call('HDEL', KEYS[2], first)
        if peer == '-' then call('ZREM', KEYS[4], first) end
        if lingers == '1' then news[2] = 'wanted ' .. told end
      end
    end

  elseif verb == 'renew' and owner == holder and (none or alone or now + lease <= kept + 0) then
    local holds = owner .. ' ' .. fence .. ' ' .. clock .. ' ' .. lease .. ' ' .. sub(text, after)
    record = sub(text, 1, at - 1) .. holds
    if alone then record = sub(text, 1, 54) .. size + #holds - (#text - at + 1) .. ' ' .. holds end
    answer = fence .. ' ' .. clock
    lasts = (none and now + lease or alone and math.max(now + lease, places_end) or kept) - now
  end
  if record then lasts = format('%.0f', lasts / 1000 + 1) end
end

if record and fixed then
  call('SET', record_key, record)
elseif record and redis.pcall('SET', record_key, record, 'PX', lasts).err then
  -- Even on a server whose memory is full, a release, a hand-over, and a repeated request of a
  -- waiter succeed: Redis lets a script that has written go on writing.
  if goes_on then call('DEL', record_key) end
  call('SET', record_key, record, 'PX', lasts)  -- or returns its error
end
if answer == DONE and fixed then answer = {DONE, 0, 0, tonumber(fixed), 0, 0, 0} end
local list = fixed and news and {}
if list then answer[#answer + 1] = list end
for i = 1, news and #news or 0 do
  local said = news[i] .. ' ' .. record_key
@publish.lua@
  if list then list[i] = said .. ' ' .. to end
end
if answer then return answer end
