#!/usr/bin/env python3
"""Changes of the C headers, and of those that a driver is compiled with, are found by the lists in packaging/abi."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
DRIVER, C = ["driver"], ["layout", os.environ["HOLDFAST_C_RULES"]]


class Lists(unittest.TestCase):
    """With a copy of the headers and of the lists."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="holdfast-abi-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for part in ("packaging/abi", "include/holdfast"):
            shutil.copytree(REPOSITORY / part, self.root / part)

    def change(self, header, old, new):
        path = self.root / "include/holdfast" / header
        text = path.read_text(encoding="utf-8")
        self.assertIn(old, text)
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    def run_abi(self, *words):
        return subprocess.run([sys.executable, "-B", self.root / "packaging/abi/abi.py", *words], capture_output=True, text=True)

    def expect_found(self, words, *lines):
        said = self.run_abi(*words)
        self.assertNotEqual(said.returncode, 0, said.stdout)
        for line in lines:
            self.assertRegex(said.stdout + said.stderr, line)

    def expect_nothing_found(self, words):
        said = self.run_abi(*words)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)

    def test_a_changed_parameter_type_is_found(self):
        self.change("c/lease.h", "int64_t lease_ms", "uint32_t lease_ms")
        self.expect_found(C, r"int holdfast_lease_extend\(holdfast_lease\*, int64_t, holdfast_error\*\): no longer so",
                          r"int holdfast_lease_extend\(holdfast_lease\*, uint32_t, holdfast_error\*\): new")

    def test_a_changed_result_type_is_found(self):
        self.change("c/error.h", "uint32_t holdfast_abi(void);", "int holdfast_abi(void);")
        self.expect_found(C, r"uint32_t holdfast_abi\(\): no longer so")

    def test_a_further_parameter_is_found(self):
        self.change("c/lease.h", "uint64_t tag,", "uint64_t tag, int how,")
        self.expect_found(C, "holdfast_lease_watch.*: no longer so")

    def test_a_changed_field_of_the_same_size_is_found(self):
        self.change("c/queue.h", "int64_t timeout_ns;", "uint64_t timeout_ns;")
        self.expect_found(C, "holdfast_wait.timeout_ns int64_t: no longer so")

    def test_a_changed_name_or_comment_of_a_parameter_is_no_change(self):
        self.change("c/lease.h", "int64_t lease_ms, holdfast_error* why", "int64_t length_ms,\n    holdfast_error* error")
        self.change("c/lease.h", "/// Renews", "/// Surely renews")
        self.expect_nothing_found(C)

    def test_a_change_of_a_header_that_the_driver_includes_is_found(self):
        self.change("store/identity.hpp", "namespace holdfast::store {", "namespace holdfast::store {\nstruct further;")
        self.expect_found(DRIVER, "holdfast/store/identity.hpp .*: no longer so", "driver-1.headers differs")

    def test_a_header_that_is_included_anew_is_found(self):
        self.change("store/store.hpp", "#pragma once", "#pragma once\n#include <holdfast/guard.hpp>")
        self.expect_found(DRIVER, "holdfast/guard.hpp .*: new")

    def test_a_changed_text_in_a_header_of_the_driver_is_found(self):
        self.change("error.hpp", '"no memory"', '"no memory // at all"')
        self.expect_found(DRIVER, "holdfast/error.hpp .*: no longer so")

    def test_comments_and_white_space_are_no_change_of_the_driver(self):
        self.change("store/driver.hpp", "std::string_view url;  ///<", "\n  std::string_view   url ; /* it's */ ///< surely")
        self.change("store/driver.hpp", "#pragma once", "// once\n\n#pragma once")
        self.expect_nothing_found(DRIVER)

    def test_a_new_number_asks_for_a_list_of_its_own(self):
        self.change("store/driver.hpp", '"holdfast_store_driver_1"', '"holdfast_store_driver_2"')
        self.expect_found(DRIVER, "there is no packaging/abi/driver-2.headers")
        self.assertEqual(self.run_abi("--update", "driver").returncode, 0)
        self.expect_nothing_found(DRIVER)


if __name__ == "__main__":
    unittest.main()
