"""The wheel that pip builds: it has all files with their checksums, and a program can acquire a lock with it."""
import base64
import csv
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

from stores import REPOSITORY

PACKAGE = REPOSITORY / "bindings/python"
PROGRAM = "import holdfast\nwith holdfast.open('memory:wheel').mutex('m') as lease: print(holdfast.__file__, lease.fence > 0)"


class Wheel(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="holdfast-wheel-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def made(self, of, hook):
        """As pip does it: another process, in the folder of pyproject.toml."""
        code = f"import sys; sys.path.insert(0, '.'); import backend; print(backend.{hook}({str(self.folder)!r}))"
        said = subprocess.run([sys.executable, "-B", "-c", code], cwd=of, check=True, capture_output=True, text=True)
        return self.folder / said.stdout.strip()

    def test_a_wheel_has_each_file_with_its_sum_and_runs(self):
        wheel = self.made(PACKAGE, "build_wheel")
        with zipfile.ZipFile(wheel) as archive:
            names = set(archive.namelist())
            self.assertLessEqual({f"holdfast/{path.name}" for path in (PACKAGE / "holdfast").iterdir() if path.is_file()}, names)
            [record] = [name for name in names if name.endswith(".dist-info/RECORD")]
            rows = list(csv.reader(archive.read(record).decode().splitlines()))
            self.assertEqual({name for name, _, _ in rows}, names)
            for name, digest, size in rows:
                if name != record:
                    content = archive.read(name)
                    expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                    self.assertEqual((digest, int(size)), (f"sha256={expected}", len(content)), name)
        said = subprocess.run([sys.executable, "-B", "-c", PROGRAM], env={**os.environ, "PYTHONPATH": str(wheel)}, cwd="/",
                              check=True, capture_output=True, text=True).stdout
        self.assertEqual(said, f"{wheel}/holdfast/__init__.py True\n")

    def test_a_wheel_has_the_licence(self):
        with zipfile.ZipFile(self.made(PACKAGE, "build_wheel")) as archive:
            [licence] = [name for name in archive.namelist() if name.endswith(".dist-info/LICENSE")]
            self.assertEqual(archive.read(licence), (REPOSITORY / "LICENSE").read_bytes())
            about = archive.read(licence.replace("LICENSE", "METADATA")).decode()
        self.assertIn("\nLicense-File: LICENSE\n", about)

    def test_a_wheel_has_the_readme_and_its_program_runs(self):
        with zipfile.ZipFile(self.made(PACKAGE, "build_wheel")) as archive:
            [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
            about, _, page = archive.read(name).decode().partition("\n\n")
        self.assertIn("\nDescription-Content-Type: text/markdown", about)
        self.assertEqual(page, (PACKAGE / "README.md").read_text(encoding="utf-8"))
        self.assertNotIn("](", page, "a link to a file leads nowhere outside of the repository")
        [program] = re.findall(r"^```python\n(.*?)^```", page, re.S | re.M)
        program = program.replace("redis://localhost", "memory:readme")
        said = subprocess.run([sys.executable, "-B", "-c", program], env={**os.environ, "PYTHONPATH": str(PACKAGE)}, cwd="/",
                              check=True, capture_output=True, text=True).stdout
        self.assertRegex(said, r"\Aupdate stock ... where fence <= \d+\n\Z")

    def test_a_wheel_built_from_the_source_distribution_is_identical(self):
        wheel = self.made(PACKAGE, "build_wheel").read_bytes()
        with tarfile.open(self.made(PACKAGE, "build_sdist")) as archive:
            archive.extractall(self.folder / "source")
        [source] = (self.folder / "source").iterdir()
        self.assertEqual(self.made(source, "build_wheel").read_bytes(), wheel)
