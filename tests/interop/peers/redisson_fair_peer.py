"""Takes part in Redisson's fair lock by the steps that its clients carry out: the hash of the plain lock, a list of the
waiters, the time at which each of them is given up (by the client's own clock), and a channel for each. Arguments: port, name, guard."""
import sys
import time
import uuid

import redis

import party

PATIENCE_MS = 300_000

client = redis.Redis(port=int(sys.argv[1]))
name = sys.argv[2]
owner = f"{uuid.uuid4()}:{17}"
channel = "redisson_lock__channel:{" + name + "}"
keys = [name, "redisson_lock_queue:{" + name + "}", "redisson_lock_timeout:{" + name + "}"]

DROP_ENDED = """
local who = redis.call('lindex', KEYS[2], 0)
while who and tonumber(redis.call('zscore', KEYS[3], who)) <= tonumber(ARGV[2]) do
  redis.call('zrem', KEYS[3], who)
  redis.call('lpop', KEYS[2])
  who = redis.call('lindex', KEYS[2], 0)
end
"""
# owner, now, lease, patience
enter = client.register_script(DROP_ENDED + """
local me, now, patience = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[4])
local held = redis.call('exists', KEYS[1]) == 1
if not held and (not who or who == me) then
  redis.call('lpop', KEYS[2])
  redis.call('zrem', KEYS[3], me)
  for _, other in ipairs(redis.call('zrange', KEYS[3], 0, -1)) do redis.call('zincrby', KEYS[3], -patience, other) end
  redis.call('hset', KEYS[1], me, 1)
  redis.call('pexpire', KEYS[1], ARGV[3])
  return nil
end
if redis.call('hexists', KEYS[1], me) == 1 then
  redis.call('hincrby', KEYS[1], me, 1)
  redis.call('pexpire', KEYS[1], ARGV[3])
  return nil
end
local mine = redis.call('zscore', KEYS[3], me)
if mine then return mine - patience - now end
local last = redis.call('lindex', KEYS[2], -1)
local before
if last and last ~= me then before = redis.call('zscore', KEYS[3], last) - now else before = redis.call('pttl', KEYS[1]) end
if redis.call('zadd', KEYS[3], before + patience + now, me) == 1 then redis.call('rpush', KEYS[2], me) end
return before
""")
leave = client.register_script(DROP_ENDED + """
local channel = KEYS[4]
if redis.call('exists', KEYS[1]) == 1 then
  if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil end
  if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then
    redis.call('pexpire', KEYS[1], ARGV[3])
    return 0
  end
  redis.call('del', KEYS[1])
end
local next = redis.call('lindex', KEYS[2], 0)
if next then redis.call('publish', channel .. ':' .. next, 0) end
return 1
""")
give_up = client.register_script("""
local behind = false
for _, who in ipairs(redis.call('lrange', KEYS[2], 0, -1)) do
  if behind then redis.call('zincrby', KEYS[3], -tonumber(ARGV[2]), who) end
  behind = behind or who == ARGV[1]
end
redis.call('zrem', KEYS[3], ARGV[1])
redis.call('lrem', KEYS[2], 0, ARGV[1])
""")
news = client.pubsub(ignore_subscribe_messages=True)
news.subscribe(channel + ":" + owner)


def now_ms():
    return int(time.time() * 1000)


def take(seconds):
    """As its thread that waits for ever: told, or as late as the answer said."""
    lease = seconds * 1000
    looks_at = 0
    while not party.told():
        if time.monotonic() >= looks_at:
            left = enter(keys=keys, args=[owner, now_ms(), lease, PATIENCE_MS])
            if left is None:
                enter(keys=keys, args=[owner, now_ms(), lease, PATIENCE_MS])
                return owner
            looks_at = time.monotonic() + (left / 1000 if left >= 0 else 3600)
        if news.get_message(timeout=0.1):
            looks_at = 0
    give_up(keys=keys, args=[owner, PATIENCE_MS])
    return None


def give_back(_):
    for _ in range(2):
        leave(keys=keys + [channel], args=[owner, now_ms(), party.WORKING * 1000])


party.play(take, give_back, sys.argv[3])
