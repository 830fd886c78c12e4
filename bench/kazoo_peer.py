#!/usr/bin/env python3
"""What kazoo's Lock does in holdfast-bench's workloads w1 and w4: one thread alone, and threads of one process that want one
lock. Usage: kazoo_peer.py HOSTS SECONDS. Prints acquisitions a second."""
import sys
import threading
import time

from kazoo.client import KazooClient


def run(client, threads, seconds):
    client.ensure_path("/peer")
    counts = [0] * threads
    over = threading.Event()

    def work(i):
        lock = client.Lock("/peer")
        while not over.is_set():
            with lock:
                counts[i] += 1

    crew = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    began = time.monotonic()
    for t in crew:
        t.start()
    time.sleep(seconds)
    over.set()
    for t in crew:
        t.join()
    return sum(counts) / (time.monotonic() - began)


def main():
    hosts, seconds = sys.argv[1], float(sys.argv[2])
    client = KazooClient(hosts=hosts, timeout=30)
    client.start()
    for name, threads in (("w1", 1), ("w4", 8)):
        print(f"kazoo {name} {run(client, threads, seconds):.0f}")
    client.stop()


if __name__ == "__main__":
    main()
