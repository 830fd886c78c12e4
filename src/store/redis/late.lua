-- A part of the scripts of the dialects. Of what another program has written: nothing of a lock is longer, and nobody is to be
-- sent all of it.
local function shown(text) return string.sub(text, 1, 128) end

-- The server's time, in microseconds.
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]

-- What was kept back on its way for longer than anybody waits for it is refused,
-- because the lock may have been given back, and nobody would give it back again. The last word says until when it may
-- be carried out, by the clock of the server; and perhaps "until after": whatever had to be carried out until `after` is too
-- late from now on. The last key, which no script lists, remembers that for as long as anything may come; where no key can, it
-- is the first one.
do
  local mark, stamp = KEYS[#KEYS], ARGV[#ARGV]
  KEYS[#KEYS] = nil
  local clock, due, after = time[1] .. string.sub('00000' .. time[2], -6), string.sub(stamp, 1, 16), string.sub(stamp, 18)
  if verb ~= 'look' and verb ~= 'inspect' then
    local is_asked = verb ~= 'remove' or after >= clock  -- a release is never late
    local known = is_asked and mark ~= KEYS[1] and redis.call('GET', mark)
    -- Nobody waits for years.
    if known and not (string.match(known, '^%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d$') and known - clock < 100000000000000) then
      return redis.error_reply('HOLDFAST_CORRUPT the key ' .. mark .. ' is damaged')
    end
    known = known or '0'
    if verb ~= 'remove' and (clock > due or due <= known) then
      return redis.error_reply('HOLDFAST_LATE ' .. clock .. ' ' .. known)
    end
    if after >= clock and after > known and mark ~= KEYS[1] then
      redis.call('DEL', mark)  -- a script that has written may write on, also where the memory is full
      redis.call('SET', mark, after, 'PX', string.format('%.0f', (after - clock) / 1000 + 1))
    end
  end
end

