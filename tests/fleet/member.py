#!/usr/bin/env python3
"""member.py URL NAMES SHARED LOG WORKER LEASE_MS: takes one name after the other, then SHARED as a reader and as a writer, and writes so
into LOG.NAME, until LOG.end is there."""
import itertools
import os
import signal
import sys

import holdfast

url, names, shared, path, worker, lease_ms = sys.argv[1:]
session = holdfast.open(url, lease=int(lease_ms) / 1000)
rw = session.shared_mutex(shared)
turns = [(session.mutex(name), name, ("enter", "leave")) for name in names.split(",")]
turns += [(rw.shared(), shared, ("read", "done")), (rw, shared, ("enter", "leave"))]
logs = {name: os.open(f"{path}.{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) for _, name, _ in turns}
for lock, name, (begins, ends) in itertools.cycle(turns):
    if os.path.exists(path + ".end"):
        break
    try:
        with lock as lease:
            fence = lease.fence
            os.write(logs[name], f"{begins} {worker} {fence}\n".encode())
            if os.path.exists(f"{path}.stop.{worker}"):
                signal.raise_signal(signal.SIGSTOP)
            os.write(logs[name], f"{ends} {worker} {fence}\n".encode())
    except holdfast.Lost:
        pass
