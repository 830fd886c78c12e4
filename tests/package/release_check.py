#!/usr/bin/env python3
"""release_check.py: scripts/release-check.sh with stand-ins for what it runs: which make targets it runs, and when it passes."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
CALLED = ("scripts/abi.sh", "scripts/test-package.sh", "packaging/versions.py", "packaging/licences.py")


class ReleaseCheck(unittest.TestCase):
    def setUp(self):
        self.tree = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.tree)
        for file in CALLED:
            self.write(file, "#!/bin/sh\n" if file.endswith(".sh") else "")
        (self.tree / "scripts/release-check.sh").write_bytes((ROOT / "scripts/release-check.sh").read_bytes())
        self.write("programs/git", "#!/bin/sh\n[ $1 != rev-parse ] || echo 0123456789\n")
        self.write("Makefile", "%:\n\t@echo $@ >>build/made\n\t@! grep -qx $@ build/broken 2>/dev/null\n.PHONY: Makefile\nMakefile: ;\n")

    def write(self, file, text):
        (self.tree / file).parent.mkdir(parents=True, exist_ok=True)
        (self.tree / file).write_text(text, encoding="utf-8")
        (self.tree / file).chmod(0o755)

    def check(self, *steps, by="", old=""):
        """(exit code, the report's lines)"""
        env = {**os.environ, "SIGNED_OFF_BY": by, "OLD_DEBS": old, "PATH": f"{self.tree / 'programs'}:{os.environ['PATH']}"}
        ended = subprocess.run(["bash", self.tree / "scripts/release-check.sh", *steps], env=env, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
        return ended.returncode, (self.tree / "build/release-check.txt").read_text(encoding="utf-8").splitlines()

    def test_passes_if_every_step_passes_and_a_name_is_given(self):
        code, report = self.check(by="A Name")
        self.assertEqual((code, report[-1]), (0, "signed off by: A Name"))
        self.assertFalse([line for line in report if line.startswith("FAILED")])

    def test_fails_without_a_name(self):
        code, report = self.check()
        self.assertEqual((code, report[-1]), (1, "signed off by: nobody, so this is not the report of a release"))
        self.assertFalse([line for line in report if line.startswith("FAILED")])

    def test_one_step_needs_no_name_and_is_no_report_of_a_release(self):
        for by in "", "A Name":
            code, report = self.check("licences", by=by)
            self.assertEqual((code, report[-1]), (0, "signed off by: nobody, because only some steps ran"))

    def test_the_report_says_from_which_packages_it_upgraded(self):
        for old, words in ("", "used, upgraded, removed"), ("/debs/0.0.9", "used, upgraded from /debs/0.0.9, removed"):
            line = next(line for line in self.check("test-deb", old=old)[1] if " test-deb: " in line)
            self.assertIn(words, line)

    def test_goes_on_after_a_step_that_fails(self):
        self.write("build/broken", "test-all\n")
        code, report = self.check(by="A Name")
        failed = [line.split()[1] for line in report if line.startswith("FAILED")]
        self.assertEqual((code, failed, report[-1]), (1, ["suites:"], "signed off by: A Name"))

    def test_runs_every_suite(self):
        self.check(by="A Name")
        made = set((self.tree / "build/made").read_text(encoding="utf-8").split())
        recipe = re.search(r"^test-all:\n(?:\t.*\n)+", MAKEFILE, re.M)[0]
        lanes = re.search(r"^LANES := (.*)$", MAKEFILE, re.M)[1].split()
        through_test_all = {f"test-{lane}" for lane in lanes if re.search(rf"lane\.sh {lane}\b|lane in [^;]*\b{lane}\b", recipe)}
        phony = re.search(r"^\.PHONY:(?:.*\\\n)*.*", MAKEFILE, re.M)[0]
        suites = {f"test-{lane}" for lane in lanes} | set(re.findall(r"test-[a-z]+|mutants", phony))
        self.assertLessEqual({"test-clang", "test-nightly", "mutants"}, suites)
        self.assertEqual(suites - made - through_test_all, set())


if __name__ == "__main__":
    unittest.main()
