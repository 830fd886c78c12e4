"""The trial: each fault is put on, its tests run, and one of them has to fail."""
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

STARTED = re.compile(r"^\[ RUN      \] (\S+)", re.M)
FAILED = re.compile(r"^\[  FAILED  \] (\S+?),? .*\(\d+ ms\)$", re.M)
NOTHING = re.compile(r"^\[==========\] 0 tests? ", re.M)
# A program that runs no test proves nothing.
NO_TESTS = "no test has this name"
# What a test waits for in vain (harness::eventually) it waits for no longer: usually it comes at once.
PATIENCE = "15"
# And no test takes longer.
BOUND = "25"


@dataclasses.dataclass
class Verdict:
    fault: str
    how: str  # killed, by time-out, survived, not judged
    by: str = ""
    seconds: float = 0

    @property
    def killed(self):
        return self.how in ("killed", "by time-out")


class Trial:
    def __init__(self, programs, jobs, say):
        self.programs = pathlib.Path(programs)  # the folder of the test programs
        self.jobs = jobs
        self.say = say
        self.stopping = threading.Event()
        self.asking = threading.Lock()
        self.first_runs = {}  # of each set of tests, without a fault: what is wrong with it, and how long it takes
        self.begun = set()

    def run(self, faults):
        verdicts, done = [], 0
        for verdict in self.each(self.judge, faults):
            done += 1
            self.say(f"{done:4}/{len(faults)} {verdict.how:11} {verdict.fault:50} {verdict.by} ({verdict.seconds:.1f} s)")
            verdicts.append(verdict)
        order = {f.id: i for i, f in enumerate(faults)}
        return sorted(verdicts, key=lambda v: order[v.fault])

    def each(self, what, things):
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            futures = [pool.submit(what, thing) for thing in things]
            try:
                yield from (f.result() for f in concurrent.futures.as_completed(futures))
            except BaseException:
                self.stopping.set()
                for f in futures:
                    f.cancel()
                raise

    def without_fault(self, test, seconds):
        """Why a set of tests cannot judge: it fails already; nothing if it can. Found out when it is first needed: most sets never are."""
        with self.asking:
            first = self.first_runs.setdefault(test, concurrent.futures.Future())
            mine = first not in self.begun
            self.begun.add(first)
        if mine:
            try:
                how, by, took = self.test(test, "", 5 * seconds)
                first.set_result(("" if how == "green" else f"{how} {by}".strip(), took))
            except BaseException as why:
                first.set_exception(why)
                raise
        return first.result()

    def judge(self, fault):
        began = time.monotonic()
        for test in fault.tests:
            wrong, usual = self.without_fault(test, fault.seconds)
            if wrong:
                return Verdict(fault.id, "not judged", f"without the fault, {' '.join(test)}: {wrong}")
            # On a busy machine all takes longer: what is late is so by its bound beyond twice the usual.
            how, by, _ = self.test(test, fault.id, fault.seconds + 2 * usual)
            if how != "green":
                return Verdict(fault.id, "by time-out" if how == "time-out" else "killed", by, time.monotonic() - began)
        return Verdict(fault.id, "survived", "", time.monotonic() - began)

    def test(self, test, fault, seconds):
        """(green, red or time-out; the test; how long)"""
        program, pattern = test
        folder = tempfile.mkdtemp(prefix="hfm")
        os.chmod(folder, 0o755)  # some servers run as another user
        environment = dict(os.environ, HOLDFAST_MUTANT=fault, HOLDFAST_PATIENCE=PATIENCE, HOLDFAST_TEST_BOUND=BOUND, TMPDIR=folder)
        command = [self.programs / f"test_{program}", f"--gtest_filter={pattern}", "--gtest_fail_fast", "--gtest_color=no"]
        began = time.monotonic()
        with open(f"{folder}/said", "w+", encoding="utf-8", errors="replace") as said:
            child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=said,
                                     stderr=subprocess.STDOUT, start_new_session=True)
            late = False
            while child.poll() is None and not (late := time.monotonic() - began > seconds) and not self.stopping.is_set():
                time.sleep(0.02)
            try:  # what it has started goes with it
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            code = child.wait()
            said.seek(0)
            text = said.read()
        shutil.rmtree(folder, ignore_errors=True)
        took = time.monotonic() - began
        failed, started = FAILED.findall(text), STARTED.findall(text)
        if late:
            return "time-out", started[-1] if started else program, took
        if code == 0 and NOTHING.search(text):
            return "red", NO_TESTS, took
        if code == 0:
            return "green", "", took
        if failed:
            return "red", failed[0], took
        return "red", (f"{started[-1]}, " if started else "") + f"ended by {code}", took


def summary(faults, verdicts):
    """Lines for people: what survived and why that matters, and the rate by area."""
    lines, by_id = [], {f.id: f for f in faults}
    late = [v for v in verdicts if v.how == "by time-out"]
    if late:
        lines += ["", "Found only because a test did not end (a test with a bound would say what is wrong):"]
        lines += [f"  {v.fault}: {v.by}" for v in late]
    alive = [v for v in verdicts if v.how == "survived"]
    if alive:
        lines += ["", "Survived:"]
        for v in alive:
            fault = by_id[v.fault]
            lines += [f"  {v.fault} ({fault.where})", f"      {fault.rule}"]
            lines += [f"      known: {fault.survives}"] if fault.survives else []
    lines += ["", f"{'':14} {'faults':>7} {'killed':>7} {'survived':>9} {'not judged':>11} {'rate':>6}"]
    areas = list(dict.fromkeys(f.area for f in faults))
    for area in (*areas, "all"):
        mine = [v for v in verdicts if area in ("all", by_id[v.fault].area)]
        killed, survived = sum(v.killed for v in mine), sum(v.how == "survived" for v in mine)
        rate = f"{100 * killed / (killed + survived):.0f} %" if killed + survived else "-"
        lines.append(f"{area:14} {len(mine):7} {killed:7} {survived:9} {len(mine) - killed - survived:11} {rate:>6}")
    return lines


def write_json(path, verdicts):
    path.write_text(json.dumps([dataclasses.asdict(v) for v in verdicts], indent=1) + "\n", encoding="utf-8")
