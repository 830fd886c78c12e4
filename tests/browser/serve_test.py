#!/usr/bin/env python3
"""The page of holdfast serve in a real browser, headless: serve_test.py HOLDFAST [--pictures FOLDER] [TEST…]

HOLDFAST is the program; the C library is beside its folder. --pictures makes the screenshots of docs/serve.md.
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from chromium import Chromium  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
arguments = None
browser = None


class Serve(unittest.TestCase):
    """A page over a fresh SQLite store."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="holdfast-page-")
        self.store = f"sqlite:{self.folder.name}/locks.db"
        self.started = []
        self.addCleanup(self.end)
        self.server = self.start("serve", "--json", "--listen", ":0", "--allow-unlock", "--share", "5")
        self.facts = json.loads(self.server.stdout.readline())
        browser.size(1200, 700)
        browser.open(self.facts["url"])
        browser.until("it is connected", "document.querySelector('#status').textContent.startsWith('sqlite:')")

    def end(self):
        browser.open("about:blank")
        browser.until("the page is gone", "location.href === 'about:blank'")
        browser.events.clear()
        for process in reversed(self.started):
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()
        self.folder.cleanup()

    def tearDown(self):
        self.assertEqual(browser.complaints(), [])
        self.assertEqual([a for a in browser.asked() if not a.startswith(self.facts["url"])], [])

    def start(self, *words, program=None):
        environment = dict(os.environ, HOLDFAST_STORE=self.store,
                           HOLDFAST_LIBRARY=str(arguments.holdfast.parents[1] / "libholdfast-c.so"))
        # It ends with this test, however that ends.
        line = ["setpriv", "--pdeathsig", "KILL", program or str(arguments.holdfast), *words]
        process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True, env=environment)
        self.started.append(process)
        return process

    def hold(self, name, reason=""):
        """Another process that holds it."""
        process = self.start("hold", "--json", "--fair", "--reason", reason, "--", name)
        self.assertEqual(json.loads(process.stdout.readline())["event"], "acquired")
        return process

    def wait_for(self, name, reason=""):
        """Another process that waits for it."""
        before = len(self.shown(name)["waiters"])
        process = self.start("hold", "--json", "--fair", "--reason", reason, "--", name)
        end = time.monotonic() + 60
        while len(self.shown(name)["waiters"]) == before:
            self.assertLess(time.monotonic(), end, "it never waits")
        return process

    def shown(self, name):
        process = self.start("show", "--json", "--", name)
        return json.loads(process.communicate()[0])

    def row(self, name):
        return ("[...document.querySelectorAll('#rows .row:not([hidden])')]"
                f".find(r => r.querySelector('.name').textContent === {json.dumps(name)})")

    def go(self, view):
        browser.run(f"location.hash = {json.dumps('#/' + view)}")

    def test_a_lock_that_another_process_takes_shows_and_goes(self):
        holder = self.hold("deploy", "release 12")
        taken = time.monotonic()
        browser.until("it shows", self.row("deploy"))
        print(f"a lock that was taken showed after {time.monotonic() - taken:.2f} s")
        self.assertEqual(browser.run(self.row("deploy") + ".querySelector('.reason').textContent"), "release 12")
        holder.stdin.close()
        browser.until("it goes", "!" + self.row("deploy"))

    def test_the_queue_is_in_order_and_a_killed_holder_s_lock_goes_on(self):
        holder = self.hold("deploy", "first")
        self.wait_for("deploy", "second")
        self.wait_for("deploy", "third")
        self.go("lock/0/deploy")
        queue = "[...document.querySelectorAll('#lock table')[1].querySelectorAll('tbody tr')].map(r => r.children[4].innerText)"
        browser.until("the queue", "document.querySelectorAll('#lock table').length > 1 && " + queue + ".length === 2")
        self.assertEqual(browser.run(queue), ["second", "third"])
        holder.send_signal(signal.SIGKILL)
        holders = "document.querySelector('#lock table tbody').innerText"
        browser.until("the next one has it", holders + ".includes('second')")
        browser.until("the hand-over is told", "document.querySelector('#lock').innerText.includes('of waiting')")

    def test_a_ring_is_marked(self):
        for has, wants in (("stock", "orders"), ("orders", "stock")):
            self.start("run", has, "--", "sh", "-c", f'read go; exec "{arguments.holdfast}" run {wants} -- true')
        end = time.monotonic() + 60
        while not (self.shown("stock")["holders"] and self.shown("orders")["holders"]):
            self.assertLess(time.monotonic(), end)
        for process in [p for p in self.started if p.args[4] == "run"]:
            process.stdin.write("go\n")
            process.stdin.flush()
        browser.until("the count of rings", "!document.querySelector('#ring-count').hidden")
        self.go("waits")
        text = browser.until("the ring", "document.querySelector('#waits .ring')?.innerText")
        self.assertIn("waits for stock", text)
        self.assertIn("waits for orders", text)
        self.assertGreaterEqual(browser.run("document.querySelectorAll('#waits path.edge.bad').length"), 2)
        self.picture("serve-ring.png", 1010, 400)

    def test_only_the_token_unlocks(self):
        holder = self.hold("deploy")
        self.go("lock/0/deploy")
        browser.until("the button", "document.querySelector('#lock td button')")
        browser.run("document.querySelector('#lock td button').click()")
        browser.run("document.querySelector('#unlock-token').value = 'wrong'")
        browser.run("document.querySelector('#unlock-yes').click()")
        browser.until("it is refused", "document.querySelector('#unlock-trouble').textContent.includes('token')")
        self.assertEqual(len(self.shown("deploy")["holders"]), 1)
        # The browser itself reports the 401: that is no complaint about the page.
        browser.events = [e for e in browser.events if e.get("method") != "Log.entryAdded"]
        browser.run(f"document.querySelector('#unlock-token').value = {json.dumps(self.facts['token'])}")
        browser.run("document.querySelector('#unlock-yes').click()")
        browser.until("nobody holds it", "document.querySelector('#lock').innerText.includes('Nobody holds it')")
        self.assertEqual(self.shown("deploy")["holders"], [])
        holder.stdin.close()
        self.assertEqual(holder.wait(60), 79)

    def test_names_and_reasons_stay_text(self):
        evil = ["<img src=x onerror=window.hit=1>", "\"><script>window.hit=1</script>", "\u202egnorw", "a&lt;b", "javascript:window.hit=1",
                "{{window.hit=1}}", "x" * 200]
        for name in evil:
            self.hold(name, "" if name.startswith("\u202e") else name)
        for name in evil:
            shown = name.replace("\u202e", "\\u202e")
            browser.until("it shows as it is: " + shown, self.row(shown))
            self.go("lock/0/" + __import__("urllib.parse").parse.quote(name, safe=""))
            browser.until("its page", f"document.querySelector('#lock-name')?.textContent === {json.dumps(shown)}")
            self.go("locks")
        self.assertFalse(browser.run("Boolean(window.hit) || document.querySelectorAll('img, main script').length > 0"))

    def test_the_keyboard_is_enough(self):
        self.hold("one")
        self.hold("two")
        browser.until("both", self.row("two"))
        browser.press("/")
        browser.until("the search", "document.activeElement.id === 'search'")
        browser.press("w")
        browser.until("it is filtered", "document.querySelectorAll('#rows .row:not([hidden])').length === 1")
        browser.press("Escape")  # empties the search, as browsers do
        browser.until("both again", "document.querySelectorAll('#rows .row:not([hidden])').length === 2")
        browser.run("document.querySelector('#grid').focus()")
        browser.press("ArrowDown")
        browser.press("ArrowDown")
        browser.press("Enter")
        browser.until("its page", "document.querySelector('#lock-name')?.textContent === 'two'")
        browser.press("Escape")
        browser.until("the table", "!document.querySelector('#locks').hidden")

    def test_a_phone_and_the_dark_have_room_for_it(self):
        self.hold("a-name-that-is-much-too-long-for-the-screen-of-a-phone-" + "x" * 100)
        browser.size(360, 640, dark=True)
        for view in ("locks", "waits", "elections", "stores"):
            self.go(view)
            browser.until("no sideways scrolling", "document.documentElement.scrollWidth <= innerWidth")
        self.assertEqual(browser.run("getComputedStyle(document.body).backgroundColor"), "rgb(13, 17, 23)")

    def test_the_server_goes_and_the_page_says_so(self):
        self.hold("deploy")
        browser.until("it shows", self.row("deploy"))
        self.server.kill()
        browser.until("it says so", "!document.querySelector('#trouble').hidden")
        self.assertTrue(browser.run("Boolean(" + self.row("deploy") + ")"), "what was known stays")
        browser.events = [e for e in browser.events if e.get("method") != "Log.entryAdded"]

    def test_ten_thousand_names_stay_quick(self):
        crowd = self.start("-B", str(HERE / "crowd.py"), self.store, "10000", program=sys.executable)
        self.assertEqual(crowd.stdout.readline(), "has 10000\n")
        browser.until("all show", "document.querySelector('#shown').textContent === '10000 names'")
        self.assertLess(browser.run("document.querySelectorAll('#rows .row').length"), 100)
        browser.run("document.querySelector('#grid').focus()")
        browser.press("End")
        browser.until("the last one", self.row("order:09999"))
        # The longest that the page keeps the browser, while rows come in and are drawn.
        browser.run("""(() => { window.longest = 0; let last = performance.now();
          const beat = () => { const now = performance.now(); window.longest = Math.max(window.longest, now - last); last = now;
            requestAnimationFrame(beat); }; beat(); })()""")
        browser.run("document.querySelector('#search').value = 'order:0999'; "
                    "document.querySelector('#search').dispatchEvent(new Event('input'))")
        browser.until("it is found", "document.querySelector('#shown').textContent.startsWith('10 of')")
        print(f"the longest frame with 10,000 names: {browser.run('window.longest'):.0f} ms")

    def test_pictures(self):
        for name, reason in (("backup:db-1", "nightly dump"), ("backup:db-2", "nightly dump"), ("deploy", "release 12"),
                             ("invoices", "month end"), ("orders:17", "payment")):
            self.hold(name, reason)
        self.start("elect", "importer", "--note", "10.0.0.1:8080", "--", "cat")
        self.wait_for("deploy", "release 13")
        self.wait_for("deploy", "hotfix")
        browser.until("all", "document.querySelectorAll('#rows .row:not([hidden])').length === 6")
        browser.until("the queue", self.row("deploy") + ".querySelector('.waiters').textContent === '2'")
        self.picture("serve-locks.png", 1100, 330)

    def picture(self, name, width, height):
        if arguments.pictures:
            browser.size(width, height)
            browser.until("it is drawn", "new Promise(d => requestAnimationFrame(() => requestAnimationFrame(() => d(true))))")
            browser.screenshot(arguments.pictures / name)


def main():
    global arguments, browser
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("holdfast", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--pictures", type=pathlib.Path)
    parser.add_argument("tests", nargs="*")
    arguments = parser.parse_intermixed_args()
    with Chromium() as browser:
        unittest.main(argv=[sys.argv[0], *("Serve." + t for t in arguments.tests)], verbosity=2)


if __name__ == "__main__":
    main()
