-- A part of permits.lua: functions for barriers and condition_variables, which the other kinds need not pay for.

function r.barrier_condition()
  -- A barrier: one is missing, so nobody goes on, and everybody learns of it.
  function r.scatter()
    for _, member in ipairs(r.waiters > 0 and call('ZRANGE', KEYS[3], 0, -1) or {}) do
      local w = r.waiter_of(sub(member, 15))
      if w and w.peer ~= '-' then r.tell('opened', w.owner, w.peer, 0, 0) end
    end
    call('DEL', KEYS[2], KEYS[3], KEYS[4], KEYS[5])
    r.held, r.used, r.waiters, r.dirty = nil, 0, 0, true
  end

  -- A barrier: when all have come, all go on; the last to come first, if it asks for that. Those who will
  -- not come again stay arrived.
  function r.open_if_all_came()
    if r.waiters < r.capacity then return end
    local alone = verb == 'acquire' and match(flags, 'l')
    for _, head in ipairs(call('ZRANGE', KEYS[3], 0, -1)) do
      local o = sub(head, 15)
      local w, own = r.waiter_of(o), o == owner
      local goes = w and w.peer ~= '-'
      if alone then goes = w and own end
      if goes then
        call('ZREM', KEYS[3], head)
        r.forget_waiter(o, w)
        w.lingers = alone and '1' or '0'
        r.grant(w, w.lease, w.peer)
        if not own then r.tell('granted', o, w.peer, r.fence, now + w.lease) end
      elseif w and w.peer == '-' then
        r.put_place(o, '-', now + @dropped_lasts_us@)  -- who dropped out is remembered while the barrier is in use
      end
    end
    if r.used == 0 then r.scatter() end
  end

  -- A condition_variable: the first in line are woken. They have a moment to say that they are awake; else
  -- it is the turn of those behind them.
  function r.wake(count)
    local woken, at_least = 0, r.at_least
    r.at_least = 0  -- to be woken is no grant of a quorum
    while woken < count and r.waiters > 0 do
      local head = call('ZPOPMIN', KEYS[3])[1]
      local w = head and r.waiter_of(sub(head, 15))
      if head then r.forget_waiter(sub(head, 15), w) else r.waiters = 0 end
      if w then  -- else its data was evicted: it asks again
        r.grant(w, @claim_us@, w.peer)
        r.tell('granted', w.owner, w.peer, r.fence, now + @claim_us@)
        woken = woken + 1
      end
    end
    r.at_least = at_least
    return woken
  end

  -- A barrier that only those are left at who will not come again.
  function r.forget_dropped()
    if r.used > 0 or r.waiters == 0 then return end
    for _, head in ipairs(call('ZRANGE', KEYS[3], 0, -1)) do
      local w = r.waiter_of(sub(head, 15))
      if w and w.peer ~= '-' then return end
    end
    r.scatter()
  end
end
