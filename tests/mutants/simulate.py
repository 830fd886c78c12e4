"""What the simulator finds by itself: each fault that it reaches is put on, and it searches fresh seeds of all themes for a while."""
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

SECONDS = 20
FIRST = 25_000_000_000  # seeds that nobody has looked at; each fault has some of its own
MARKS = 1 << 20  # bytes, as mutant.hpp has them
FOUND = re.compile(r"^seed (\S+): (.*)$", re.M)


@dataclasses.dataclass
class Verdict:
    fault: str
    how: str  # found, not found, not reached
    seed: str = ""
    rule: str = ""
    seconds: float = 0


def search(program, seconds, first, **environment):
    command = [program, "--soak", str(seconds), "--most", "1", "--from", str(first)]
    return subprocess.run(command, env=dict(os.environ, **environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, errors="replace", check=False)


def reached(program, faults, seconds):
    """Those whose places in the sources are come past without a fault, and that nothing is found then."""
    with tempfile.NamedTemporaryFile() as marks:
        marks.truncate(MARKS)
        ended = search(program, seconds, FIRST, HOLDFAST_MUTANT="", HOLDFAST_MUTANTS_REACHED=marks.name)
        if ended.returncode:
            raise RuntimeError(f"the simulator finds something without a fault: {ended.stdout}")
        seen = pathlib.Path(marks.name).read_bytes()
    return {f.id for f in faults if seen[f.number >> 12]}


def judge(program, fault, seconds):
    began = time.monotonic()
    ended = search(program, seconds, FIRST + fault.number, HOLDFAST_MUTANT=fault.id)
    took = round(time.monotonic() - began, 1)
    if match := FOUND.search(ended.stdout):
        return Verdict(fault.id, "found", match[1], match[2][:300], took)
    return Verdict(fault.id, "not found" if ended.returncode == 0 else "found", "", f"ended by {ended.returncode}", took)


def run(program, faults, file, say):
    """One after the other, in an order that has nothing to do with the areas; goes on where it was stopped."""
    known = [Verdict(**json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    done = {v.fault for v in known}
    todo = sorted((f for f in faults if f.id not in done), key=lambda f: f.number)
    those = reached(program, todo, 6 * SECONDS) if todo else set()
    with open(file, "a", encoding="utf-8") as out:
        for fault in todo:
            verdict = judge(program, fault, SECONDS) if fault.id in those else Verdict(fault.id, "not reached")
            out.write(json.dumps(dataclasses.asdict(verdict)) + "\n")
            out.flush()
            say(f"{verdict.how:11} {fault.id:50} {verdict.rule[:80]} ({verdict.seconds} s)")
            known.append(verdict)
    return [v for v in known if v.fault in {f.id for f in faults}]


def summary(verdicts):
    hows = ("found", "not found", "not reached")
    lines = [f"{'':14}" + "".join(f"{how:>13}" for how in hows)]
    for area in sorted({v.fault.split("/")[0] for v in verdicts}):
        mine = [v.how for v in verdicts if v.fault.startswith(area + "/")]
        lines.append(f"{area:14}" + "".join(f"{mine.count(how):13}" for how in hows))
    return lines
