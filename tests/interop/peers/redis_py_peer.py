"""redis-py's own Lock. Arguments: port, name, guard."""
import sys

import redis
from redis.exceptions import LockError

import party

client = redis.Redis(port=int(sys.argv[1]))


def take(seconds):
    lock = client.lock(sys.argv[2], timeout=seconds, sleep=0.005, blocking_timeout=0.2)
    return lock if lock.acquire() else None


def give_back(lock):
    try:
        lock.release()
    except LockError:
        print("lost", file=sys.stderr)


party.play(take, give_back, sys.argv[3])
