"""Takes part in Redisson's RSemaphore by the steps that its clients carry out: a number of free permits, and a message that
says the number when some are given back. A process that dies with a permit never gives it back. Arguments: port, name, guard."""
import sys

import redis

import party

PERMITS = 3

client = redis.Redis(port=int(sys.argv[1]))
name = sys.argv[2]
channel = "redisson_sc:{" + name + "}"

make = client.register_script("""
if redis.call('exists', KEYS[1]) == 1 then return 0 end
redis.call('set', KEYS[1], ARGV[1])
redis.call('publish', KEYS[2], ARGV[1])
return 1
""")
enter = client.register_script("""
local free = redis.call('get', KEYS[1])
if not free or tonumber(free) < tonumber(ARGV[1]) then return 0 end
redis.call('decrby', KEYS[1], ARGV[1])
return 1
""")
leave = client.register_script("""
redis.call('publish', KEYS[2], redis.call('incrby', KEYS[1], ARGV[1]))
""")
news = client.pubsub(ignore_subscribe_messages=True)
news.subscribe(channel)
make(keys=[name, channel], args=[PERMITS])


def take(_):
    if enter(keys=[name], args=[1]) == 0:
        news.get_message(timeout=0.1)
        return None
    return 1


def give_back(permits):
    leave(keys=[name, channel], args=[permits])


party.play(take, give_back, sys.argv[3], room=PERMITS)
