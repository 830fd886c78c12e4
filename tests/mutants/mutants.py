#!/usr/bin/env python3
"""Seeded faults: a test of the tests.

mutants.py check                 each fault still fits its source, its tests are there, and Lua takes each faulty script
mutants.py compile [PATTERN...]  … and compiles with its switch: each source that a fault is in, alone
mutants.py list [PATTERN...]     the faults
mutants.py write                 the source tree with all faults, in build/mutants/source
mutants.py build                 … and its programs
mutants.py run [PATTERN...]      … and the trial; exits with 1 if a fault survives that is not known to
mutants.py simulate [PATTERN...] … and what the simulator finds by itself, in 20 s each: no tests that were written for a fault

PATTERN: engine/*, scripts/grant-*. To try one by hand: HOLDFAST_MUTANT=engine/name build/mutants/build/tests/test_engine
"""
import argparse
import fnmatch
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import alone  # noqa: E402
import faults as seeded  # noqa: E402
import simulate  # noqa: E402
import tree  # noqa: E402
import trial  # noqa: E402

HOME = seeded.ROOT / "build/mutants"


def configure(folder, rooms, tests, united=12):
    """One build of everything that the faults are in, with none of the lanes' checks: only its tests count."""
    subprocess.run(
        ["cmake", "-S", HOME / "source", "-B", folder, "-G", "Ninja", "-DCMAKE_CXX_COMPILER=g++", "-DCMAKE_BUILD_TYPE=Debug",
         "-DCMAKE_CXX_FLAGS=-w", "-DCMAKE_CXX_FLAGS_DEBUG=-O1 --param=ggc-min-heapsize=500000", f"-DHOLDFAST_UNITY={united}",
         f"-DHOLDFAST_TEST_OPTIONS={tests}",
         "-DHOLDFAST_BUILD_BENCH=OFF", "-DHOLDFAST_BUILD_EXAMPLES=OFF",
         "-DHOLDFAST_INSTALL=OFF", f"-DHOLDFAST_TEST_ROOMS={';'.join(sorted(rooms))}"],
        check=True, stdout=subprocess.DEVNULL)


def build(faults, jobs):
    configure(HOME / "build", {p.partition("_")[0] for f in seeded.read() for p, _ in f.tests}, "-O0")
    make(HOME / "build", {program for f in faults for program, _ in f.tests}, jobs)


def make(folder, programs, jobs):
    targets = [f"test_{p}" for p in sorted(programs)]
    subprocess.run(["cmake", "--build", folder, "--parallel", str(jobs), "--target", *targets], check=True)


def build_simulation(jobs):
    configure(HOME / "simulation", {"simulation"}, "-O1")  # it runs for longer than it is compiled
    make(HOME / "simulation", {"simulation"}, jobs)


def check(faults):
    found = list(seeded.problems(faults))
    for fault, sentence in found:
        print(f"{fault.where}: {fault.id}: {sentence}")
    print(f"{len(faults)} faults, {len(found)} problems")
    return 1 if found else 0


def compile_alone(faults, all_of_them, jobs):
    tree.write(HOME / "source", all_of_them)
    configure(HOME / "alone", set(), "-O0", united=0)
    found, missing = alone.problems(HOME / "source", HOME / "alone", faults, jobs)
    for fault, sentence in found:
        print(f"{fault or 'no fault'}: {sentence}")
    for source in missing:
        print(f"not in this build: {source}")
    print(f"{len(faults)} faults, {len(found)} errors")
    return 1 if found else 0


def run(faults, given):
    began = time.monotonic()
    judge = trial.Trial(HOME / "build/tests", given.trials, lambda line: print(line, flush=True))
    verdicts = judge.run(faults)
    print("\n".join(trial.summary(faults, verdicts)))
    trial.write_json(given.json, verdicts)
    print(f"{time.monotonic() - began:.0f} s; every verdict is in {os.path.relpath(given.json)}")
    known = {f.id for f in faults if f.survives}
    return 1 if any(not v.killed and v.fault not in known for v in verdicts) else 0


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("what", choices=("check", "compile", "list", "write", "build", "run", "simulate"))
    arguments.add_argument("patterns", nargs="*", metavar="PATTERN")
    arguments.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers at the same time")
    arguments.add_argument("--trials", type=int, default=2, help="faults at the same time")
    arguments.add_argument("--json", type=pathlib.Path, default=HOME / "verdicts.json")
    arguments.add_argument("--programs", help="only these test programs, as in kernel,engine: a quick look")
    arguments.add_argument("--no-build", action="store_true", help="run what was built last")
    given = arguments.parse_intermixed_args()
    faults = all_of_them = seeded.read()
    if given.patterns:
        faults = [f for f in faults if any(fnmatch.fnmatchcase(f.id, p) for p in given.patterns)]
    if given.programs:
        for f in faults:
            f.tests = [t for t in f.tests if t[0] in given.programs.split(",")]
        faults = [f for f in faults if f.tests]
    if not faults:
        arguments.error("no fault has such a name")
    if given.what == "list":
        print("\n".join(f"{f.id:50} {f.rule}" for f in faults))
        return 0
    if given.what == "check":
        return check(faults)
    if given.what == "compile":
        return check(all_of_them) or compile_alone(faults, all_of_them, given.jobs)
    if not given.no_build:
        if problems := check(all_of_them):
            return problems
        tree.write(HOME / "source", all_of_them)
        if given.what != "write":
            build_simulation(given.jobs) if given.what == "simulate" else build(faults, given.jobs)
    if given.what == "simulate":
        program, file = HOME / "simulation/tests/test_simulation", HOME / "simulated.jsonl"
        print("\n".join(simulate.summary(simulate.run(program, faults, file, lambda line: print(line, flush=True)))))
    return run(faults, given) if given.what == "run" else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except seeded.Broken as why:
        sys.exit(f"error: {why}")
    except KeyboardInterrupt:
        sys.exit(130)
