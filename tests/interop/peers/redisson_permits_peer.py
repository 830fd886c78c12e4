"""Takes part in Redisson's RPermitExpirableSemaphore by the steps that its clients carry out: a number of free permits, and a
sorted set of those in use with the time when each ends, by the client's own clock. Arguments: port, name, guard."""
import os
import sys
import time

import redis

import party

PERMITS = 3

client = redis.Redis(port=int(sys.argv[1]))
name = sys.argv[2]
keys = [name, "{" + name + "}:timeout", "redisson_sc:{" + name + "}"]

make = client.register_script("""
if redis.call('exists', KEYS[1]) == 1 then return 0 end
redis.call('set', KEYS[1], ARGV[1])
redis.call('publish', KEYS[3], ARGV[1])
return 1
""")
# now, end, id
enter = client.register_script("""
local ended = redis.call('zrangebyscore', KEYS[2], 0, ARGV[1], 'limit', 0, 1)
if #ended > 0 then
  redis.call('zrem', KEYS[2], unpack(ended))
  local free = redis.call('incrby', KEYS[1], #ended)
  if free > 0 then redis.call('publish', KEYS[3], free) end
end
local free = redis.call('get', KEYS[1])
if free and tonumber(free) >= 1 then
  redis.call('decrby', KEYS[1], 1)
  redis.call('zadd', KEYS[2], ARGV[2], ARGV[3])
  return 'OK'
end
local next = redis.call('zrange', KEYS[2], 0, 0, 'withscores')
return next[2] and ':' .. next[2]
""")
# now, id
leave = client.register_script("""
local ends = redis.call('zscore', KEYS[2], ARGV[2])
if redis.call('zrem', KEYS[2], ARGV[2]) ~= 1 then return 0 end
redis.call('publish', KEYS[3], redis.call('incrby', KEYS[1], 1))
return tonumber(ends) > tonumber(ARGV[1]) and 1 or 0
""")
news = client.pubsub(ignore_subscribe_messages=True)
news.subscribe(keys[2])
make(keys=keys, args=[PERMITS])


def now_ms():
    return int(time.time() * 1000)


def take(seconds):
    permit = os.urandom(16)
    if enter(keys=keys, args=[now_ms(), now_ms() + seconds * 1000, permit]) != b"OK":
        news.get_message(timeout=0.1)
        return None
    return permit


def give_back(permit):
    leave(keys=keys, args=[now_ms(), permit])


party.play(take, give_back, sys.argv[3], room=PERMITS)
