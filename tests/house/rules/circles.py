"""No circle between units: a unit is a source file with its header, and what it includes of the project lies below it. A public
header is a unit of its own: an interface, below all that implement or use it."""
import re

from .tree import Finding

TREES = ("include", "src", "tool", "bench")
ROOTS_QUOTED, ROOTS_IN_ANGLES = ("src/", ""), ("include/",)


def unit_of(path):
    return path.rsplit(".", 1)[0]


def check(tree):
    files = list(tree.under(*TREES))
    units = {unit_of(f.path) for f in files}
    arrows = {}
    for file in files:
        for line, name, quoted in file.includes:
            for root in ROOTS_QUOTED if quoted else ROOTS_IN_ANGLES:
                target = unit_of(root + name)
                if target in units and target != unit_of(file.path):
                    arrows.setdefault(unit_of(file.path), {}).setdefault(target, (file.path, line))
    for circle in _circles(arrows):
        for unit in sorted(circle):
            for target, (path, line) in sorted(arrows[unit].items()):
                if target in circle:
                    yield Finding(path, line, "circles", f"{unit} and {target} include each other, be it through others "
                                  f"({', '.join(sorted(circle))}): none can be read, tested or replaced alone. Put what both "
                                  "need below both, or what one asks of the other into an interface")
    # A public class shows nobody but those friends what it is made of.
    yield from _friends([f for f in files if not f.path.startswith("include/")])


def _friends(files):
    """A class opens itself to its own parts only: friends are in the same unit."""
    for file in files:
        for number, line in enumerate(file.code, 1):
            friend = re.match(r"\s*friend (?:class|struct) (?:\w+::)*(\w+);", line)
            if friend and not any(re.match(rf"\s*(?:class|struct) (?:\w+::)*{friend[1]}\b(?!\s*;)", text)
                                  for other in files if unit_of(other.path) == unit_of(file.path) for text in other.code):
                yield Finding(file.path, number, "circles", f"{friend[1]} is in another unit and sees all of this class: say what "
                              "it may ask in an interface")


def _circles(arrows):
    """The strongly connected components of more than one unit (Tarjan)."""
    number, lowest, stack, on_stack, found = {}, {}, [], set(), []

    def visit(unit):
        number[unit] = lowest[unit] = len(number)
        stack.append(unit)
        on_stack.add(unit)
        for target in arrows.get(unit, ()):
            if target not in number:
                visit(target)
                lowest[unit] = min(lowest[unit], lowest[target])
            elif target in on_stack:
                lowest[unit] = min(lowest[unit], number[target])
        if lowest[unit] == number[unit]:
            circle = set()
            while unit not in circle:
                circle.add(stack.pop())
            on_stack.difference_update(circle)
            if len(circle) > 1:
                found.append(circle)

    for unit in sorted(arrows):
        if unit not in number:
            visit(unit)
    return found
