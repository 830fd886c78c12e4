"""The plots of the documentation, in the colours of the reader's scheme (light or dark), as docs/pictures/draw.py draws."""
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "docs/pictures"))

from draw import Picture  # noqa: E402

STORES = {"sqlite": "SQLite", "redis": "Redis"}
SHOWN = {"holdfast": "holdfast", "flock": "flock(2)", "sqlite": "lock row", "loop": "SET NX", "push": "SET NX + push"}
FLOORS = ("holdfast: a mutex with its default options",
          "flock(2): a file lock; no lease, no fence, one host",
          "lock row: a row in SQLite, polled after 1 to 100 ms",
          "SET NX: a key in Redis, retried after 1 ms",
          "SET NX + push: a message reports the release")
LINE = 20  # from one bar to the next


def number(value):
    if value is None:
        return "–"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def power_of_ten(power):
    return f"{10 ** (power % 3)}" + ("", " k", " M", " G")[power // 3]


def groups(results, workloads, key):
    """(heading, [(label, figure)]) for each workload on each store."""
    for workload, words in workloads:
        for store, name in STORES.items():
            found = {row["subject"]: row[key] for row in results[store] if row["workload"] == workload}
            yield words + name, [(label, found[subject]) for subject, label in SHOWN.items() if subject in found]


def panel(picture, left, title, axis, shown):
    """A plot of horizontal bars on a logarithmic scale, 370 wide; returns where it ends."""
    begin, width = left + 108, 190
    figures = [math.log10(figure) for _, bars in shown for _, figure in bars]
    low, high = math.floor(min(figures)), math.ceil(max(figures))
    picture.text(left, 22, title, "b")
    y = 50
    for heading, bars in shown:
        picture.text(left, y, heading, "small")
        for label, figure in bars:
            y += LINE
            length = width * (math.log10(figure) - low) / (high - low)
            picture.text(begin - 6, y + 1, label, "small", "end")
            picture.bar(begin, y - 11, round(length), 14, "held" if label == "holdfast" else "box")
            picture.text(begin + round(length) + 5, y + 1, number(figure), "small")
        y += LINE + 12
    y -= LINE
    picture.line(begin, y, begin + width, y)
    for power in range(low, high + 1):
        x = begin + round(width * (power - low) / (high - low))
        picture.line(x, y, x, y + 5)
        picture.text(x, y + 18, power_of_ten(power), "small", "middle")
    picture.text(begin + width / 2, y + 36, axis, "small", "middle")
    return y + 36


def speed(results):
    """docs/bench.svg: two small plots, and what the names in them mean."""
    picture = Picture(760, 442, "How fast holdfast is, beside locks written by hand",
                      "Two plots of horizontal bars with logarithmic scales, for SQLite and Redis. Left: acquisitions per second of one "
                      "client, and of 16 threads that want one name. Right: the time of a hand-over between two processes. "
                      "docs/bench.md has the figures as tables.")
    panel(picture, 8, "Lock and unlock: more is better", "acquisitions per second, logarithmic",
          list(groups(results, (("W1", "one client, free name, "), ("W4", "4 processes × 4 threads, one name, ")), "ops_per_s")))
    y = panel(picture, 394, "Hand-over: less is better", "µs, median, logarithmic",
              list(groups(results, (("W5", "from one process to another, "),), "p50_us")))
    for line in FLOORS:
        y += LINE
        picture.text(394, y + 14, line, "small")
    return picture.svg()


def growth(results):
    """docs/growth.svg: a small plot for each series, a line for each store; both scales are logarithmic."""
    colours = ["#c2410c", "#0369a1", "#15803d", "#7e22ce", "#b45309", "#0f766e", "#be123c", "#64748b"]
    rows = [row for found in results.values() for row in found]
    low, high = (math.log10(f(row["p50_us"] for row in rows)) for f in (min, max))
    picture = Picture(760, 515, "What an operation costs while there is ever more of something: less is better",
                      "A plot for each series: the median in µs, over how many there are; a line for each store.")
    for place, name in enumerate(dict.fromkeys(row["workload"] for row in rows)):
        left, top = 60 + place % 2 * 370, 40 + place // 2 * 230
        picture.text(left, top - 8, f"{name}: µs, median", "b")
        picture.bar(left, top, 290, 170, "box")
        for power in range(1, 7):
            picture.text(left + (power - 1) * 58, top + 186, f"10^{power}", "small", "middle")
        for power in range(math.ceil(low), math.floor(high) + 1):
            picture.text(left - 4, top + 174 - 170 * (power - low) / (high - low), f"{10 ** power:,}", "small", "end")
        for colour, found in zip(colours, results.values()):
            points = [(left + (math.log10(int(row["subject"].replace(",", ""))) - 1) * 58,
                       top + 170 - 170 * (math.log10(row["p50_us"]) - low) / (high - low))
                      for row in found if row["workload"] == name]
            line = " ".join(f"{x:.0f},{y:.0f}" for x, y in points)
            picture.parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
    for index, (colour, store) in enumerate(zip(colours, results)):
        picture.parts.append(f'<text x="{60 + index * 85}" y="500" style="fill:{colour}">{store}</text>')
    return picture.svg()
