#!/usr/bin/env python3
"""W1 (one client, one free name, lock + unlock) on a Redis server of this run's own: the C++ client, the Python and Node packages, and
redis-py's Lock, in turns; the best round of each as a Markdown table, since other programs on the machine only take away.

    cmake --preset release && cmake --build --preset release --target holdfast_bench holdfast_c
    bench/languages.py [--build build/release] [--seconds 1] [--rounds 7]
"""
import argparse
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]

COUNTED = """
import sys, time
def count(once, seconds):
    for _ in range(200):
        once()
    done, end = 0, time.monotonic() + seconds
    began = time.monotonic()
    while time.monotonic() < end:
        for _ in range(20):
            once()
        done += 20
    print(done / (time.monotonic() - began))
"""
PYTHON = COUNTED + """
import holdfast
lock = holdfast.open('redis+unix://' + sys.argv[1]).mutex('w1')
def once():
    with lock:
        pass
count(once, float(sys.argv[2]))
"""
REDIS_PY = COUNTED + """
import redis
lock = redis.Redis(unix_socket_path=sys.argv[1]).lock('w1-of-redis-py', timeout=30)
def once():
    with lock:
        pass
count(once, float(sys.argv[2]))
"""
NODE = """
const holdfast = require(process.argv[1]);
(async () => {
  const lock = (await holdfast.open('redis+unix://' + process.argv[2])).mutex('w1-of-node');
  const once = async () => (await lock.acquire()).release();
  for (let i = 0; i < 200; ++i) await once();
  let done = 0;
  const began = performance.now();
  while (performance.now() - began < process.argv[3] * 1e3) { await once(); ++done; }
  console.log(done / ((performance.now() - began) / 1e3));
})();
"""


def start_redis(folder):
    path = f"{folder}/redis.sock"
    server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder],
                              stdout=subprocess.DEVNULL)
    while True:
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(path)
                return server, path
        except OSError:
            if server.poll() is not None:
                raise SystemExit("redis-server ended at once")
            time.sleep(0.02)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    arguments.add_argument("--seconds", default="1")
    arguments.add_argument("--rounds", type=int, default=7)
    given = arguments.parse_args()
    build = given.build.resolve()
    environment = {**os.environ, "HOLDFAST_LIBRARY": str(build / "libholdfast-c.so.0"), "PYTHONPATH": str(ROOT / "bindings/python"),
                   "NODE_PATH": str(ROOT / "build/npm/node_modules")}

    def output(*words):
        return subprocess.run(words, check=True, capture_output=True, text=True, env=environment).stdout

    with tempfile.TemporaryDirectory() as folder:
        server, path = start_redis(folder)
        python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable  # Debian's has redis-py
        bench = [str(build / "bin/holdfast-bench"), "--store", f"redis+unix://{path}", "--workload", "W1", "--subject", "holdfast",
                 "--json", "--repeat", "1", "--seconds", given.seconds]
        subjects = {
            "C++": lambda: json.loads(output(*bench).splitlines()[0])["ops_per_s"],
            "Python": lambda: float(output(python, "-B", "-c", PYTHON, path, given.seconds)),
            "redis-py's `Lock`": lambda: float(output(python, "-B", "-c", REDIS_PY, path, given.seconds)),
        }
        if shutil.which("node"):
            subjects["Node"] = lambda: float(output("node", "-e", NODE, str(ROOT / "bindings/node"), path, given.seconds))
        had = {name: [] for name in subjects}
        try:
            for _ in range(given.rounds):
                for name, measure in subjects.items():
                    had[name].append(measure())
        finally:
            server.kill()
            server.wait()
    ours = max(had["C++"])
    print(f"<!-- {given.rounds} rounds of {given.seconds} s, load average {os.getloadavg()[0]:.1f} -->")
    print("| W1 on `redis:` | per second | time of C++'s |\n|---|--:|--:|")
    for name, rates in had.items():
        print(f"| {name} | {max(rates):,.0f} | {ours / max(rates):.2f} × |")


if __name__ == "__main__":
    main()
