-- The read-write lock of Redisson (Java): a hash of `mode`, `read` or `write`, and of owner → how
-- often it has entered; a writer's owner ends in `:write`. Each entry of a reader has a key of its
-- own, which ends with that reader's lease; the hash ends with the last of them. The last owner to
-- leave announces it on the lock's channel, a reader by `0` and a writer by `1`.
--
--   KEYS[1]  the lock
--   KEYS[2]  the prefix of the keys of entries, in front of their owner
--   ARGV     verb owner milliseconds channel, 1 for exclusive, "until …"
--
-- Answers {state, an owner or a description of the key, milliseconds left, the other owners…}.
-- State: 0 done, 1 taken, 2 empty (resize: the owner has not entered), 3 not of this layout.

local verb, owner, ms, channel, alone = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5] == '1'
local writer = owner .. ':write'

@late.lua@
@whole.lua@
local function entry(of, number) return KEYS[2] .. of .. ':rwlock_timeout:' .. number end

local function who_is_in()
  local all = {1}
  for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    if field ~= 'mode' then table.insert(all, shown(field)) end
  end
  if #all == 1 then return {3, 'a hash without owners', 0} end
  table.insert(all, 3, redis.call('PTTL', KEYS[1]))
  return all
end

-- Returns the longest time to live of the other readers' entries: not above zero if the remaining
-- readers are dead. Returns nil for an impossible number of entries: a script that looked up so
-- many entries would block the server.
local function longest_left()
  local longest, entries = 0, 0
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    if all[i] ~= 'mode' and all[i] ~= owner then
      local times = whole(all[i + 1]) or -1
      entries = entries + times
      if times < 0 or entries > 100000 then return nil, 'a hash whose owner has entered ' .. shown(all[i + 1]) .. ' times' end
      for number = 1, times do
        longest = math.max(longest, redis.call('PTTL', entry(all[i], number)))
      end
    end
  end
  return math.min(longest, 1000000000000000)
end

local function read_for(lease)
  redis.call('HSET', KEYS[1], 'mode', 'read', owner, 1)
  redis.call('SET', entry(owner, 1), 1, 'PX', lease)
  if redis.call('PTTL', KEYS[1]) < lease then redis.call('PEXPIRE', KEYS[1], lease) end
end

local function write_for(lease)
  redis.call('HSET', KEYS[1], 'mode', 'write', writer, 1)
  redis.call('PEXPIRE', KEYS[1], lease)
end

local function free(message)
  redis.call('DEL', KEYS[1])
  redis.call('PUBLISH', channel, message)
end

local kind, mode, mine = redis.call('TYPE', KEYS[1]).ok, false, false
if kind ~= 'none' then
  if kind ~= 'hash' then return {3, 'a ' .. kind, 0} end
  mode = redis.call('HGET', KEYS[1], 'mode')
  if mode ~= 'read' and mode ~= 'write' then return {3, 'a hash that is no read-write lock', 0} end
  if redis.call('HEXISTS', KEYS[1], owner) == 1 then mine = 'read' end
  if redis.call('HEXISTS', KEYS[1], writer) == 1 then mine = 'write' end
end

if verb == 'look' or (not mine and verb ~= 'add') then
  if not mode or verb == 'resize' then return {2, '', 0} end
  return who_is_in()
end

if verb == 'add' and not mine then
  if mode == 'write' or (mode and alone) then return who_is_in() end
  if alone then write_for(ms) else read_for(ms) end
elseif verb == 'remove' and mine == 'write' then
  free('1')
elseif verb == 'remove' then
  local left, strange = longest_left()
  if strange then return {3, strange, 0} end
  redis.call('HDEL', KEYS[1], owner)
  redis.call('DEL', entry(owner, 1))
  if left > 0 then redis.call('PEXPIRE', KEYS[1], left) else free('0') end
elseif verb == 'resize' and alone and mine == 'read' then
  local left, strange = longest_left()
  if strange then return {3, strange, 0} end
  if left > 0 then return who_is_in() end
  redis.call('DEL', KEYS[1], entry(owner, 1))
  write_for(ms)
elseif verb == 'resize' and not alone and mine == 'write' then
  free('1')
  read_for(ms)
else
  -- An earlier attempt may arrive late, after the lease was extended.
  local own = mine == 'read' and entry(owner, 1) or KEYS[1]
  if verb == 'add' then ms = math.max(ms, math.min(redis.call('PTTL', own), 1000000000000000)) end
  if mine == 'read' then read_for(ms) else write_for(ms) end
end
return {0, '', 0}
