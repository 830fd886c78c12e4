#!/usr/bin/env python3
"""The page of holdfast serve in figures: measure.py HOLDFAST [--json FILE] [--takes N] [--seconds N] [--names N,N,…]

Starts redis-server, programs that hold names there and in an SQLite file, holdfast serve with its default share, and a browser. Prints
and, with --json, writes as one line of JSON:

- first paint in a browser that has just started, beside that of a page without a server; and in one that is warm;
- the time from a lock that another process takes to its row, for each number of names;
- with the most names on Redis: the time until all rows are there, the longest frame meanwhile, and the share of a processor that serve and
  redis-server use while a browser shows the page.
"""
import argparse
import contextlib
import datetime
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "bench")]
import report  # noqa: E402
from chromium import Chromium  # noqa: E402

BROWSERS = 5  # for a median of what only a new one shows
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
# In each document from its first moment on.
FRAMES = """window.longest = 0; let last = performance.now();
const beat = () => { const now = performance.now(); window.longest = Math.max(window.longest, now - last); last = now;
                     requestAnimationFrame(beat); }; requestAnimationFrame(beat);"""


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def share(pids, seconds):
    """The percentage of a processor that each uses meanwhile."""
    before = [processor_seconds(p) for p in pids]
    began = time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - began
    return [100 * (processor_seconds(p) - b) / passed for p, b in zip(pids, before)]


class Started:
    """Programs beside one store. Use it in a with statement: they end with it."""

    def __init__(self, program, store):
        self.program, self.all = program, []
        self.environment = dict(os.environ, HOLDFAST_STORE=store, HOLDFAST_LIBRARY=str(program.parents[1] / "libholdfast-c.so"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.all):
            process.kill()
            process.wait()

    def start(self, *words):
        self.all.append(subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         text=True, env=self.environment))
        return self.all[-1]

    def crowd(self, names):
        process = self.start(sys.executable, "-B", str(HERE / "crowd.py"), self.environment["HOLDFAST_STORE"], str(names))
        process.stdout.readline()

    def serve(self):
        process = self.start(str(self.program), "serve", "--json", "--listen", ":0")
        return process, json.loads(process.stdout.readline())["url"]


def new_browser():
    browser = Chromium()
    browser.LIMIT = 600  # it is measured, however long it takes
    browser.call("Page.addScriptToEvaluateOnNewDocument", source=FRAMES)
    return browser


def first_paint(url):
    """In browsers that have just started, each with a fresh profile."""
    found = []
    for _ in range(BROWSERS):
        with new_browser() as browser:
            browser.open(url)
            found.append(browser.until("painted", "location.href !== 'about:blank' && " + PAINT))
    return statistics.median(found)


def open_page(browser, url, names):
    """The seconds until the table has all names."""
    began = time.monotonic()
    browser.open(url)
    browser.until("all rows", f"document.querySelector('#shown').textContent === '{names} names'")
    return time.monotonic() - began


def times_to_the_row(browser, programs, takes):
    """From the moment when another process has a lock to the moment when the page has its row."""
    browser.until("the first round is over", "fetch('/api/health').then(a => a.json()).then(h => h.allowed_share <= 0.01)")
    found = []
    for n in range(takes):
        time.sleep(random.uniform(0, 6))  # at any moment between two lists
        name = f"a new lock {n}"  # before those of the crowd
        holder = programs.start(str(programs.program), "hold", "--json", "--", name)
        holder.stdout.readline()
        taken = time.monotonic()
        browser.until("its row", f"[...document.querySelectorAll('#rows .row:not([hidden]) .name')].some(e => e.textContent === '{name}')")
        found.append(time.monotonic() - taken)
    return found


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("holdfast", type=pathlib.Path)
    arguments.add_argument("--json", type=pathlib.Path)
    arguments.add_argument("--takes", type=int, default=7)
    arguments.add_argument("--seconds", type=float, default=20)
    arguments.add_argument("--names", default="1,1000,10000")
    given = arguments.parse_args()
    program = given.holdfast.resolve()
    counts = [int(n) for n in given.names.split(",")]
    measured = {"date": datetime.date.today().isoformat(), "machine": report.hardware(), "load": os.getloadavg()[0],
                "names": counts[-1], "takes": given.takes, "row_s": {"redis": {}, "sqlite": {}}}
    with contextlib.ExitStack() as end:
        folder = end.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-measure-"))
        socket = folder + "/redis.sock"
        server = end.enter_context(Started(program, ""))
        redis = server.start("redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder)
        while not os.path.exists(socket):
            time.sleep(0.01)
        for count in counts:
            for kind, url in ("redis", f"redis+unix://{socket}?prefix=p{count}"), ("sqlite", f"sqlite:{folder}/{count}.db"):
                with Started(program, url) as programs:
                    programs.crowd(count)
                    serve, page = programs.serve()
                    with new_browser() as browser:
                        all_rows = open_page(browser, page, count)
                        if (kind, count) == ("redis", counts[-1]):
                            measured |= {"all_rows_s": all_rows, "longest_frame_ms": browser.run("window.longest")}
                            browser.open(page + "?again")  # Chromium has its process for the page by now
                            measured["paint_warm_ms"] = browser.until("painted", "location.search === '?again' && " + PAINT)
                            open_page(browser, page, count)
                        took = measured["row_s"][kind][str(count)] = times_to_the_row(browser, programs, given.takes)
                        print(f"{kind}, {count} names: a lock's row after {', '.join(f'{t:.2f}' for t in sorted(took))} s", flush=True)
                        if (kind, count) == ("redis", counts[-1]):
                            used = share([serve.pid, redis.pid], given.seconds)
                            measured |= {"serve_percent": used[0], "store_percent": used[1]}
                    if (kind, count) == ("redis", counts[-1]):
                        measured |= {"paint_cold_ms": first_paint(page), "paint_blank_ms": first_paint("data:text/html,holdfast")}
    for key, value in measured.items():
        if isinstance(value, float):
            print(f"{key} {value:.2f}")
    if given.json:
        given.json.write_text(json.dumps(measured) + "\n")


if __name__ == "__main__":
    main()
