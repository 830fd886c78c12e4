-- A part of permits.lua and countdown.lua: another kind has the name, and its record says from now on what is too late.
if says_more then
  call('ZREM', KEYS[5], '')  -- a script that has written may write on, also where the memory is full
  call('SET', KEYS[1], 'hf1 after ' .. after .. ' ' .. sub(text, 5), 'PX',
       format('%.0f', math.max(call('PTTL', KEYS[1]), (after - clock) / 1000 + 1)))
end
