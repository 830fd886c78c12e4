#!/usr/bin/env python3
"""member.py URL NAME LOG WORKER LEASE_MS: takes the lock again and again, and writes so, until LOG.end is there."""
import os
import sys

import holdfast

url, name, path, worker, lease_ms = sys.argv[1:]
log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
lock = holdfast.open(url, lease=int(lease_ms) / 1000).mutex(name)
while not os.path.exists(path + ".end"):
    try:
        with lock as lease:
            fence = lease.fence
            os.write(log, f"enter {worker} {fence}\n".encode())
            os.write(log, f"leave {worker} {fence}\n".encode())
    except holdfast.Lost:
        pass
