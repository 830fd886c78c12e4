#!/usr/bin/env python3
"""rules_test.py PROGRAM FOLDER DRIVER: which drivers the shared library loads, and which it refuses. FOLDER has the library, with its
drivers in a folder beside it; PROGRAM opens a URL over it and says what happened; DRIVER is somebody else's, for `mine:`."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, FOLDER, DRIVER = (pathlib.Path(word) for word in sys.argv[1:4])
REDIS = "redis://127.0.0.1:1"  # nobody listens there


class Rules(unittest.TestCase):
    def setUp(self):
        self.place = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.place)
        shutil.copy(FOLDER / "libholdfast.so", self.place / "libholdfast.so.0.1")
        (folder,) = FOLDER.glob("holdfast-*")
        self.drivers = self.place / folder.name
        self.drivers.mkdir(mode=0o755)
        self.redis = self.drivers / "holdfast-store-redis.so"
        shutil.copy(folder / self.redis.name, self.redis)

    def open(self, url, libraries=None, **options):
        environment = {"LD_LIBRARY_PATH": str(libraries or self.place)}
        said = subprocess.run([PROGRAM, url], env=environment, check=True, capture_output=True, text=True, **options)
        outcome, *loaded = said.stdout.splitlines()
        return outcome, [pathlib.Path(line.removeprefix("loaded ")).name for line in loaded]

    def test_a_driver_is_loaded_when_a_url_asks_for_it(self):
        outcome, loaded = self.open(REDIS)
        self.assertIn("cannot connect", outcome)
        self.assertIn(self.redis.name, loaded)

    def test_a_store_in_memory_loads_no_driver_and_no_client(self):
        outcome, loaded = self.open("memory:x")
        self.assertEqual(outcome, "opened")
        heavy = [name for name in loaded if name.startswith(("holdfast-store", "libssl", "libcrypto", "libpq", "libmariadb", "libgrpc"))]
        self.assertEqual(heavy, [])

    def test_the_message_of_a_missing_driver_names_its_package(self):
        self.redis.unlink()
        outcome, _ = self.open(REDIS)
        self.assertIn("not supported", outcome)
        self.assertIn(f"there is no {self.redis}; the package holdfast-store-redis has it", outcome)

    def test_a_driver_of_somebody_else_is_called_as_its_scheme_is(self):
        shutil.copy(DRIVER, self.drivers)
        self.assertIn("mine was asked for mine://h", self.open("mine://h")[0])

    def test_a_scheme_without_a_driver_is_refused(self):
        self.assertIn("there is no store 'mine:'", self.open("mine://h")[0])

    def test_a_folder_that_everybody_can_write_is_refused(self):
        self.drivers.chmod(0o777)
        self.assertRefused("can be written by everybody")

    def test_a_file_that_everybody_can_write_is_refused(self):
        self.redis.chmod(0o666)
        self.assertRefused("can be written by everybody")

    def test_a_file_of_a_stranger_is_refused(self):
        if os.geteuid() != 0:
            self.assertRaises(PermissionError, os.chown, self.redis, 12345, -1)  # nor can anybody else give one away
            return
        os.chown(self.redis, 12345, -1)
        self.assertRefused("belongs to user 12345")

    def assertRefused(self, why):
        outcome, loaded = self.open(REDIS)
        self.assertIn("not permitted", outcome)
        self.assertIn(why, outcome)
        self.assertNotIn(self.redis.name, loaded)

    def test_neither_the_current_folder_nor_the_search_path_of_libraries_is_looked_in(self):
        elsewhere = self.place / "elsewhere"
        elsewhere.mkdir()
        shutil.move(self.drivers, elsewhere)
        shutil.copy(elsewhere / self.drivers.name / self.redis.name, elsewhere)
        outcome, loaded = self.open(REDIS, f"{self.place}:{elsewhere}", cwd=elsewhere)
        self.assertIn("is not installed", outcome)
        self.assertNotIn(self.redis.name, loaded)

    def test_a_library_that_was_found_by_a_relative_path_loads_nothing(self):
        outcome, loaded = self.open(REDIS, ".", cwd=self.place)
        self.assertIn("depends on the current folder", outcome)
        self.assertNotIn(self.redis.name, loaded)

    def test_a_driver_for_another_version_is_refused(self):
        shutil.copy(self.place / "libholdfast.so.0.1", self.redis)
        self.assertIn("is for another version of holdfast", self.open(REDIS)[0])

    def test_what_is_no_library_is_refused_with_the_linkers_words(self):
        self.redis.write_text("no library")
        self.assertIn("cannot be loaded", self.open(REDIS)[0])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
