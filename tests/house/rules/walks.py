"""The walks in docs/how-it-works.md: each step's function is where the table says, and no walk enters more files than it says."""
import re

from .tree import Finding

PAGE = "docs/how-it-works.md"
BEGIN = re.compile(r"<!-- walk: (\d+) files -->")
STEP = re.compile(r"\| \[[^\]]*\]\(\.\./([^)]+)\) \| `(\w+)` \|")


def check(tree):
    page = tree.get(PAGE)
    if not page:
        return
    begun, most, files = 0, 0, set()
    for number, line in enumerate([*page.lines, "<!-- walk: 0 files -->"], 1):
        if begin := BEGIN.search(line):
            if len(files) > most:
                yield Finding(PAGE, begun, "walks", f"this walk enters {len(files)} files, and says {most}: who follows it opens each")
            begun, most, files = number, int(begin[1]), set()
        elif begun and (step := STEP.match(line)):
            files.add(step[1])
            source = tree.get(step[1])
            if not source or not any(re.search(rf"\b{step[2]}\(", text) for text in source.code):
                yield Finding(PAGE, number, "walks", f"{step[1]} has no function {step[2]}: the walk goes somewhere else")
