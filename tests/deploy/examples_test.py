#!/usr/bin/env python3
"""examples_test.py HOLDFAST: the files of examples/deploy, as far as a machine without a cluster can try them."""
import json
import os
import pathlib
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

import yaml

HOLDFAST = sys.argv[1]
DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "examples/deploy"
CONTROL = DEPLOY.parents[1] / "packaging/debian/control"
BOUND = 60  # seconds; a step that takes longer hangs
WORK = """import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
def note(what):
    with open(sys.argv[2], "a") as file:
        print(sys.argv[1], what, file=file)
note("began")
signal.sigwait({signal.SIGTERM})
note("ended")
"""
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
        (self.place / "store").write_text(f"sqlite:{self.place}/locks.db\n", encoding="utf-8")

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

    def here(self, file, *command, more=()):
        """The file's command line with a store of this test, and this command in place of its own."""
        words = commands()[file]
        mine = words[1:words.index("--")]
        mine = [f"file:{self.place}/store" if word.startswith("file:") else word for word in mine]
        mine = ["127.0.0.1:0" if word == "0.0.0.0:8080" else word for word in mine]
        mine = ["1ms" if before == "--min-hold" else word for before, word in zip(["", *mine], mine)]
        return [HOLDFAST, *mine, *more, "--", *command]

    def test_every_command_line_of_the_examples_runs(self):
        self.assertEqual(len(commands()), 3)
        for file in commands():
            with self.subTest(file):
                said = subprocess.run(self.here(file, "echo", "worked"), capture_output=True, text=True, timeout=BOUND,
                                      env={"PATH": os.environ["PATH"]})
                self.assertEqual((said.returncode, said.stdout), (0, "worked\n"), said.stderr)

    def start(self, file, name, **environment):
        """An instance of the file's command line, which works until it gets TERM. done() has the work of all instances, in order."""
        words = self.here(file, sys.executable, "-c", WORK, name, str(self.place / "done"), more=["-v"])
        started = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env={"PATH": os.environ["PATH"], **environment})
        self.addCleanup(started.stderr.close)
        self.addCleanup(started.wait)
        self.addCleanup(started.kill)
        return started

    def done(self):
        file = self.place / "done"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    def until(self, holds):
        end = time.monotonic() + BOUND
        while not holds():
            self.assertLess(time.monotonic(), end, "it hangs")
            time.sleep(0.01)

    def waiters(self, lock):
        said = subprocess.run([HOLDFAST, "show", lock, "--json", "--store", f"file:{self.place}/store"], capture_output=True, text=True)
        return len(json.loads(said.stdout)["waiters"])

    def test_the_second_single_service_is_activating_until_the_first_ends(self):
        watchdog = re.search(r"^WatchdogSec=(\d+)s$", (DEPLOY / "single.service").read_text(encoding="utf-8"), re.M)[1]

        def unit(name):
            """What systemd hears from the unit, and the unit."""
            heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.addCleanup(heard.close)
            heard.settimeout(BOUND)
            heard.bind(str(self.place / f"notify-{name}"))
            return heard, self.start("single.service", name, NOTIFY_SOCKET=f"{self.place}/notify-{name}", WATCHDOG_USEC=f"{watchdog}000000")

        def hear(heard, word):
            self.until(lambda: heard.recv(4096).decode().startswith(word))

        heard, first = unit("first")
        hear(heard, "READY=1")
        self.until(lambda: self.done() == ["first began"])
        heard_of_second, second = unit("second")
        hear(heard_of_second, "STATUS=waiting for single")
        self.until(lambda: self.waiters("single") == 1)
        while select.select([heard_of_second], [], [], 0)[0]:
            self.assertFalse(heard_of_second.recv(4096).startswith(b"READY"))
        first.terminate()
        hear(heard, "STOPPING=1")
        hear(heard_of_second, "READY=1")
        self.until(lambda: len(self.done()) == 3)
        self.assertEqual(self.done(), ["first began", "first ended", "second began"])
        second.terminate()
        self.assertEqual((first.wait(), second.wait()), (0, 0))

    def test_after_the_leading_pod_is_killed_another_one_leads(self):
        def pod(name):
            """The pod, and what its readiness probe asks."""
            started = self.start("kubernetes.yaml", name)
            return started, re.search(r"on port (\d+)$", started.stderr.readline().strip())[1]

        first, _ = pod("first")
        self.until(lambda: self.done() == ["first began"])
        second, port = pod("second")
        self.until(lambda: self.waiters("importer") == 1)
        first.kill()
        self.until(lambda: self.done() == ["first began", "second began"])
        # The kubelet asks for the address of the pod.
        probe = urllib.request.Request(f"http://127.0.0.1:{port}/", headers={"Host": "10.1.2.3:8080", "User-Agent": "kube-probe/1.30"})
        with urllib.request.urlopen(probe, timeout=BOUND) as answer:
            self.assertEqual((answer.status, json.load(answer)["leader"]["pid"]), (200, second.pid))
        second.terminate()
        second.wait()
        self.assertEqual(self.done(), ["first began", "second began", "second ended"])

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
