#!/usr/bin/env python3
"""examples_test.py HOLDFAST: the files of examples/deploy, as far as a machine without a cluster can try them."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

HOLDFAST = sys.argv[1]
DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "examples/deploy"
CONTROL = DEPLOY.parents[1] / "packaging/debian/control"
UNITS = sorted([*DEPLOY.glob("*.service"), *DEPLOY.glob("*.timer")])


def commands():
    """{file: the words of a command line of holdfast in it}"""
    found = {}
    for unit in DEPLOY.glob("*.service"):
        (line,) = re.findall(r"^ExecStart=(.*)$", unit.read_text(encoding="utf-8"), re.M)
        found[unit.name] = line.replace("%p", unit.stem).split()
    for part in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")):
        if part["kind"] == "Deployment":
            (container,) = part["spec"]["template"]["spec"]["containers"]
            found["kubernetes.yaml"] = container["command"]
    return found


class Examples(unittest.TestCase):
    def setUp(self):
        self.place = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.place)

    def test_systemd_accepts_the_units(self):
        for name in ("importer", "backup", "holdfast"):
            shutil.copy("/bin/true", self.place / name)
        for unit in UNITS:
            text = unit.read_text(encoding="utf-8").replace("/usr/bin/", f"{self.place}/").replace("Documentation=man:holdfast(1)\n", "")
            (self.place / unit.name).write_text(text, encoding="utf-8")
        said = subprocess.run(["systemd-analyze", "verify", *(self.place / unit.name for unit in UNITS)], capture_output=True, text=True)
        self.assertEqual((said.returncode, self.about_ours(said.stderr)), (0, []))

    def about_ours(self, text):
        """systemd-analyze also speaks of units that are installed here."""
        return [line for line in text.splitlines() if any(unit.name in line for unit in UNITS)]

    def test_every_command_line_of_the_examples_runs(self):
        lines = commands()
        self.assertEqual(len(lines), 3)
        store = self.place / "store"
        store.write_text(f"sqlite:{self.place}/locks.db\n", encoding="utf-8")
        for file, words in lines.items():
            with self.subTest(file):
                mine = words[:words.index("--")]
                mine = [f"file:{store}" if word.startswith("file:") else word for word in mine]
                mine = ["127.0.0.1:0" if word == "0.0.0.0:8080" else word for word in mine]
                mine = ["1ms" if before == "--min-hold" else word for before, word in zip(["", *mine], mine)]
                said = subprocess.run([HOLDFAST, *mine[1:], "--", "echo", "worked"], capture_output=True, text=True, timeout=60,
                                      env={"PATH": os.environ["PATH"]})
                self.assertEqual((said.returncode, said.stdout), (0, "worked\n"), said.stderr)

    def test_the_manifests_agree_in_labels_secret_and_volume(self):
        parts = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")))
        self.assertEqual([part["kind"] for part in parts], ["Secret", "Deployment", "PodDisruptionBudget"])
        secret, deployment, budget = parts
        pod = deployment["spec"]["template"]
        self.assertEqual(deployment["spec"]["selector"]["matchLabels"], pod["metadata"]["labels"])
        self.assertEqual(budget["spec"]["selector"]["matchLabels"], pod["metadata"]["labels"])
        (volume,) = pod["spec"]["volumes"]
        (container,) = pod["spec"]["containers"]
        (mount,) = container["volumeMounts"]
        self.assertEqual(volume["secret"]["secretName"], secret["metadata"]["name"])
        self.assertEqual(mount["name"], volume["name"])
        self.assertIn(f"file:{mount['mountPath']}/url", container["command"])
        self.assertIn(f"password_file={mount['mountPath']}/password", secret["stringData"]["url"])

    def test_the_image_installs_only_packages_that_exist(self):
        packages = re.findall(r"^Package: (\S+)", CONTROL.read_text(encoding="utf-8"), re.M)
        text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
        stores = re.search(r'^ARG STORES="(.*)"', text, re.M)[1].split()
        named = [name for name in re.findall(r"\./([a-z0-9-]+)_\*\.deb", text)]
        self.assertEqual(set(named) | {f"holdfast-store-{store}" for store in stores}, {"libholdfast0", "holdfast", "holdfast-store-redis"})
        self.assertLessEqual({*named, *(f"holdfast-store-{store}" for store in stores)}, set(packages))

    def test_the_image_has_the_certificate_authorities(self):
        control = CONTROL.read_text(encoding="utf-8")
        lists = re.findall(r"^Recommends: (.*)$", control, re.M)
        recommended = {name for each in lists for name in each.split(", ")}
        trusting = re.findall(r"^Package: holdfast-store-(\w+)\n(?:.+\n)*?Recommends: ca-certificates$", control, re.M)
        self.assertEqual(trusting, ["etcd", "redis"])  # whose URLs trust the machine's authorities by default
        text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
        self.assertIn("--no-install-recommends", text)  # so it names what it wants of those
        (wanted,) = re.findall(r'wanted="([^$"]*)"', text)
        self.assertLessEqual(recommended, set(wanted.split()))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
