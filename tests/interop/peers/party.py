"""A program that shares a lock with holdfast, told what to do on its standard input.

    work    take and give back until the next line comes; then says how often, and how often it was not alone
    hold    take, report that, and keep it
"""
import fcntl
import os
import select
import sys


# Seconds that a lock lasts for a worker (longer than any process waits for the processor), and for
# one that is about to be killed.
WORKING, DYING = 20, 3


class Guard:
    """Shows whether a holder is alone (or only among readers, or among as many as there are permits): a lock of the kernel, which
    ends when the process dies."""

    def __init__(self, path, room):
        paths = [path] + [f"{path}.{i}" for i in range(1, room)]
        self.files = [os.open(p, os.O_RDWR | os.O_CREAT, 0o666) for p in paths]

    def enter(self, reads):
        for self.file in self.files:
            try:
                fcntl.flock(self.file, (fcntl.LOCK_SH if reads else fcntl.LOCK_EX) | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                pass
        return False

    def leave(self):
        fcntl.flock(self.file, fcntl.LOCK_UN)


def told():
    return bool(select.select([sys.stdin], [], [], 0)[0])


def play(take, give_back, guard_path, reads=lambda held: False, room=1):
    """take(seconds) returns None if it took too long; give_back() gets what take() returned."""
    guard = Guard(guard_path, room)
    print("ready", flush=True)
    order = sys.stdin.readline().strip()
    if order == "hold":
        while take(DYING) is None:
            pass
        # Without the guard: a process that is killed late enough has lost the lock, and would keep
        # the guard.
        print("holding", flush=True)
        sys.stdin.readline()
        return
    sections = violations = 0
    while not told():
        held = take(WORKING)
        if held is None:
            continue
        alone = guard.enter(reads(held))
        violations += not alone
        select.select([], [], [], 0.001)
        if alone:
            guard.leave()
        give_back(held)
        sections += 1
        select.select([], [], [], 0.008)
    print(f"{sections} {violations}", flush=True)
