#!/usr/bin/env python3
"""Writes the figures of bench/results/*.json into docs/bench.md, and draws docs/bench.svg and docs/growth.svg.

Run it right after the measurement and on the same machine (scripts/bench.sh does): it notes down what machine that is.
The results hold one JSON object a line, as holdfast-bench --json prints them. Usage: report.py [--root FOLDER] [--growth]
"""
import argparse
import json
import math
import os
import pathlib
import platform
import re

COLOURS = {"holdfast": "#c2410c", "flock": "#64748b", "pthread_robust": "#94a3b8", "sqlite": "#0369a1",
           "sqlite_begin_immediate": "#7dd3fc"}
UNITS = {"ops_per_s": "acquisitions a second", "p50_us": "µs, median", "cpu_percent": "% of a processor"}


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def machine():
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
               platform.processor() or platform.machine())
    return (f"{cpu}, {os.cpu_count()} processors, {platform.system()} {platform.release()}; load average of the last 15 minutes "
            f"{os.getloadavg()[2]:.1f}")


def number(value):
    if value is None:
        return "–"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


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


def text(x, y, content, more=""):
    return f'<text x="{x}" y="{y}"{more}>{content}</text>'


def bars(rows, key, top):
    """Bars on a logarithmic scale, from a tenth of the smallest to the greatest."""
    known = [row for row in rows if row[key]]
    low = math.log10(min(row[key] for row in known)) - 0.5
    high = math.log10(max(row[key] for row in known))
    for index, row in enumerate(known):
        y, width = top + index * 16, 6 + 400 * (math.log10(row[key]) - low) / (high - low)
        yield f'<rect x="190" y="{y}" width="{width:.0f}" height="12" fill="{COLOURS.get(row["subject"], "#a3a3a3")}"/>'
        yield text(184, y + 10, row["subject"], ' text-anchor="end"')
        yield text(196 + round(width), y + 10, number(row[key]))


def plot(rows):
    """One group of bars for each workload: what holdfast is compared by there."""
    parts, y = [], 10
    for name in dict.fromkeys(row["workload"] for row in rows):
        group = [row for row in rows if row["workload"] == name]
        key = next((row["ratio_of"] for row in group if row["ratio_of"]), "ops_per_s")
        if not any(row[key] for row in group):
            continue
        parts.append(text(10, y + 14, f"{name}: {UNITS[key]}", ' font-weight="bold"'))
        parts += bars(group, key, y + 22)
        y += 36 + 16 * sum(1 for row in group if row[key])
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="720" height="{y + 20}" font-family="sans-serif" '
            f'font-size="11" fill="#1f2937"><rect width="720" height="{y + 20}" fill="#ffffff"/>')
    foot = text(10, y + 10, "Logarithmic scale. From bench/results; docs/bench.md says how it was measured.")
    return "\n".join([head, *parts, foot, "</svg>"]) + "\n"


def growth_table(rows):
    """A line for each series, a column for each number: the median in µs, and the bytes of each."""
    counts = list(dict.fromkeys(row["subject"] for row in rows))
    yield "| µs, median (bytes each) | " + " | ".join(counts) + " |"
    yield "|---|" + "--:|" * len(counts)
    for name in dict.fromkeys(row["workload"] for row in rows):
        cells = {row["subject"]: f"{number(row['p50_us'])} ({max(row['bytes_each'] or 0, 0):,.0f})" for row in rows
                 if row["workload"] == name}
        yield f"| {name} | " + " | ".join(cells.get(count, "–") for count in counts) + " |"


def growth_plot(results):
    """A small plot for each series, a line for each store; both scales are logarithmic."""
    colours = ["#c2410c", "#0369a1", "#15803d", "#7e22ce", "#b45309", "#0f766e", "#be123c", "#475569"]
    rows = [row for found in results.values() for row in found]
    low, high = (math.log10(f(row["p50_us"] for row in rows)) for f in (min, max))
    parts = []
    for place, name in enumerate(dict.fromkeys(row["workload"] for row in rows)):
        left, top = 50 + place % 2 * 360, 40 + place // 2 * 230
        parts.append(text(left, top - 8, f"{name}: µs, median", ' font-weight="bold"'))
        parts.append(f'<rect x="{left}" y="{top}" width="290" height="170" fill="none" stroke="#cbd5e1"/>')
        for power in range(1, 7):
            parts.append(text(left + (power - 1) * 58, top + 184, f"10^{power}", ' text-anchor="middle"'))
        for power in range(math.ceil(low), math.floor(high) + 1):
            y = top + 170 - 170 * (power - low) / (high - low)
            parts.append(text(left - 4, y + 4, f"{10 ** power:,}", ' text-anchor="end"'))
        for colour, found in zip(colours, results.values()):
            points = [(left + (math.log10(int(row["subject"].replace(",", ""))) - 1) * 58,
                       top + 170 - 170 * (math.log10(row["p50_us"]) - low) / (high - low))
                      for row in found if row["workload"] == name]
            line = " ".join(f"{x:.0f},{y:.0f}" for x, y in points)
            parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
    for index, (colour, store) in enumerate(zip(colours, results)):
        parts.append(text(50 + index * 85, 500, store, f' fill="{colour}" font-weight="bold"'))
    return "\n".join(['<svg xmlns="http://www.w3.org/2000/svg" width="740" height="515" font-family="sans-serif" font-size="11" '
                      'fill="#1f2937"><rect width="740" height="515" fill="#ffffff"/>', *parts, "</svg>"]) + "\n"


def write_between(page, mark, lines):
    old = page.read_text()
    pattern = re.compile(rf"(<!-- {mark} -->\n).*?(<!-- /{mark} -->)", re.S)
    new, count = pattern.subn(lambda m: m[1] + "\n".join(lines) + "\n" + m[2], old)
    if count != 1:
        raise SystemExit(f"{page} has no single part between <!-- {mark} --> and <!-- /{mark} -->")
    page.write_text(new)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1])
    arguments.add_argument("--growth", action="store_true", help="those of bench-growth only; else the others only")
    given = arguments.parse_args()
    root = given.root
    results = {path.stem: read(path) for path in sorted((root / "bench/results").glob("*.json"))}
    growth = {name.removeprefix("growth_"): results.pop(name) for name in list(results) if name.startswith("growth_")}
    if not (growth if given.growth else results):
        raise SystemExit("bench/results has nothing: run make bench, or make bench-growth")
    if given.growth:
        lines = [f"Machine: {machine()}.", ""]
        for store, rows in growth.items():
            lines += [f"### More and more on `{store}:`", "", *growth_table(rows), ""]
        write_between(root / "docs/bench.md", "growth", lines)
        (root / "docs/growth.svg").write_text(growth_plot(growth))
        return

    lines = [f"Machine: {machine()}.", ""]
    for store in sorted(results, key=lambda name: name != "sqlite"):
        load = results[store][0].get("load")
        lines += [f"### On `{store}:`", "", *([f"Load average of the last 15 minutes: {load:.1f}.", ""] if load is not None else []),
                  *table(results[store]), ""]
    write_between(root / "docs/bench.md", "results", lines)
    shown = results.get("sqlite") or next(iter(results.values()))
    (root / "docs/bench.svg").write_text(plot(shown))


if __name__ == "__main__":
    main()
