"""A headless Chromium, spoken to over a pipe in its DevTools protocol. Only the standard library."""
import base64
import json
import os
import pathlib
import select
import subprocess
import tempfile
import time


class Chromium:
    """One browser with one page. Use it in a with statement."""

    LIMIT = 60  # seconds for anything at all: far more than it takes, so that a test ends that hangs

    def __init__(self, width=1200, height=700):
        self.profile = tempfile.TemporaryDirectory(prefix="holdfast-chromium-")
        to_read, self.writing = os.pipe()
        self.reading, to_write = os.pipe()
        # The protocol's pipes are the files 3 and 4. No sandbox: it needs rights that a container does not give.
        command = (f'exec chromium --headless --remote-debugging-pipe --no-sandbox --disable-gpu --disable-dev-shm-usage '
                   f'--no-first-run --disable-background-networking --disable-component-update --hide-scrollbars '
                   f'--user-data-dir="$1" --window-size={width},{height} about:blank 3<&{to_read} 4>&{to_write}')
        self.process = subprocess.Popen(["bash", "-c", command, "chromium", self.profile.name], pass_fds=(to_read, to_write),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.heard = b""
        self.number = 0
        self.session = None
        self.events = []
        self.violations = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        self.size(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.writing)  # it ends with its pipe
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.reading)
        self.profile.cleanup()

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writing, json.dumps(message).encode() + b"\0")
        while True:
            said = self._hear(time.monotonic() + self.LIMIT)
            if said.get("id") == message["id"]:
                if "error" in said:
                    raise AssertionError(f"{method}: {said['error']}")
                return said["result"]
            self.events.append(said)

    def _hear(self, until):
        while b"\0" not in self.heard:
            if not select.select([self.reading], [], [], max(0, until - time.monotonic()))[0]:
                raise AssertionError("Chromium says nothing")
            some = os.read(self.reading, 1 << 20)
            if not some:
                raise AssertionError("Chromium has ended")
            self.heard += some
        one, self.heard = self.heard.split(b"\0", 1)
        return json.loads(one)

    def size(self, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)

    def open(self, url):
        self.call("Page.navigate", url=url)

    def run(self, expression):
        """The value of a JavaScript expression in the page."""
        said = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in said:
            raise AssertionError(f"{expression}: {said['exceptionDetails']}")
        return said["result"].get("value")

    def until(self, what, expression, limit=None):
        """Waits until the expression is true, and returns its value."""
        end = time.monotonic() + (limit or self.LIMIT)
        while time.monotonic() < end:
            # What the page has not yet is not true yet.
            value = self.run(f"(() => {{ try {{ const v = {expression}; return v instanceof Element || v }} "
                             "catch { return false } })()")
            if value:
                return value
            select.select([], [], [], 0.02)
        raise AssertionError(f"{what}: never; the page says: {self.run('document.body.innerText')[:2000]}")

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r" if key == "Enter" else key} if kind == "keyDown" and (len(key) == 1 or key == "Enter") else {}
            code = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38}.get(key, 0)
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text)

    def complaints(self):
        """What the page did that it must not: errors, and requests to anybody else."""
        self.run("1")  # what is on its way has come
        found = []
        for event in self.events:
            method, said = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(said["exceptionDetails"].get("exception", {}).get("description", "an exception"))
            if method == "Log.entryAdded" and said["entry"]["level"] == "error":
                found.append(said["entry"]["text"] + " " + said["entry"].get("url", ""))
        return found

    def asked(self):
        """The addresses that were asked for."""
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    def screenshot(self, path):
        taken = self.call("Page.captureScreenshot", format="png")
        pathlib.Path(path).write_bytes(base64.b64decode(taken["data"]))
