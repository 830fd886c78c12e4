#!/usr/bin/env python3
"""summary.py BUILD_FOLDER...: what CTest runs said, test by test; the last line counts the tests.

Many of CTest's entries hold many tests each, and write tests/results/<entry>.xml. An entry that ended before it could do so has failed
as a whole. The others (models, house rules, package consumers, examples) count as one test each.
"""
import pathlib
import sys
import xml.etree.ElementTree as xml


def tests_of(build):
    """(name, seconds, green) of each test that ran there."""
    results = build / "tests/results"
    for entry in xml.parse(results / "ctest.junit").iter("testcase"):
        name, green = entry.get("name"), entry.get("status") == "run"
        inside = results / f"{name}.xml"
        red = False
        for case in xml.parse(inside).iter("testcase") if inside.exists() else ():
            if case.get("result") == "suppressed" or case.get("status") == "notrun":
                continue
            well = case.find("failure") is None and case.get("result") != "skipped"
            red |= not well
            yield f'{case.get("classname")}.{case.get("name")} ({build.name}, {name})', float(case.get("time")), well
        # An entry can fail although its tests passed: a leak is found at the end of the process.
        if not inside.exists() or not green and not red:
            yield f"{name} ({build.name})", float(entry.get("time")), green


def main(builds):
    tests = [test for build in builds for test in tests_of(build)]
    failed = [name for name, _, green in tests if not green]
    if len(builds) == 1:
        slowest = sorted(tests, key=lambda test: -test[1])[:12]
        print("---- the slowest: " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds, _ in slowest))
        print(f"---- {sum(seconds for _, seconds, _ in tests):.0f} s of tests, if they had run one after the other")
    for name in failed:
        print(f"FAILED {name}")
    print(f"{len(tests) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main([pathlib.Path(folder) for folder in sys.argv[1:]]))
