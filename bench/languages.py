#!/usr/bin/env python3
"""W1 (one client, one free name, lock + unlock) from each language, beside the locks that others have there: on Redis the C++ client,
the Python and Node packages, redis-py's Lock, and of npm redlock and redis-semaphore, both with ioredis; on ZooKeeper the C++ client, the
Python and Node packages and kazoo's Lock. Servers of this run's own, which one round warms; then all subjects in turns. A subject is
compared with the C++ client of the same round, and the median of these ratios counts: what other programs take away, they take from both.
Prints Markdown tables. With --write, writes bench/results/languages.json and the tables of docs/bench.md instead.

    make bench-languages
    bench/languages.py [--build build/release] [--stores redis,zookeeper] [--seconds 0.5] [--rounds 31] [--write]
"""
import argparse
import contextlib
import datetime
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import report

ROOT = pathlib.Path(__file__).resolve().parents[1]
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable  # Debian's has redis-py and kazoo
JARS = ":".join(f"/usr/share/java/{jar}.jar" for jar in ("zookeeper", "zookeeper-jute", "slf4j-nop"))

COUNTED_PYTHON = """
import sys, time
def count(lock):
    def once():
        with lock:
            pass
    for _ in range(50):
        once()
    done, began = 0, time.monotonic()
    while time.monotonic() < began + float(sys.argv[2]):
        for _ in range(20):
            once()
        done += 20
    print(done / (time.monotonic() - began))
"""
COUNTED_NODE = """
const [, where, seconds, folder] = process.argv;
async function count(once) {
  for (let i = 0; i < 50; ++i) await once();
  let done = 0;
  const began = performance.now();
  while (performance.now() - began < seconds * 1e3) { await once(); ++done; }
  console.log(done / ((performance.now() - began) / 1e3));
  process.exit();
}
"""
HOLDFAST_PYTHON = COUNTED_PYTHON + """
import holdfast
count(holdfast.open(sys.argv[1]).mutex('w1-of-python'))
"""
HOLDFAST_NODE = COUNTED_NODE + """
require(folder).open(where).then((store) => {
  const lock = store.mutex('w1-of-node');
  return count(async () => (await lock.acquire()).release());
});
"""
REDIS_PY = COUNTED_PYTHON + """
import redis
count(redis.Redis(unix_socket_path=sys.argv[1]).lock('w1-of-redis-py', timeout=30))
"""
REDLOCK = COUNTED_NODE + """
const lock = new (require('redlock'))([new (require('ioredis'))(where)]);
count(async () => (await lock.lock('w1-of-redlock', 30000)).unlock());
"""
REDIS_SEMAPHORE = COUNTED_NODE + """
const lock = new (require('redis-semaphore').Mutex)(new (require('ioredis'))(where), 'w1-of-redis-semaphore', {lockTimeout: 30000});
count(async () => { await lock.acquire(); await lock.release(); });
"""
KAZOO = COUNTED_PYTHON + """
from kazoo.client import KazooClient
client = KazooClient(hosts=sys.argv[1], timeout=30)
client.start()
count(client.Lock('/w1-of-kazoo'))
client.stop()
"""


class Bench:
    """How one subject is measured once."""

    def __init__(self, build, seconds):
        self.build, self.seconds = build, seconds
        self.environment = {**os.environ, "HOLDFAST_LIBRARY": str(build / "libholdfast-c.so.0"),
                            "PYTHONPATH": str(ROOT / "bindings/python"), "NODE_PATH": str(ROOT / "build/npm/node_modules")}

    def output(self, *words):
        ended = subprocess.run(words, stdout=subprocess.PIPE, text=True, env=self.environment, check=False)
        if ended.returncode != 0:
            raise SystemExit(f"{words[0]} ended with {ended.returncode}")
        return ended.stdout

    def cpp(self, url):
        bench = [str(self.build / "bin/holdfast-bench"), "--store", url, "--workload", "W1", "--subject", "holdfast", "--json",
                 "--repeat", "1", "--seconds", self.seconds]
        return lambda: json.loads(self.output(*bench).splitlines()[0])["ops_per_s"]

    def python(self, text, where):
        return lambda: float(self.output(PYTHON, "-B", "-c", text, where, self.seconds))

    def node(self, text, where):
        return lambda: float(self.output("node", "-e", text, where, self.seconds, str(ROOT / "bindings/node")))

    def subjects(self, store, where):
        url = f"redis+unix://{where}" if store == "redis" else f"zookeeper://{where}/w1"
        ours = {"C++": self.cpp(url), "Python": self.python(HOLDFAST_PYTHON, url)}
        node = {"Node": self.node(HOLDFAST_NODE, url)}
        if store == "zookeeper":
            return ours | {"kazoo's `Lock` (Python)": self.python(KAZOO, where)} | node
        return (ours | {"redis-py's `Lock` (Python)": self.python(REDIS_PY, where)} | node |
                {"redlock with ioredis (Node)": self.node(REDLOCK, where),
                 "redis-semaphore's `Mutex` with ioredis (Node)": self.node(REDIS_SEMAPHORE, where)})


def connects(family, address):
    with socket.socket(family) as client:
        return client.connect_ex(address) == 0


@contextlib.contextmanager
def running(command, answers):
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            while not answers():
                if server.poll() is not None:
                    raise SystemExit(f"{command[0]} ended at once")
                time.sleep(0.02)
            yield
        finally:
            server.kill()


@contextlib.contextmanager
def redis(folder):
    path = f"{folder}/redis.sock"
    with running(["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder],
                 lambda: connects(socket.AF_UNIX, path)):
        yield path


@contextlib.contextmanager
def zookeeper(folder):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = pathlib.Path(folder) / "zookeeper.cfg"
    settings.write_text(f"dataDir={folder}/zookeeper\nclientPort={port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n")
    with running(["java", "-Xmx192m", "-cp", JARS, "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(settings)],
                 lambda: connects(socket.AF_INET, ("127.0.0.1", port))):
        yield f"127.0.0.1:{port}"


def rounds_of(subjects, rounds):
    """The rates of each subject, one for each round. All take turns; every second round goes backwards, so that none is always the first.
    A round before them does not count: a server that has just started is slow, because Java compiles code while it runs."""
    for once in subjects.values():
        once()
    had = {name: [] for name in subjects}
    for number in range(rounds):
        for name in (reversed(had) if number % 2 else had):
            had[name].append(subjects[name]())
    return had


def compared(had, to="C++"):
    """A row for each subject: its median rate, and how many times as long as `to` it takes in the same round, as median and quartiles."""
    for name, rates in had.items():
        low, median, high = statistics.quantiles([base / rate for base, rate in zip(had[to], rates)], n=4, method="inclusive")
        yield {"client": name, "ops_per_s": round(statistics.median(rates)), "ratio": round(median, 4),
               "ratio_quartiles": [round(low, 4), round(high, 4)]}


def measure(bench, store, rounds):
    """The rows of this store."""
    how = {"store": store, "rounds": rounds, "seconds": float(bench.seconds), "load": os.getloadavg()[0],
           "date": datetime.date.today().isoformat(), "machine": report.hardware()}
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # measures the clients, not the disk
    with tempfile.TemporaryDirectory(dir=memory) as folder, {"redis": redis, "zookeeper": zookeeper}[store](folder) as where:
        return [how | row for row in compared(rounds_of(bench.subjects(store, where), rounds))]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    arguments.add_argument("--stores", default="redis,zookeeper")
    arguments.add_argument("--seconds", default="0.5")
    arguments.add_argument("--rounds", type=int, default=31)
    arguments.add_argument("--write", action="store_true", help="write the results and the page")
    given = arguments.parse_args()
    if given.write and given.stores != arguments.get_default("stores"):
        arguments.error("--write needs all stores, since it replaces the whole file")
    if given.rounds < 2:
        arguments.error("--rounds: quartiles need at least 2")
    bench = Bench(given.build.resolve(), given.seconds)
    rows = [row for store in given.stores.split(",") for row in measure(bench, store, given.rounds)]
    if given.write:
        (ROOT / "bench/results/languages.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
        report.write(report.of_languages(ROOT, rows))
    else:
        print("\n".join(report.languages_tables(rows)))


if __name__ == "__main__":
    main()
