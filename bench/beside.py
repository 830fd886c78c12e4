#!/usr/bin/env python3
"""How holdfast and clients of other vendors share a hot lock (dialects of Redis): turns and longest wait of each process, of
each kind alone and of two of each. The others are written by hand, and behave as their clients do: tests/interop/peers/rival.py.
Starts a server of its own on a socket and a free port.

Usage: beside.py HOLDFAST_BENCH RESULTS [--seconds EACH] [--dialects redisson,redlock,setnx] [--work 3,50]
"""
import argparse
import datetime
import json
import os
import pathlib
import socket
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
RIVAL = HERE.parent / "tests" / "interop" / "peers" / "rival.py"
THREADS = 2


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    def __init__(self, folder):
        self.port = free_port()
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--save", "", "--dir", folder], stdout=subprocess.DEVNULL)
        for _ in range(200):
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise SystemExit("redis-server did not start")


def start(command):
    return subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def shares(program, dialect, server, counts, work, seconds):
    """Turns and longest wait (ms) of each process: those of others, and holdfast's."""
    name = f"hot-{dialect}-{counts[0]}-{counts[1]}-{work}"
    url = f"redis://127.0.0.1:{server.port}?dialect={dialect}"
    crew = [start(["/usr/bin/python3", "-B", RIVAL, dialect, server.port, name, THREADS, work]) for _ in range(counts[0])]
    crew += [start([program, "--beside", url, name, THREADS, work]) for _ in range(counts[1])]
    for one in crew:
        if one.stdout.readline().strip() != "ready":
            raise SystemExit(f"{one.args} did not get ready")
    for line, pause in (("go\n", seconds), ("stop\n", 0)):
        for one in crew:
            one.stdin.write(line)
            one.stdin.flush()
        time.sleep(pause)
    said = [tuple(int(word) for word in one.stdout.readline().split()) for one in crew]
    for one in crew:
        one.communicate()
    return said[:counts[0]], said[counts[0]:]


def row(program, dialect, server, work, seconds):
    theirs_alone, _ = shares(program, dialect, server, (4, 0), work, seconds)
    _, ours_alone = shares(program, dialect, server, (0, 4), work, seconds)
    theirs, ours = shares(program, dialect, server, (2, 2), work, seconds)
    everybody = theirs + ours
    equal = sum(turns for turns, _ in everybody) / len(everybody)

    def longest(of):
        return max(wait for _, wait in of)

    return {
        "dialect": dialect, "work_ms": work, "turns_of_others": [t for t, _ in theirs], "turns_of_holdfast": [t for t, _ in ours],
        "least_share": round(min(t for t, _ in everybody) / equal, 2) if equal else 0,
        "longest_wait_ms": {"others": longest(theirs), "others_alone": longest(theirs_alone), "holdfast": longest(ours),
                            "holdfast_alone": longest(ours_alone)},
        "turns_per_s": {"together": sum(t for t, _ in everybody) / seconds,
                        "others_alone": sum(t for t, _ in theirs_alone) / seconds,
                        "holdfast_alone": sum(t for t, _ in ours_alone) / seconds}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--dialects", default="redisson,redlock,setnx")
    parser.add_argument("--work", default="3,50")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        try:
            for dialect in options.dialects.split(","):
                for work in options.work.split(","):
                    rows.append(row(options.program, dialect, server, int(work), options.seconds))
                    print(json.dumps(rows[-1]), flush=True)
        finally:
            server.process.terminate()
            server.process.wait()
    told = {"when": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "seconds_each": options.seconds,
            "threads_of_a_process": THREADS, "load": os.getloadavg()[0], "processors": os.cpu_count(), "rows": rows}
    options.results.write_text(json.dumps(told, indent=1) + "\n")


main()
