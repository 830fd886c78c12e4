-- The oldest recipe: a key without a time to live. Its value is the time when the owner's lease
-- ends. An expired lock may be taken over. Other implementations compare that time with their own
-- clocks; this script uses the server's clock.
--
--   KEYS[1]  the lock            ARGV: verb mine lease unit next
--   mine     the values that this owner may have written, separated by spaces, or ""; the first of
--            them is known to have been written
--   lease    in microseconds
--   unit     the unit of the numbers in the values, in microseconds (a second or a millisecond)
--   next     the value to write if it is close to the value that the lease requires: so a client
--            that gets no answer knows the value; then "until …"
--
-- Answers {state, value, microseconds left, the server's time}. State: 0 done (the value is the one
-- written; instead of the microseconds left, the time of the write), 1 taken, 2 empty, 3 not of
-- this layout.

local verb, mine, lease, unit = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local next = tonumber(ARGV[5])
@late.lua@

local kind = redis.call('TYPE', KEYS[1]).ok
local value, ends
if kind == 'string' then
  value = redis.call('GET', KEYS[1])
  -- tonumber accepts "nan" and "inf" as numbers, too. A time after the year 2286 counts as damaged.
  ends = #value <= 128 and string.match(value, '^%d+%.?%d*$') and tonumber(value) * unit
  if not ends or ends > 10000000000000000 or redis.call('PTTL', KEYS[1]) >= 0 then return {3, shown(value), 0} end
elseif kind ~= 'none' then
  return {3, 'a ' .. kind, 0}
end

local alive = ends and ends >= now_us
local ours = alive and string.find(' ' .. mine .. ' ', ' ' .. value .. ' ', 1, true)
-- If one of these values has expired, another owner may have acquired the lock and written the same
-- value.
for one in string.gmatch(mine, '%S+') do ours = ours and tonumber(one) * unit >= now_us end
if verb == 'look' then
  if alive then return {1, value, ends - now_us, now_us} end
  return {2, '', 0}
end
if verb == 'remove' then
  if ours then redis.call('DEL', KEYS[1]) end
  return {ours and 0 or 2, '', 0}
end
if alive and not ours then return {1, value, ends - now_us, now_us} end
if verb == 'extend' and not ours then return {2, '', 0} end
local least = math.floor((now_us + lease) / unit) + 1
local fits = next and next >= least and (next - least) * unit <= 2 * unit + 200000
value = string.format('%.0f', fits and next or least)
redis.call('SET', KEYS[1], value)
return {0, value, now_us, now_us}
