-- A part of redisson.lua and redisson_fair.lua: checks that the key is a lock of Redisson's, or
-- absent.
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'none' then
  if kind ~= 'hash' then return {3, 'a ' .. kind, 0} end
  if redis.call('HEXISTS', KEYS[1], 'mode') == 1 then return {3, 'a read-write lock', 0} end
  for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    if not string.match(field, '^[%x-]+:%d+$') then return {3, 'a hash with ' .. shown(field), 0} end
  end
end
