-- A part of permits.lua and countdown.lua: another kind has the name, and from now on its record
-- has the time `after`.
if says_more then
  -- A script that has written may go on writing even if the memory is full.
  call('ZREM', KEYS[5], '')
  call('SET', KEYS[1], 'hf1 after ' .. after .. ' ' .. sub(text, 5), 'PX',
       format('%.0f', math.max(call('PTTL', KEYS[1]), (after - clock) / 1000 + 1)))
end
