#!/usr/bin/env python3
"""kazoo's Lock, as peers.py asks for it. Usage: kazoo_peer.py HOSTS THREADS SECONDS."""
import sys
import threading
import time

from kazoo.client import KazooClient


def work(client, counts, i, over):
    lock = client.Lock("/peer/kazoo")
    while not over.is_set():
        with lock:
            counts[i] += 1


def main():
    hosts, threads, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    client = KazooClient(hosts=hosts, timeout=30)
    client.start()
    client.ensure_path("/peer/kazoo")
    print("ready", flush=True)
    sys.stdin.readline()
    counts, over = [0] * threads, threading.Event()
    crew = [threading.Thread(target=work, args=(client, counts, i, over)) for i in range(threads)]
    for t in crew:
        t.start()
    time.sleep(seconds)
    over.set()
    print(sum(counts), flush=True)
    for t in crew:
        t.join()
    client.stop()


if __name__ == "__main__":
    main()
