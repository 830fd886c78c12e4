"""Takes part in Redisson's read-write lock by the steps that its documentation shows: a hash of mode and owners, and a key
for each entry of a reader, which ends with it. Reads and writes in turns. Arguments: port, name, guard."""
import sys
import uuid

import redis

import party

client = redis.Redis(port=int(sys.argv[1]))
name = sys.argv[2]
channel = "redisson_rwlock:{" + name + "}"
owner = f"{uuid.uuid4()}:{17}"
beside = "{" + name + "}"
entries = f"{beside}:{owner}:rwlock_timeout"

begin_reading = client.register_script("""
local mode = redis.call('hget', KEYS[1], 'mode')
if mode == 'write' and redis.call('hexists', KEYS[1], ARGV[2] .. ':write') == 0 then return redis.call('pttl', KEYS[1]) end
if not mode then redis.call('hset', KEYS[1], 'mode', 'read') end
local number = redis.call('hincrby', KEYS[1], ARGV[2], 1)
redis.call('set', KEYS[2] .. ':' .. number, 1, 'px', ARGV[1])
redis.call('pexpire', KEYS[1], math.max(redis.call('pttl', KEYS[1]), ARGV[1]))
return nil
""")
end_reading = client.register_script("""
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil end
local number = redis.call('hincrby', KEYS[1], ARGV[1], -1)
if number == 0 then redis.call('hdel', KEYS[1], ARGV[1]) end
redis.call('del', KEYS[3] .. ':' .. (number + 1))
if redis.call('hlen', KEYS[1]) > 1 then
  local longest = -3
  for _, field in ipairs(redis.call('hkeys', KEYS[1])) do
    for entry = tonumber(redis.call('hget', KEYS[1], field)) or 0, 1, -1 do
      local left = redis.call('pttl', KEYS[4] .. ':' .. field .. ':rwlock_timeout:' .. entry)
      longest = math.max(longest, left)
    end
  end
  if longest > 0 then
    redis.call('pexpire', KEYS[1], longest)
    return 0
  end
  if redis.call('hget', KEYS[1], 'mode') == 'write' then return 0 end
end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], 0)
return 1
""")
begin_writing = client.register_script("""
if redis.call('exists', KEYS[1]) == 1 then return redis.call('pttl', KEYS[1]) end
redis.call('hset', KEYS[1], 'mode', 'write', ARGV[2], 1)
redis.call('pexpire', KEYS[1], ARGV[1])
return nil
""")
end_writing = client.register_script("""
if redis.call('hget', KEYS[1], 'mode') ~= 'write' or redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil end
redis.call('hdel', KEYS[1], ARGV[1])
if redis.call('hlen', KEYS[1]) == 1 then
  redis.call('del', KEYS[1])
  redis.call('publish', KEYS[2], 1)
else
  redis.call('hset', KEYS[1], 'mode', 'read')
end
return 1
""")
news = client.pubsub(ignore_subscribe_messages=True)
news.subscribe(channel)
turns = 0


def take(seconds):
    """Reads first, twice inside, as a thread may."""
    global turns
    reads = turns % 2 == 0
    if reads:
        refused = begin_reading(keys=[name, entries], args=[seconds * 1000, owner])
    else:
        refused = begin_writing(keys=[name], args=[seconds * 1000, owner + ":write"])
    if refused is not None:
        news.get_message(timeout=0.1)
        return None
    turns += 1
    if reads:
        begin_reading(keys=[name, entries], args=[seconds * 1000, owner])
    return "read" if reads else "write"


def give_back(held):
    if held == "write":
        end_writing(keys=[name, channel], args=[owner + ":write"])
        return
    for _ in range(2):
        end_reading(keys=[name, channel, entries, beside], args=[owner])


party.play(take, give_back, sys.argv[3], reads=lambda held: held == "read")
