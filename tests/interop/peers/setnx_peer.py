"""The oldest recipe: SETNX with the time when the lock ends, GETSET to take over. Arguments: port, name, guard."""
import sys
import time

import redis

import party

client = redis.Redis(port=int(sys.argv[1]))
name = sys.argv[2]


def take(seconds):
    now = time.time()
    mine = str(int(now) + seconds + 1)
    if client.setnx(name, mine):
        return mine
    there = client.get(name)
    if there is not None and float(there) < now:
        if client.getset(name, mine) == there:
            return mine
    time.sleep(0.005)
    return None


def give_back(mine):
    if time.time() < float(mine) and client.get(name) == mine.encode():
        client.delete(name)


party.play(take, give_back, sys.argv[3])
