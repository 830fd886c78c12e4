#!/usr/bin/env python3
"""What only ZooKeeper and etcd have: other people's clients in W1 and W4 (kazoo; Curator where Debian's libcurator-recipes-java
and a compiler are installed), and how many watchers the servers tell of each unlock in front of 200 waiters (`herd`).
Adds rows to the results of holdfast-bench --json, on the same servers, right after it.

Usage: peers.py zookeeper|etcd HOSTS RESULTS PROGRAM [--seconds EACH]
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import tempfile
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
JARS = [f"/usr/share/java/{name}.jar" for name in (
    "curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute", "guava", "failureaccess", "slf4j-api",
    "slf4j-nop", "netty-all", "netty-handler", "netty-transport", "netty-common", "netty-buffer", "netty-resolver", "netty-codec")]
CREWS = {"W1": (1, 1), "W4": (4, 4)}  # processes, threads of each
ROUNDS = 5
EMPTY = dict.fromkeys(("p50_us", "p99_us", "min_share", "max_share", "store_ops_per_acquire", "ratio_to_floor", "floor", "ratio_of",
                       "efficiency", "cpu_percent", "store_ops_per_s", "store_cpu_us", "bytes_each"))


def compile_curator(folder):
    """The command that starts it, or none."""
    compiler = shutil.which("javac") or shutil.which("ecj")
    if compiler is None or not pathlib.Path(JARS[0]).exists():
        return None
    path = ":".join(jar for jar in JARS if pathlib.Path(jar).exists())
    subprocess.run([compiler, "--release", "11", "-nowarn", "-proc:none", "-cp", path, "-d", folder, HERE / "CuratorPeer.java"], check=True)
    return ["java", "-Xmx128m", "-cp", f"{folder}:{path}", "CuratorPeer"]


def acquisitions(command, processes, threads, hosts, seconds):
    """All processes begin when all are ready."""
    crew = [subprocess.Popen([*command, hosts, str(threads), str(seconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(processes)]
    for one in crew:
        if one.stdout.readline().strip() != "ready":
            raise SystemExit(f"{command[-1]} did not get ready")
    for one in crew:
        one.stdin.write("go\n")
        one.stdin.flush()
    had = sum(int(one.stdout.readline()) for one in crew)
    for one in crew:
        one.communicate()
    return had


def ours(program, store, hosts, workload, seconds):
    """One round of holdfast, as the peers' rounds are."""
    run = subprocess.run([program, "--store", f"{store}://{hosts}/bench", "--workload", workload, "--subject", "holdfast", "--json",
                          "--repeat", "1", "--seconds", str(seconds)], check=True, capture_output=True, text=True)
    return json.loads(run.stdout.splitlines()[0])["ops_per_s"]


def peer_rows(program, store, hosts, seconds):
    """Rows of the peers, and by (workload, peer) what holdfast does to it: the median over rounds in which all take turns."""
    rows, ratios = [], {}
    with tempfile.TemporaryDirectory() as folder:
        peers = {"kazoo": ["/usr/bin/python3", str(HERE / "kazoo_peer.py")], "curator": compile_curator(folder)}
        peers = {name: command for name, command in peers.items() if command is not None}
        each = seconds / ROUNDS
        for workload, (processes, threads) in CREWS.items():
            had = {name: [] for name in peers}
            own = []
            for _ in range(ROUNDS):
                own.append(ours(program, store, hosts, workload, each))
                for name, command in peers.items():
                    had[name].append(acquisitions(command, processes, threads, hosts, each))
            for name, counts in had.items():
                ratios[workload, name] = statistics.median(mine * each / theirs for mine, theirs in zip(own, counts))
                rows.append({**EMPTY, "workload": workload, "subject": name, "ops_per_s": statistics.median(counts) / each,
                             "ratios": {}, "rounds": ROUNDS, "acquired": statistics.median(counts)})
    return rows, ratios


def told_by_zookeeper(host):
    address, port = host.rsplit(":", 1)
    with socket.create_connection((address, int(port))) as s:
        s.sendall(b"mntr")
        said = b"".join(iter(lambda: s.recv(65536), b"")).decode()
    return sum(int(float(n)) for n in re.findall(r"^zk_sum_node_\w+_watch_count\s+(\S+)", said, re.M))


def told_by_etcd(host):
    with urllib.request.urlopen(f"http://{host}/metrics") as answer:
        said = answer.read().decode()
    return sum(int(float(n)) for n in re.findall(r"^etcd_debugging_mvcc_events_total (\S+)", said, re.M))


def herd_rows(store, hosts, program, seconds):
    told = told_by_zookeeper if store == "zookeeper" else told_by_etcd
    count = lambda: sum(told(host) for host in hosts.split(","))
    for subject in ("holdfast", "fair_mutex", f"{store}_recipe"):
        before = count()
        run = subprocess.run([program, "--store", f"{store}://{hosts}/herd", "--workload", "W6", "--subject", subject, "--json",
                              "--repeat", "1", "--seconds", str(seconds)], check=True, capture_output=True, text=True)
        row = json.loads(run.stdout.splitlines()[0])
        yield {**EMPTY, "workload": "herd", "subject": subject, "ops_per_s": None, "ratios": {}, "rounds": 1,
               "acquired": row["acquired"], "notices_per_unlock": (count() - before) / row["acquired"]}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("store", choices=("zookeeper", "etcd"))
    arguments.add_argument("hosts")
    arguments.add_argument("results", type=pathlib.Path)
    arguments.add_argument("program")
    arguments.add_argument("--seconds", type=float, default=10)
    a = arguments.parse_args()
    rows = [json.loads(line) for line in a.results.read_text().splitlines() if line.strip()]
    added, ratios = peer_rows(a.program, a.store, a.hosts, a.seconds) if a.store == "zookeeper" else ([], {})
    for (workload, peer), ratio in ratios.items():
        row = next((r for r in rows if r["workload"] == workload and r["subject"] == "holdfast"), None)
        if row:
            row["ratios"][peer] = ratio
    added += herd_rows(a.store, a.hosts, a.program, a.seconds / ROUNDS)
    order = list(dict.fromkeys(row["workload"] for row in rows + added))
    rows = sorted(rows + added, key=lambda row: order.index(row["workload"]))
    rows[0]["load"] = os.getloadavg()[2]
    a.results.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))


if __name__ == "__main__":
    main()
