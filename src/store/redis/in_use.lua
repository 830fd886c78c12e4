-- A part of countdown.lua and rate.lua: finds out whether the name still has a holder or a waiter
-- of a lock. A record with many entries outlives them by up to a minute: permits.lua.
local used, waiters, seq, places_end, holder =
    string.match(text, '^hf1 %l[%l_]* %d+ %d+ (%d+) (%d+) (%d+) %d+ (%d+) ?(.*)$')
local in_use = not used  -- an unreadable record is left alone
if capacity == '1' and used == '1' then
  local alone = waiters == '1' and seq == '0'
  local from, lasts = string.match(holder, (alone and '^%d+ ' or '^') .. '%x+ %d+ (%d+) (%d+) ')
  in_use = not from or from + lasts > now or alone and places_end + 0 > now
  if alone then waiters = '0' end
elseif used and used ~= '0' then
  local last = call('ZRANGE', leases, -1, -1, 'WITHSCORES')[2]
  in_use = last and last + 0 > now
end
if not in_use and waiters ~= '0' then
  local last = call('ZRANGE', places, -1, -1, 'WITHSCORES')[2]
  in_use = last and last + 0 > now
end
