#!/usr/bin/env python3
"""same_command_test.py FOLDER: same_command.py takes an object only from a build that would have made the same one."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = pathlib.Path(sys.argv.pop())
SOURCE = "CMakeFiles/it.dir/Unity/unity_0_cxx.cxx"
OBJECT = SOURCE + ".o"
OPTIONS = ["-DHOLDFAST_VERSION=\"0.1.0\"", "-I/include", "-I/src", "-fPIC", "-std=c++20"]
WARNINGS = ["-Wall", "-Wshadow", "-Wno-restrict"]


class SameCommand(unittest.TestCase):
    def setUp(self):
        shutil.rmtree(FOLDER, ignore_errors=True)
        self.build, self.embedding = FOLDER / "build", FOLDER / "embedding"
        for folder in (self.build, self.embedding):
            (folder / SOURCE).parent.mkdir(parents=True)
            (folder / SOURCE).write_text("#include \"a.cpp\"\n", encoding="utf-8")
        (self.build / OBJECT).write_text("theirs", encoding="utf-8")
        compiler = FOLDER / "compiler"
        compiler.write_text(f"#!/bin/sh\necho ours > {self.embedding / OBJECT}\n", encoding="utf-8")
        compiler.chmod(0o755)
        self.compiler = str(compiler)
        self.has(OPTIONS, [*WARNINGS, "-Wpedantic", "-Werror"])

    def has(self, options, warnings, compiler=None):
        """The build has these options."""
        quoted = [word.replace('"', '\\"') for word in options]
        words = [compiler or self.compiler, *quoted, "-O1", *warnings, "-o", OBJECT, "-c", str(self.build / SOURCE)]
        entry = {"file": str(self.build / SOURCE), "command": " ".join(words)}
        (self.build / "compile_commands.json").write_text(json.dumps([entry]), encoding="utf-8")

    def run_with(self, *, options=OPTIONS, flags="-Wall -Wpedantic -Werror", given=None):
        made = self.embedding / OBJECT
        made.unlink(missing_ok=True)
        words = [self.compiler, *options, *(flags.split() if given is None else given), *WARNINGS, "-MD", "-MT", "it", "-MF",
                 str(self.embedding / "it.d"), "-o", str(made), "-c", str(self.embedding / SOURCE)]
        environment = {**os.environ, "HOLDFAST_SAME_AS": str(self.build), "HOLDFAST_USER_FLAGS": flags}
        done = subprocess.run([sys.executable, "-B", HERE / "same_command.py", *words], env=environment, capture_output=True, text=True,
                              check=False)
        return done, made.read_text(encoding="utf-8").strip() if made.exists() else ""

    def test_the_object_of_the_same_command_is_copied_and_what_it_depends_on_is_told(self):
        self.assertEqual(self.run_with()[1], "theirs")
        self.assertEqual((self.embedding / "it.d").read_text(encoding="utf-8"), f"it: {self.build / OBJECT}\n")

    def test_other_options_are_compiled(self):
        for options in ([*OPTIONS, "-DMORE"], OPTIONS[1:], [OPTIONS[0], OPTIONS[2], OPTIONS[1], *OPTIONS[3:]]):
            self.assertEqual(self.run_with(options=options)[1], "ours", options)

    def test_what_another_compiler_made_is_compiled(self):
        self.has(OPTIONS, [*WARNINGS, "-Wpedantic", "-Werror"], compiler="g++")
        self.assertEqual(self.run_with()[1], "ours")

    def test_warnings_that_the_build_did_not_ask_for_are_compiled(self):
        for warnings in ([*WARNINGS, "-Werror"], [*WARNINGS, "-Wpedantic"], [*WARNINGS, "-Wno-unused", "-Wpedantic", "-Werror"]):
            self.has(OPTIONS, warnings)
            self.assertEqual(self.run_with()[1], "ours", warnings)

    def test_other_sources_are_compiled(self):
        (self.embedding / SOURCE).write_text("#include \"b.cpp\"\n", encoding="utf-8")
        self.assertEqual(self.run_with()[1], "ours")

    def test_what_the_build_has_not_made_is_compiled(self):
        (self.build / OBJECT).unlink()
        self.assertEqual(self.run_with()[1], "ours")

    def test_a_command_without_the_options_of_the_user_fails(self):
        done, made = self.run_with(given=["-Wall", "-Werror"])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("-Wpedantic", done.stderr)
        self.assertEqual(made, "")


if __name__ == "__main__":
    unittest.main()
