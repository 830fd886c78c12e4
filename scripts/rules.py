#!/usr/bin/env python3
"""rules.py BEFORE [AFTER]: how many rules run for each primitive on each store, at two commits (AFTER: the present files).

From docs/matrix.md, which a test compares with what the conformance suite runs. A cell is "after", or "before → after"; the last
line names those that became fewer.
"""
import pathlib
import subprocess
import sys

PAGE = "docs/matrix.md"
TABLES = {"## What runs where": "Rules x stores", "## The same with options": "The same with options for every lock"}


def page_at(commit):
    if commit is None:
        return pathlib.Path(__file__).parent.parent.joinpath(PAGE).read_text(encoding="utf-8")
    return subprocess.run(["git", "show", f"{commit}:{PAGE}"], check=True, capture_output=True, text=True).stdout


def tables_of(page):
    """{heading: {(primitive, store): cell}}, in the order of the page."""
    found, heading, stores = {}, None, []
    for line in page.splitlines():
        if line.startswith("## "):
            heading, stores = line, []
        if heading not in TABLES or not line.startswith("|") or line.startswith("|---"):
            continue
        first, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        if not stores:
            stores = cells
            continue
        found.setdefault(heading, {}).update({(first.strip("`"), s): c for s, c in zip(stores, cells)})
    return found


def rules(cell):
    return int(cell) if cell.isdigit() else 0


def shown(before, after):
    return after if before == after else f"{before} → {after}"


def print_table(title, before, after):
    cells = {**before, **after}
    stores = list(dict.fromkeys(store for _, store in cells))
    print(f"\n{title}: {sum(map(rules, before.values()))} → {sum(map(rules, after.values()))}\n")
    print("| | " + " | ".join(stores) + " |")
    print("|---" * (len(stores) + 1) + "|")
    for primitive in dict.fromkeys(primitive for primitive, _ in cells):
        row = [shown(before.get((primitive, s), "–"), after.get((primitive, s), "–")) for s in stores]
        print(f"| {primitive} | " + " | ".join(row) + " |")


def main(before, after=None):
    before, after = tables_of(page_at(before)), tables_of(page_at(after))
    for heading, title in TABLES.items():
        print_table(title, before.get(heading, {}), after.get(heading, {}))
    fewer = [
        f"{primitive} on {store}: {cell} → {after.get(heading, {}).get((primitive, store), '–')}"
        for heading, cells in before.items()
        for (primitive, store), cell in cells.items()
        if rules(after.get(heading, {}).get((primitive, store), "–")) < rules(cell)
    ]
    print("\nCells with fewer rules: " + ("; ".join(fewer) or "none"))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
