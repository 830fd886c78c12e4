-- A plain key that holds its owner's token: the layout of redis-py, node-redlock, redsync, and many
-- others. Other programs send SET NX PX. This script does the same, because SET cannot state until
-- when it may be carried out.
--
--   KEYS[1]  the lock            ARGV: verb token milliseconds "until …"
--
-- Answers {state, value, milliseconds left, the server's time in microseconds}. State: 0 done, 1
-- taken, 2 empty, 3 not of this layout (the value says what it is).

local verb, token, ms = ARGV[1], ARGV[2], ARGV[3]

@late.lua@
-- The two most frequent requests take few commands: to take a free lock, and to release a lock by
-- its owner. All other cases continue below, where the answer contains the reason.
if verb == 'add' then
  local made = redis.pcall('SET', KEYS[1], token, 'NX', 'PX', ms)
  if made and made.ok then return {0, '', 0, now_us} end
elseif verb == 'remove' and redis.pcall('GET', KEYS[1]) == token then
  redis.call('DEL', KEYS[1])
  return {0, '', 0, now_us}
end
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' then
  if verb ~= 'add' then return {2, '', 0} end
  redis.call('SET', KEYS[1], token, 'PX', ms)
  return {0, '', 0, now_us}
end
if kind ~= 'string' then return {3, 'a ' .. kind, 0} end
local value, left = redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1])
-- A number without a time to live is the time of a setnx lock.
if left < 0 and tonumber(value) then return {3, shown(value) .. ' without an end', 0} end
if string.match(value, '^hf%d+ ') then return {3, 'a record of holdfast', 0} end
if value ~= token or verb == 'look' then return {1, shown(value), left, now_us} end
if verb == 'remove' then
  redis.call('DEL', KEYS[1])
elseif verb == 'extend' or left < tonumber(ms) then
  -- An earlier attempt may arrive late, after the lease was extended.
  redis.call('PEXPIRE', KEYS[1], ms)
end
return {0, '', 0, now_us}
