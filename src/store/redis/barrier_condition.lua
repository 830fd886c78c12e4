-- A part of permits.lua: the functions for barriers and condition variables, which cost the other
-- kinds nothing.

function r.barrier_condition()
  -- Returns the waiters at a barrier, in order, without those whose data was evicted: of each what
  -- it takes along when it goes on. Here and below in batches of 500, because of the limits of Lua's
  -- stack.
  function r.read_queue()
    local heads, all = r.waiters > 0 and call('ZRANGE', KEYS[3], 0, -1) or {}, {}
    for first = 1, #heads, 500 do
      local owners = {}
      for i = first, math.min(first + 499, #heads) do owners[#owners + 1] = sub(heads[i], 15) end
      for i, data in ipairs(call('HMGET', KEYS[2], unpack(owners))) do
        local weight, lease, who, peer = match(data or '', '^w (%d+) %-?%d+ %d+ (%d+) %d+ [01] ((%S+) .*)$')
        if weight then
          all[#all + 1] = {owner = owners[i], member = heads[first + i - 1], weight = weight, lease = lease, peer = peer,
                           who = who}
        end
      end
    end
    return all
  end

  -- Notifies many waiters of a barrier, each session with one message. It has the owners of all
  -- addressees, and neither fence nor end, since a notified waiter asks for them.
  function r.tell_all(what, all)
    local peers, of = {}, {}
    for _, w in ipairs(all) do
      if not of[w.peer] then
        of[w.peer], peers[#peers + 1] = {}, w.peer
      end
      of[w.peer][#of[w.peer] + 1] = w.owner
      if r.told then
        r.told[#r.told + 1] = format('%s %s %.0f %.0f %s %s', what, w.owner, w.fence or 0, w.expires or 0, KEYS[1], w.peer)
      end
    end
    for _, to in ipairs(peers) do
      local said = what .. ' ' .. table.concat(of[to], '+') .. ' 0 0 ' .. KEYS[1]
@publish.lua@
    end
  end

  -- Lets waiters of a barrier go on: does what r.forget_waiter and r.grant do, with few commands
  -- for all waiters, and with little work for each.
  function r.let_go_on(all, lingers)
    local latest, ends_of, since = 0, {}, ' ' .. clock .. ' ' .. lingers .. ' '
    for first = 1, #all, 500 do
      local members, data, ends = {}, {}, {}
      for i = first, math.min(first + 499, #all) do
        local w = all[i]
        local owner, at = w.owner, 2 * #members
        local until_at = ends_of[w.lease]
        if not until_at then
          latest = math.max(latest, now + w.lease)
          until_at = format('%.0f', now + w.lease)
          ends_of[w.lease] = until_at
        end
        w.fence, w.expires = r.next_fence(owner == r.asks and r.at_least), until_at
        members[#members + 1] = w.member
        data[at + 1], data[at + 2] = owner, 'h ' .. w.weight .. format(' %.0f', w.fence) .. since .. w.who
        ends[at + 1], ends[at + 2] = until_at, owner
        r.used, r.waiters = r.used + w.weight, r.waiters - 1
        if w.peer == '-' then call('ZREM', KEYS[4], owner) end
      end
      call('ZREM', KEYS[3], unpack(members))
      call('HSET', KEYS[2], unpack(data))
      call('ZADD', KEYS[5], unpack(ends))
    end
    if r.waiters == 0 then call('DEL', KEYS[4]) end
    -- Creates the leases: their key was gone when the last member was removed.
    r.dirty, r.created = true, true
    r.keep_until(latest)
  end

  -- A participant of the barrier is missing: no participant goes on, and all waiters are notified.
  function r.scatter()
    local there = {}
    for _, w in ipairs(r.read_queue()) do
      if w.peer ~= '-' then there[#there + 1] = w end
    end
    r.tell_all('opened', there)
    call('DEL', KEYS[2], KEYS[3], KEYS[4], KEYS[5])
    r.held, r.used, r.waiters, r.dirty = nil, 0, 0, true
  end

  -- When all participants of the barrier have arrived, all go on. If the last to arrive asks for
  -- that, it goes on alone first, and calls the others later. If some have left by then, the phase
  -- is over all the same. Participants that dropped out stay arrived.
  function r.open_if_all_came()
    if r.waiters < r.capacity and not r.completed then return end
    local alone = verb == 'acquire' and match(flags, 'l')
    local go, others = {}, {}
    for _, w in ipairs(r.read_queue()) do
      local own = w.owner == owner
      local goes = w.peer ~= '-'
      if alone then goes = own end
      if goes then
        go[#go + 1] = w
        if not own then others[#others + 1] = w end
      elseif w.peer == '-' then
        -- A participant that dropped out is remembered while the barrier is in use.
        r.put_place(w.owner, '-', now + @dropped_lasts_us@)
      end
    end
    if go[1] and r.capacity > 1 then
      r.let_go_on(go, alone and '1' or '0')
    elseif go[1] then
      local w = r.waiter_of(go[1].owner)
      call('ZREM', KEYS[3], w.member)
      r.forget_waiter(w.owner, w)
      w.lingers = alone and '1' or '0'
      r.grant(w, w.lease, w.peer)
    end
    r.tell_all('granted', others)
    if r.used == 0 then r.scatter() end
  end

  -- Wakes the first waiters of a condition variable. Each has a moment to confirm that it is awake;
  -- otherwise it is the next waiter's turn.
  function r.wake(count)
    local woken, at_least = 0, r.at_least
    r.at_least = 0  -- a wake-up is not a grant of a quorum
    while woken < count and r.waiters > 0 do
      local head = call('ZPOPMIN', KEYS[3])[1]
      local w = head and r.waiter_of(sub(head, 15))
      if head then r.forget_waiter(sub(head, 15), w) else r.forget_waiters() end
      if w then  -- otherwise the waiter's data was evicted: the waiter asks again
        r.grant(w, @claim_us@, w.peer)
        r.tell('granted', w.owner, w.peer, r.fence, now + @claim_us@)
        woken = woken + 1
      end
    end
    r.at_least = at_least
    return woken
  end

  -- Removes a barrier at which only participants are left that dropped out.
  function r.forget_dropped()
    if r.used > 0 or r.waiters == 0 then return end
    for _, head in ipairs(call('ZRANGE', KEYS[3], 0, -1)) do
      local w = r.waiter_of(sub(head, 15))
      if w and w.peer ~= '-' then return end
    end
    r.scatter()
  end
end
