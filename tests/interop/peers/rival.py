"""A program that wants a hot lock as much as holdfast does, and behaves as widespread clients do. Arguments: kind, port, name,
threads, milliseconds of work in a turn.

    redisson    listens while it waits; one thread is woken by a message, and comes back two to four milliseconds later; so
                does a thread that released (four JVMs on two processors have 100 turns of 3 ms in a second, not 300)
    redlock     asks every 200 ms, give or take 100: the defaults of npm's redlock
    setnx       the oldest recipe: asks every 50 ms

Says "ready", works from the next line to the one after, and then says how many turns it had and its longest wait in ms.
"""
import random
import secrets
import sys
import threading
import time
import uuid

import redis

KIND, PORT, NAME = sys.argv[1], int(sys.argv[2]), sys.argv[3]
THREADS, WORK = int(sys.argv[4]), int(sys.argv[5]) / 1000
LEASE_MS = 20_000
CHANNEL = "redisson_lock__channel:{" + NAME + "}"

ENTER = """
if redis.call('exists', KEYS[1]) == 1 then return redis.call('pttl', KEYS[1]) end
redis.call('hincrby', KEYS[1], ARGV[1], 1)
redis.call('pexpire', KEYS[1], ARGV[2])
return nil
"""
LEAVE = """
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil end
redis.call('del', KEYS[1])
return redis.call('publish', ARGV[2], 0)
"""
DELETE_OURS = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"


def come_back():
    time.sleep(random.uniform(0.002, 0.004))


class Listener:
    """One subscription for all threads, for as long as one of them waits."""

    def __init__(self):
        self.connection = redis.Connection(port=PORT)
        self.connection.connect()
        self.mutex = threading.Lock()
        self.waiting = 0
        self.permits = threading.Semaphore(0)
        self.listens = threading.Semaphore(0)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            word = self.connection.read_response()[0]
            if word == b"message":
                self.permits.release()
            elif word == b"subscribe":
                self.listens.release()

    def __enter__(self):
        with self.mutex:
            self.waiting += 1
            if self.waiting == 1:
                self.connection.send_command("SUBSCRIBE", CHANNEL)
                self.listens.acquire()

    def __exit__(self, *_):
        with self.mutex:
            self.waiting -= 1
            if self.waiting == 0:
                self.connection.send_command("UNSUBSCRIBE", CHANNEL)

    def wait(self, seconds):
        if self.permits.acquire(timeout=seconds):
            come_back()


class Redisson:
    def __init__(self, listener, number):
        client = redis.Redis(port=PORT)
        self.enter, self.leave = client.register_script(ENTER), client.register_script(LEAVE)
        self.owner = f"{uuid.uuid4()}:{number}"
        self.listener = listener

    def tried(self):
        return self.enter(keys=[NAME], args=[self.owner, LEASE_MS])

    def take(self):
        if self.tried() is None:
            return
        with self.listener:
            left = self.tried()
            while left is not None:
                self.listener.wait(left / 1000)
                left = self.tried()

    def give_back(self):
        self.leave(keys=[NAME], args=[self.owner, CHANNEL])
        come_back()


class Redlock:
    def __init__(self, *_):
        self.client = redis.Redis(port=PORT)
        self.delete = self.client.register_script(DELETE_OURS)

    def take(self):
        self.token = secrets.token_hex(16)
        while not self.client.set(NAME, self.token, nx=True, px=LEASE_MS):
            time.sleep(0.2 + random.uniform(-0.1, 0.1))

    def give_back(self):
        self.delete(keys=[NAME], args=[self.token])


class Setnx:
    def __init__(self, *_):
        self.client = redis.Redis(port=PORT)

    def take(self):
        while True:
            self.mine = str(int(time.time()) + LEASE_MS // 1000 + 1)
            if self.client.setnx(NAME, self.mine):
                return
            time.sleep(0.05)

    def give_back(self):
        if self.client.get(NAME) == self.mine.encode():
            self.client.delete(NAME)


def work(lock, over, told):
    while not over.is_set():
        began = time.monotonic()
        lock.take()
        told.append(time.monotonic() - began)
        time.sleep(WORK)
        lock.give_back()


def main():
    kind = {"redisson": Redisson, "redlock": Redlock, "setnx": Setnx}[KIND]
    listener = Listener() if KIND == "redisson" else None
    over, waits = threading.Event(), []
    crew = [threading.Thread(target=work, args=(kind(listener, n), over, waits)) for n in range(THREADS)]
    print("ready", flush=True)
    sys.stdin.readline()
    for one in crew:
        one.start()
    sys.stdin.readline()
    over.set()
    turns, longest = len(waits), max(waits, default=0)
    print(f"{turns} {longest * 1000:.0f}", flush=True)
    for one in crew:
        one.join()


main()
