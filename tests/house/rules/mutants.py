"""The seeded faults (tests/mutants) still fit the sources that they are put into."""
import pathlib
import sys

from .tree import Finding

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "mutants"))
import faults as seeded  # noqa: E402


def check(tree):
    try:
        faults = seeded.read(tree.root / "tests/mutants")
    except seeded.Broken as why:
        place, _, what = str(why).partition(": ")
        path, _, line = place.rpartition(":")
        return [Finding(path, int(line), "mutants", what)]
    return [finding(fault, sentence) for fault, sentence in seeded.problems(faults, tree.root)]


def finding(fault, sentence):
    path, _, line = fault.where.rpartition(":")
    return Finding(path, int(line), "mutants", f"{sentence}: a fault that cannot be put in finds no test that is missing; "
                   "change the entry as the source changed")
