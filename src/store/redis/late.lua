-- A part of the scripts of the dialects. Shortens text that another program has written: no value
-- of a lock is longer, and no client should receive all of it.
local function shown(text) return string.sub(text, 1, 128) end

-- The server's time, in microseconds.
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]

-- Refuses a command that was delayed on its way for longer than any client waits for it: the lock
-- may have been released since, and no client would release it again. The last argument is "until",
-- the last time on the server's clock when the command may be carried out, or "until after": from
-- now on every command whose `until` is not later than `after` is too late. The last key, which no
-- script lists, remembers `after` for as long as such a command may arrive. If a script has no such
-- key, the last key is the same as the first.
do
  local mark, stamp = KEYS[#KEYS], ARGV[#ARGV]
  KEYS[#KEYS] = nil
  local clock, due, after = time[1] .. string.sub('00000' .. time[2], -6), string.sub(stamp, 1, 16), string.sub(stamp, 18)
  if verb ~= 'look' and verb ~= 'inspect' then
    local is_asked = verb ~= 'remove' or after >= clock  -- a release is never late
    local known = is_asked and mark ~= KEYS[1] and redis.call('GET', mark)
    -- No client waits for years, so a time that far ahead is damage.
    if known and not (string.match(known, '^%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d$') and known - clock < 100000000000000) then
      return redis.error_reply('HOLDFAST_CORRUPT the key ' .. mark .. ' is damaged')
    end
    known = known or '0'
    if verb ~= 'remove' and (clock > due or due <= known) then
      return redis.error_reply('HOLDFAST_LATE ' .. clock .. ' ' .. known)
    end
    if after >= clock and after > known and mark ~= KEYS[1] then
      -- A script that has written may go on writing even if the memory is full.
      redis.call('DEL', mark)
      redis.call('SET', mark, after, 'PX', string.format('%.0f', (after - clock) / 1000 + 1))
    end
  end
end

