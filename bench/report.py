#!/usr/bin/env python3
"""Writes the figures of bench/results/*.json into docs/bench.md, docs/choosing-a-store.md and README.md, and draws docs/bench.svg and
docs/growth.svg.

Run it right after the measurement and on the same machine (scripts/bench.sh does): it notes down what machine that is.
The results hold one JSON object a line, as holdfast-bench --json prints them.
page.json and languages.json are different: they note down their own machine. bench/languages.py also writes its part of the page.
Usage: report.py [--root FOLDER] [--growth | --page | --check]
"""
import argparse
import itertools
import json
import os
import pathlib
import platform
import re
import sys

import plots
from plots import number


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def hardware():
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
               platform.processor() or platform.machine())
    return f"{cpu}, {os.cpu_count()} processors, {platform.system()} {platform.release()}"


def machine():
    return f"{hardware()}; load average of the last 15 minutes {os.getloadavg()[2]:.1f}"


def table(rows):
    yield "| | who | per second | p50 µs | p99 µs | least … most | store ops | holdfast to it |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|"
    ratios = {row["workload"]: row for row in rows if row["subject"] == "holdfast"}
    before = None
    for row in rows:
        ours = ratios.get(row["workload"], {})
        ratio = ours.get("ratios", {}).get(row["subject"])
        mark = "**" if row["subject"] == ours.get("floor") else ""
        shares = "–" if row["min_share"] is None else f"{row['min_share']:.2f} … {row['max_share']:.2f}"
        cells = ["" if row["workload"] == before else row["workload"], row["subject"], number(row["ops_per_s"]),
                 number(row["p50_us"]), number(row["p99_us"]), shares, number(row["store_ops_per_acquire"]),
                 f"{mark}{number(ratio)} ×{mark}" if ratio is not None else ""]
        extra = [f"{100 * row['efficiency']:.0f} % efficient"] if row["efficiency"] is not None else []
        extra += [f"{row['cpu_percent']:.2f} % of a processor"] if row["cpu_percent"] is not None else []
        extra += [f"{row['bytes_each']:,.0f} bytes each"] if row.get("bytes_each") is not None else []
        extra += [f"{row['statements_each']:.4f} statements a waiter and second, of {row['acquired']:,.0f}"] \
            if row.get("statements_each") is not None else []
        extra += [f"server {row['store_cpu_us']:.1f} µs"] if row.get("store_cpu_us") is not None else []
        extra += [f"{row['store_cpu_ratio']:.2f} × its CPU"] if row.get("store_cpu_ratio") is not None else []
        extra += [f"{row['round_trips']:.1f} round trips"] if row.get("round_trips") is not None else []
        extra += [f"without a store {row['least_us']:.0f} µs"] if row.get("least_us") is not None else []
        extra += [f"{row['hand_overs']:.2f} hand-overs"] if row.get("hand_overs") is not None else []
        extra += [f"{row['notices_per_unlock']:.2f} told of an unlock"] if row.get("notices_per_unlock") is not None else []
        cells[1] += "".join(f" ({text})" for text in extra)
        yield "| " + " | ".join(cells) + " |"
        before = row["workload"]


def growth_table(rows):
    """A line for each series, a column for each number: the median in µs, and the bytes of each."""
    counts = list(dict.fromkeys(row["subject"] for row in rows))
    yield "| µs, median (bytes each) | " + " | ".join(counts) + " |"
    yield "|---|" + "--:|" * len(counts)
    for name in dict.fromkeys(row["workload"] for row in rows):
        cells = {row["subject"]: f"{number(row['p50_us'])} ({max(row['bytes_each'] or 0, 0):,.0f})" for row in rows
                 if row["workload"] == name}
        yield f"| {name} | " + " | ".join(cells.get(count, "–") for count in counts) + " |"


def languages_tables(rows):
    """A table for each store: how many locks and unlocks a client makes, and how many times as long as the C++ client it takes."""
    how = rows[0]
    yield f"Measured on {how['date']}, {how['rounds']} rounds of {how['seconds']:g} s each."
    yield f"Machine: {how['machine']}; load average of the minute before {how['load']:.1f}."
    for store in dict.fromkeys(row["store"] for row in rows):
        yield from ("", f"| W1 on `{store}:` | per second | time of C++'s | half of the rounds |", "|---|--:|--:|--:|")
        for row in rows:
            if row["store"] == store:
                low, high = row["ratio_quartiles"]
                half = "–" if row["client"] == "C++" else f"{low:.2f} to {high:.2f} ×"
                yield f"| {row['client']} | {row['ops_per_s']:,.0f} | {row['ratio']:.2f} × | {half} |"


# The part of the results that the README shows: the workload, and the alternatives as store and
# subject.
README = {"W1": "lock + unlock, free name", "W1-linger": "the same with [`linger`](docs/mutex.md#options)",
          "W2": "16 threads, a free name each", "W3": "8 threads, one name", "W4": "4 processes × 4 threads, one name",
          "W6": "200 waiters of four processes"}
BESIDE = (("sqlite", "sqlite"), ("sqlite", "flock"), ("redis", "loop"))


def readme_table(results):
    yield ""  # the site's reader of the pages needs an empty line before a table
    yield (
        "| acquisitions a second (2 × means twice as many) "
        "| holdfast on SQLite ÷ lock row by hand | holdfast on SQLite ÷ `flock(2)` | holdfast on Redis ÷ `SET NX` by hand |"
    )
    yield "|---|--:|--:|--:|"
    for workload, words in README.items():
        ratios = [next(row for row in results[store] if (row["workload"], row["subject"]) == (workload, "holdfast"))["ratios"][subject]
                  for store, subject in BESIDE]
        yield f"| {words} | " + " | ".join(f"{number(ratio)} ×" for ratio in ratios) + " |"
    yield ""


# The results with a store of their own, as docs/choosing-a-store.md names the stores.
STORES = {"memory": "`memory:`", "sqlite": "`sqlite:`", "redis": "`redis:`", "memcached": "`memcached:`", "postgres": "`postgres:`",
          "postgres_session": "`postgres:` with `mode=session`", "mariadb": "`mariadb:`",
          "mariadb_session": "`mariadb:` with `mode=session`", "etcd": "`etcd:`, three servers", "zookeeper": "`zookeeper:`, three servers"}


def choosing_table(results):
    """The median of a free lock on each store, the shortest first."""
    medians = {store: next(row for row in results[store] if (row["workload"], row["subject"]) == ("W1", "holdfast"))["p50_us"]
               for store in STORES}
    yield ""
    yield "| `lock()` of a free name, one thread | median |"
    yield "|---|--:|"
    for store in sorted(STORES, key=medians.__getitem__):
        yield f"| {STORES[store]} | {number(medians[store])} µs |"
    yield ""


def page_table(measured):
    """What tests/browser/measure.py measured."""
    names, row_s = measured["names"], measured["row_s"]

    def row(kind):
        cells = [sorted(times) for times in row_s[kind].values()]
        return f"| a lock of another process is in its row, on `{kind}:` | " + " · ".join(
            f"{times[len(times) // 2]:.1f} s ({times[0]:.1f} … {times[-1]:.1f})" for times in cells) + " |"

    yield f"Measured on {measured['date']}, median (least … most) of {measured['takes']} locks."
    yield f"Machine: {measured['machine']}; load average of the minute before {measured['load']:.1f}."
    yield ""
    yield f"| `holdfast serve` at the default share, one viewer | {' · '.join(f'{int(count):,}' for count in row_s['redis'])} names |"
    yield "|---|--:|"
    yield from map(row, row_s)
    yield f"| all {names:,} rows are there, on `redis:` | {measured['all_rows_s']:.1f} s |"
    yield f"| the longest frame meanwhile | {measured['longest_frame_ms']:.0f} ms |"
    yield f"| processor time of `serve`, of one processor, with {names:,} names | {measured['serve_percent']:.2f} % |"
    yield f"| the same of `redis-server`, with the renewals | {measured['store_percent']:.2f} % |"
    yield f"| first paint, in a browser that has just started | {measured['paint_cold_ms']:.0f} ms |"
    yield f"| the same of a page of one word, without a server | {measured['paint_blank_ms']:.0f} ms |"
    yield f"| first paint, when the browser is warm | {measured['paint_warm_ms']:.0f} ms |"


def of_page(root, measured):
    """(file, what it should hold) of what scripts/bench.sh measures with a browser, if it has."""
    for row in measured:
        yield root / "docs/serve.md", between(root / "docs/serve.md", "page", ["", *page_table(row), ""])


def between(page, mark, lines):
    """The page with these lines between its marks."""
    pattern = re.compile(rf"(<!-- {mark} -->\n).*?(<!-- /{mark} -->)", re.S)
    new, count = pattern.subn(lambda m: m[1] + "\n".join(lines) + "\n" + m[2], page.read_text())
    if count != 1:
        raise SystemExit(f"{page} has no single part between <!-- {mark} --> and <!-- /{mark} -->")
    return new


def of_growth(root, growth):
    """(file, what it should hold) of each that bench-growth changes."""
    page = root / "docs/bench.md"
    lines = [f"Machine: {machine()}.", ""]
    for store, rows in growth.items():
        lines += [f"### More and more on `{store}:`", "", *growth_table(rows), ""]
    yield page, between(page, "growth", lines)
    yield root / "docs/growth.svg", plots.growth(growth)


def of_languages(root, rows):
    """The same of bench/languages.py."""
    page = root / "docs/bench.md"
    if rows:
        yield page, between(page, "languages", ["", *languages_tables(rows), ""])


def of_results(root, results, where):
    """The same of make bench; `where` is the line that tells the machine."""
    lines = [where, ""]
    for store in sorted(results, key=lambda name: name != "sqlite"):
        load = results[store][0].get("load")
        lines += [f"### On `{store}:`", "", *([f"Load average of the last 15 minutes: {load:.1f}.", ""] if load is not None else []),
                  *table(results[store]), ""]
    page, readme, choosing = root / "docs/bench.md", root / "README.md", root / "docs/choosing-a-store.md"
    yield page, between(page, "results", lines)
    yield choosing, between(choosing, "lock", choosing_table(results))
    yield readme, between(readme, "speed", readme_table(results))
    yield root / "docs/bench.svg", plots.speed(results)


def write(changes):
    for file, text in changes:
        file.write_text(text)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1])
    arguments.add_argument("--growth", action="store_true", help="those of bench-growth only; else the others only")
    arguments.add_argument("--page", action="store_true", help="those of tests/browser/measure.py only")
    arguments.add_argument("--check", action="store_true", help="write nothing; fail if a file differs from the results")
    given = arguments.parse_args()
    root = given.root
    results = {path.stem: read(path) for path in sorted((root / "bench/results").glob("*.json"))}
    languages = results.pop("languages", [])
    growth = {name.removeprefix("growth_"): results.pop(name) for name in list(results) if name.startswith("growth_")}
    page = results.pop("page", [])
    if not (page if given.page else growth if given.growth else results):
        by = "make bench-growth" if given.growth else "make bench"
        if given.page:
            by = "tests/browser/measure.py --json bench/results/page.json"
        raise SystemExit(f"bench/results has nothing of this kind: run {by}")
    if given.check:
        measured_on = re.search(r"<!-- results -->\n(Machine: .*)", (root / "docs/bench.md").read_text())
        wanted = [*of_results(root, results, measured_on[1]), *of_page(root, page), *of_languages(root, languages)]
        stale = [file.name for file, text in wanted if file.read_text() != text]
        if stale:
            sys.exit(f"not as measured: {', '.join(stale)}; run bench/report.py, or for languages.json make bench-languages")
        return
    if given.page:
        new = of_page(root, page)
    elif given.growth:
        new = of_growth(root, growth)
    else:
        # Not a list: of_languages reads the page that of_results has changed.
        new = itertools.chain(of_results(root, results, f"Machine: {machine()}."), of_page(root, page), of_languages(root, languages))
    write(new)


if __name__ == "__main__":
    main()
