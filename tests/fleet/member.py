#!/usr/bin/env python3
"""member.py URL NAMES LOG WORKER LEASE_MS: takes one name after the other, and writes so into LOG.NAME, until LOG.end is there."""
import itertools
import os
import signal
import sys

import holdfast

url, names, path, worker, lease_ms = sys.argv[1:]
session = holdfast.open(url, lease=int(lease_ms) / 1000)
each = [(session.mutex(name), os.open(f"{path}.{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)) for name in names.split(",")]
for lock, log in itertools.cycle(each):
    if os.path.exists(path + ".end"):
        break
    try:
        with lock as lease:
            fence = lease.fence
            os.write(log, f"enter {worker} {fence}\n".encode())
            if os.path.exists(f"{path}.stop.{worker}"):
                signal.raise_signal(signal.SIGSTOP)
            os.write(log, f"leave {worker} {fence}\n".encode())
    except holdfast.Lost:
        pass
