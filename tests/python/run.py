#!/usr/bin/env python3
"""run.py RESULTS [NAME...]: the tests of the Python package, on memory, SQLite and Redis; writes the results for
scripts/summary.py. HOLDFAST_LIBRARY names the library that is tested."""
import pathlib
import signal
import sys
import time
import unittest
import xml.etree.ElementTree as xml

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "bindings/python")]


class Result(unittest.TextTestResult):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.suite = xml.Element("testsuite")

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()
        where, _, name = test.id().rpartition(".")
        self.case = xml.SubElement(self.suite, "testcase", classname=f"python.{where}", name=name, status="run", result="completed")

    def stopTest(self, test):
        self.case.set("time", f"{time.monotonic() - self.began:.3f}")
        super().stopTest(test)

    def addError(self, test, why):
        super().addError(test, why)
        self.fail(test)

    def addFailure(self, test, why):
        super().addFailure(test, why)
        self.fail(test)

    def addSubTest(self, test, subtest, why):
        super().addSubTest(test, subtest, why)
        if why:
            self.fail(test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.fail(test)  # not run is red

    def fail(self, test):
        if not hasattr(self, "case"):  # a class that could not be set up
            self.case = xml.SubElement(self.suite, "testcase", classname="python", name=str(test), status="run", time="0")
        xml.SubElement(self.case, "failure")


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and so would the programs of the tests
    names = sys.argv[2:]
    loader = unittest.defaultTestLoader
    tests = loader.loadTestsFromNames(names) if names else loader.discover(str(HERE), "*_test.py")
    result = unittest.TextTestRunner(resultclass=Result, verbosity=1).run(tests)
    target = pathlib.Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    xml.ElementTree(result.suite).write(target)
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
