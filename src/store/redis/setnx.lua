-- The oldest recipe: a key for ever, which holds the time when its owner's lease ends. An ended one
-- is taken over. The others judge by their own clocks; here it is the server's.
--
--   KEYS[1]  the lock            ARGV: verb mine lease unit next
--   mine     what this owner may have written, with spaces between, or ""; the first of it is known
--            to have been; lease in microseconds; unit: how many of them the numbers in the values
--            count (a second or a millisecond); next: what to write, if it is about what the lease
--            needs: a client that hears no answer knows it then; "until …"
--
-- Answers {state, value, microseconds left, the server's time}: 0 done (the value is what was written, and what is
-- left is the time that it was), 1 taken, 2 empty, 3 none of this layout.

local verb, mine, lease, unit = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local next = tonumber(ARGV[5])
@late.lua@

local kind = redis.call('TYPE', KEYS[1]).ok
local value, ends
if kind == 'string' then
  value = redis.call('GET', KEYS[1])
  -- To tonumber "nan" and "inf" are numbers as well; and what ends after the year 2286 ends at no time.
  ends = #value <= 128 and string.match(value, '^%d+%.?%d*$') and tonumber(value) * unit
  if not ends or ends > 10000000000000000 or redis.call('PTTL', KEYS[1]) >= 0 then return {3, shown(value), 0} end
elseif kind ~= 'none' then
  return {3, 'a ' .. kind, 0}
end

local alive = ends and ends >= now_us
local ours = alive and string.find(' ' .. mine .. ' ', ' ' .. value .. ' ', 1, true)
-- When one of them has ended, another owner may have come in, and written the same.
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
