#!/usr/bin/env python3
"""What holdfast serve costs: measure.py HOLDFAST [NAMES] [SECONDS]

Starts a redis-server of its own, a program that holds that many names, holdfast serve, and a browser that looks at it. Prints
the first paint in a browser that has just started and in one that is warm, when all rows are there, and the share of a processor
that serve and redis-server use meanwhile.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from chromium import Chromium  # noqa: E402


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def share(pids, seconds):
    before = [processor_seconds(p) for p in pids]
    began = time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - began
    return [100 * (processor_seconds(p) - b) / passed for p, b in zip(pids, before)]


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    names = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 30
    with tempfile.TemporaryDirectory(prefix="holdfast-measure-") as folder:
        socket = folder + "/redis.sock"
        environment = dict(os.environ, HOLDFAST_STORE="redis+unix://" + socket,
                           HOLDFAST_LIBRARY=str(program.parents[1] / "libholdfast-c.so"))
        started = []

        def start(*words):
            started.append(subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *words], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True, env=environment))
            return started[-1]

        redis = start("redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder)
        while not os.path.exists(socket):
            time.sleep(0.01)
        crowd = start(sys.executable, "-B", str(HERE / "crowd.py"), environment["HOLDFAST_STORE"], str(names))
        print(crowd.stdout.readline().strip())
        serve = start(str(program), "serve", "--json", "--listen", ":0")
        url = json.loads(serve.stdout.readline())["url"]
        print("without serve's viewers: redis-server %.2f %%" % share([redis.pid], seconds / 3)[0])
        with Chromium() as browser:
            browser.LIMIT = 600  # it is measured, however long it takes
            began = time.monotonic()
            browser.open(url)
            browser.until("all rows", f"document.querySelector('#shown').textContent === '{names} names'")
            print("all rows after %.2f s" % (time.monotonic() - began))
            print("first contentful paint %.0f ms" %
                  browser.run("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
            time.sleep(2)
            browser.open(url + "?again")  # Chromium has its process for the page by now
            paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
            print("… again %.0f ms" % browser.until("painted", "location.search === '?again' && " + paint))
            browser.until("all rows again", f"document.querySelector('#shown').textContent === '{names} names'")
            used = share([serve.pid, redis.pid], seconds)
            print("with a viewer, over %g s: serve %.2f %%, redis-server %.2f %% of a processor" % (seconds, *used))
            health = browser.run("fetch('/api/health').then(a => a.json())")
            print({key: health[key] for key in ("allowed_share", "used_share", "round_seconds", "round_trip_seconds", "commands")})
        for process in reversed(started):
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
