"""Stores for tests: a new name prefix for each test, and servers that belong to this program."""
import atexit
import itertools
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import holdfast

_numbers = itertools.count(1)
_folder = tempfile.mkdtemp(prefix="holdfast-python-")
_owner = os.getpid()


class Redis:
    """A server on a socket in a folder; nothing is saved."""

    def __init__(self, folder):
        self.socket = f"{folder}/redis.sock"
        self._process = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--dir", folder],
                                         stdout=subprocess.DEVNULL)
        self.url = f"redis+unix://{self.socket}"
        while not self._answers():
            if self._process.poll() is not None:
                raise RuntimeError("redis-server ended at once")
            time.sleep(0.01)

    def _answers(self):
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(self.socket)
                client.sendall(b"PING\r\n")
                return client.recv(64).startswith(b"+PONG")
        except OSError:
            return False

    def keys_for_ever(self):
        """Keys without an expiry, which a dead program would leave for ever."""
        script = b"local all = {} for _, key in ipairs(redis.call('KEYS', '*')) do " \
                 b"if redis.call('PTTL', key) == -1 then all[#all + 1] = key end end return table.concat(all, ' ')"
        with socket.socket(socket.AF_UNIX) as client, client.makefile("rb") as answer:
            client.connect(self.socket)
            client.sendall(b"*3\r\n$4\r\nEVAL\r\n$%d\r\n%s\r\n$1\r\n0\r\n" % (len(script), script))
            return answer.read(int(answer.readline()[1:])).decode()

    def stop(self):
        self._process.send_signal(signal.SIGSTOP)

    def resume(self):
        self._process.send_signal(signal.SIGCONT)

    def end(self):
        self._process.kill()
        self._process.wait()


_redis = None


def _end():
    if os.getpid() == _owner:
        if _redis:
            _redis.end()
        shutil.rmtree(_folder, ignore_errors=True)


atexit.register(_end)


def redis_url():
    global _redis
    if _redis is None:
        _redis = Redis(_folder)
    return _redis.url


URLS = {"memory": lambda: "memory:python", "sqlite": lambda: f"sqlite:{_folder}/locks.db", "redis": redis_url}


class OnAStore(unittest.TestCase):
    """self.here and self.there are two sessions: for the store they are two programs."""
    store = "memory"

    def setUp(self):
        self.url = URLS[self.store]()
        self.prefix = f"t{next(_numbers)}:"
        self.here = self.open()
        self.there = self.open()

    def tearDown(self):
        self.here.close()
        self.there.close()
        if self.store == "redis":
            self.assertEqual(_redis.keys_for_ever(), "")

    def open(self, **options):
        return holdfast.open(self.url, name_prefix=self.prefix, **options)


def on_each_store(of):
    """Makes a test class for each store out of a class whose tests hold on all of them."""
    module = sys.modules[of.__module__]
    for store in URLS:
        name = f"{of.__name__}_{store}"
        setattr(module, name, type(name, (of, OnAStore), {"store": store, "__module__": of.__module__}))
    return of


REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
