"""Two loops wait for notifications: of a thread, and of the runner. Each race of a wait is argued there, once."""
import re

from .circles import unit_of
from .tree import Finding

DISPATCHER = "src/session/dispatcher"
MAY_WAIT = ("src/wait/wait_steps", "src/wait/runner", DISPATCHER)
REGISTERED = re.compile(r"\bregistration(?:>|\s*[&*])?\s*(\w+)\s*[;,)({]")


def check(tree):
    files = list(tree.under("src"))
    for file in files:
        if unit_of(file.path) in MAY_WAIT:
            continue
        unit = [f for f in files if unit_of(f.path) == unit_of(file.path)]
        names = {name for f in unit for line in f.code for name in REGISTERED.findall(line)}
        if not names:
            continue
        waits = re.compile(rf"\b(?:{'|'.join(sorted(names))})(?:\.|->)(?:wait|collect)\s*\(")
        for number, line in enumerate(file.code, 1):
            if match := waits.search(line):
                yield Finding(file.path, number, "loops", f"{match[0]}…) is a loop of its own around the dispatcher: make it a "
                              "request, and let wait_until_settled() or the runner wait")
