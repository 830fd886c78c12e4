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
MARKS = 1 << 20  # bytes, as mutant.hpp has them
FOUND = re.compile(r"^seed ([\w:]+): (.*)$", re.M)
RUNS = re.compile(r"^(\d+) runs, ", re.M)


@dataclasses.dataclass
class Verdict:
    fault: str
    how: str  # found, not found, not reached
    seed: str = ""
    rule: str = ""
    seconds: float = 0
    runs: int = 0


def fresh(number):
    """The program knows where the seeds begin whose plans have all that was thought of; each fault has some of its own."""
    return "--fresh", str(number)


def search(program, seconds, first, most=1, **environment):
    command = [program, "--soak", str(seconds), "--most", str(most), *first]
    return subprocess.run(command, env=dict(os.environ, **environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, errors="replace", check=False)


def reached(program, faults, seconds):
    """Those whose places in the sources a run without a fault comes past."""
    with tempfile.NamedTemporaryFile() as marks:
        marks.truncate(MARKS)
        ended = search(program, seconds, fresh(0), 1000, HOLDFAST_MUTANT="", HOLDFAST_MUTANTS_REACHED=marks.name)
        if ended.returncode:
            print(f"found without any fault: {ended.stdout}", flush=True)
        seen = pathlib.Path(marks.name).read_bytes()
    return {f.id for f in faults if seen[f.number >> 12]}


def is_found_without(program, seed):
    return subprocess.run([program, "--seed", seed, "--whole"], env=dict(os.environ, HOLDFAST_MUTANT=""), stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 1


def judge(program, fault, seconds):
    """What is found without the fault as well is a defect of another kind, and says nothing of this one."""
    began, runs, first = time.monotonic(), 0, fresh(fault.number)
    while (left := seconds - (time.monotonic() - began)) > 0:
        ended = search(program, round(left, 1), first, HOLDFAST_MUTANT=fault.id)
        took = round(time.monotonic() - began, 1)
        runs += int(match[1]) if (match := RUNS.search(ended.stdout)) else 0
        if ended.returncode == 0:
            break
        if not (match := FOUND.search(ended.stdout)):
            return Verdict(fault.id, "found", "", f"ended by {ended.returncode}", took, runs)
        if not is_found_without(program, match[1]):
            return Verdict(fault.id, "found", match[1], match[2][:300], took, runs)
        print(f"seed {match[1]} breaks a rule without any fault: {match[2]}", flush=True)
        first = "--from", str(int(match[1].rpartition(":")[2]) + 1)
    return Verdict(fault.id, "not found", seconds=took, runs=runs)


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
