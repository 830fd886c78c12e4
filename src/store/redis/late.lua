-- A part of the scripts of the dialects: what was kept back on its way for longer than anybody waits for it is refused,
-- because the lock may have been given back, and nobody would give it back again. The last word says until when it may
-- be carried out, by the clock of the server: link.hpp.

if verb ~= 'remove' and verb ~= 'look' and verb ~= 'inspect' then
  local time = redis.call('TIME')
  local clock = time[1] .. string.sub('00000' .. time[2], -6)
  if clock > string.sub(ARGV[#ARGV], 1, 16) then return redis.error_reply('HOLDFAST_LATE ' .. clock .. ' 0') end
end

