"""Takes part in Redisson's reentrant lock by the steps that its documentation shows: a hash of owner and count, and a
message when it is free. Enters twice, as a thread may. Arguments: port, name, guard."""
import sys
import uuid

import redis

import party

client = redis.Redis(port=int(sys.argv[1]))
name = sys.argv[2]
channel = "redisson_lock__channel:{" + name + "}"
owner = f"{uuid.uuid4()}:{17}"

enter = client.register_script("""
local free = redis.call('exists', KEYS[1]) == 0
if free or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
return redis.call('pttl', KEYS[1])
""")
leave = client.register_script("""
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return nil end
if redis.call('hincrby', KEYS[1], ARGV[2], -1) > 0 then
  redis.call('pexpire', KEYS[1], ARGV[1])
  return 0
end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], 0)
return 1
""")
news = client.pubsub(ignore_subscribe_messages=True)
news.subscribe(channel)


def take(seconds):
    if enter(keys=[name], args=[seconds * 1000, owner]) is not None:
        news.get_message(timeout=0.1)
        return None
    enter(keys=[name], args=[seconds * 1000, owner])
    return owner


def give_back(_):
    leave(keys=[name, channel], args=[party.WORKING * 1000, owner])
    leave(keys=[name, channel], args=[party.WORKING * 1000, owner])


party.play(take, give_back, sys.argv[3])
