-- The latch of Redisson (Java): a number that counts down to zero and is then removed. A latch that
-- was never made is absent as well. So a key of holdfast's beside it remembers that it was made,
-- and its initial count, for as long as the latch is kept. Another key remembers each arrival for a
-- while, so that a repeated arrival counts once.
--
--   KEYS[1]  the latch    KEYS[2]  that it was made, and with which count    KEYS[3]  this arrival
--   KEYS[4], KEYS[5]  the keys that exist only beside a semaphore: redisson_permits.lua
--   ARGV     verb count drop channel, milliseconds to keep the latch, milliseconds to remember the
--            arrival; "until …"
--
-- Answers {state, how many are left or a description of the key, count}. State: 0 closed, 1 open, 2
-- more than is left, 3 not of this layout, 4 another count, 5 not used yet.

local verb, count, drop, channel = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local keep, remember = tonumber(ARGV[5]), ARGV[6]
-- Removing a latch names no owner: a late command would remove the next latch. So it is not let
-- through as a late release is.
if verb == 'remove' then verb = 'end' end

@late.lua@
@whole.lua@
-- 1. Checks the keys.
local kind, left = redis.call('TYPE', KEYS[1]).ok, nil
if kind ~= 'none' then
  if kind ~= 'string' then return {3, 'a ' .. kind, 0} end
  local text = redis.call('GET', KEYS[1])
  left = whole(text)
  if not left or left < 0 then return {3, shown(text), 0} end
  if redis.call('EXISTS', KEYS[4], KEYS[5]) > 0 then return {3, 'a semaphore', 0} end
end
local made = verb ~= 'end' and redis.pcall('GET', KEYS[2])
if made then
  made = whole(made)
  if not made or made < 1 then return {3, 'a latch beside a count that is none', 0} end
end
local counts_from = made or (left and math.max(left, count)) or 0

local function state()
  if left and left > 0 then return {0, left, counts_from} end
  return {(made or left) and 1 or 5, 0, counts_from}
end

if verb == 'inspect' then return state() end
if verb == 'end' then
  redis.call('DEL', KEYS[1], KEYS[2])
  redis.call('PUBLISH', channel, '1')
  return {1, 0, 0}
end

-- 2. All users name the same count.
if counts_from ~= 0 and counts_from ~= count or left and left > count then return {4, left or 0, counts_from} end

-- 3. A known arrival has been counted already.
if verb == 'arrive' then
  if redis.call('EXISTS', KEYS[3]) == 1 then return state() end
  if drop == 0 or drop > (left or (made and 0) or count) then return {2, left or (made and 0) or count, count} end
end

-- 4. The first user makes the latch. A latch that another program made ends when it reaches zero,
-- not at a time.
if not made and not left then
  left = count
  redis.call('SET', KEYS[1], count, 'PX', keep)
  redis.call('PUBLISH', channel, '1')
elseif left then
  local ends = redis.call('PTTL', KEYS[1])
  if ends >= 0 and ends < keep then redis.call('PEXPIRE', KEYS[1], keep) end
end
redis.call('SET', KEYS[2], count, 'PX', math.min(math.max(redis.call('PTTL', KEYS[2]), keep), 1000000000000000))
made, counts_from = count, count

-- 5. The arrival.
if verb == 'arrive' then
  left = redis.call('DECRBY', KEYS[1], drop)
  redis.call('SET', KEYS[3], 1, 'PX', remember)
  if left == 0 then
    redis.call('DEL', KEYS[1])
    redis.call('PUBLISH', channel, '0')
  end
end
return state()
