#!/usr/bin/env python3
"""The page of holdfast serve in a real browser, headless: serve_test.py HOLDFAST [--pictures FOLDER] [TEST…]

HOLDFAST is the program; the C library is beside its folder. --pictures makes the screenshots of docs/serve.md.
"""
import argparse
import json
import os
import random
import pathlib
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "docs/pictures")]
import of_page  # noqa: E402
from chromium import Chromium  # noqa: E402

arguments = None
browser = None
pictured = set()


class Serve(unittest.TestCase):
    """A page over a fresh SQLite store."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="holdfast-page-")
        self.store = f"sqlite:{self.folder.name}/locks.db"
        pathlib.Path(self.folder.name, "locks.db").touch()  # serve makes none
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

    def serve(self, *words):
        """Another server, which the browser looks at from now on."""
        browser.open("about:blank")
        self.server = self.start("serve", "--json", "--listen", ":0", *words)
        self.facts = json.loads(self.server.stdout.readline())
        browser.events.clear()
        browser.open(self.facts["url"])

    def get(self, path):
        with urllib.request.urlopen(self.facts["url"] + path, timeout=120) as answer:
            return json.loads(answer.read())

    def viewer(self):
        """A connection that has asked for the events, and reads nothing by itself."""
        address = urllib.parse.urlsplit(self.facts["url"])
        connection = socket.create_connection((address.hostname, address.port), timeout=120)
        connection.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.addCleanup(connection.close)
        return connection

    def records(self, made):
        """Writes (name, record) into the store beside what is there, as a program of others could."""
        database = sqlite3.connect(self.store.removeprefix("sqlite:"), timeout=60)
        with database:
            database.executemany("INSERT INTO holdfast_locks VALUES (?, ?)", made)
        database.close()

    def record_of(self, name):
        database = sqlite3.connect(self.store.removeprefix("sqlite:"), timeout=60)
        (record,) = database.execute("SELECT record FROM holdfast_locks WHERE name = ?", (name,)).fetchone()
        database.close()
        return record

    def requests_may_have_failed(self):
        """The browser itself reports them: that is no complaint about the page."""
        browser.open("about:blank")
        browser.until("the page is gone", "location.href === 'about:blank'")
        browser.events = [e for e in browser.events if e.get("method") != "Log.entryAdded"]

    def start(self, *words, program=None):
        environment = dict(os.environ, HOLDFAST_STORE=self.store,
                           HOLDFAST_LIBRARY=str(arguments.holdfast.parents[1] / "libholdfast-c.so"))
        # It ends with this test, however that ends.
        line = ["setpriv", "--pdeathsig", "KILL", program or str(arguments.holdfast), *words]
        process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True, env=environment)
        self.started.append(process)
        return process

    def hold(self, name, reason="", *options):
        """Another process that holds it."""
        process = self.start("hold", "--json", "--fair", "--reason", reason, *options, "--", name)
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

    def test_a_lock_of_another_process_appears_and_disappears(self):
        holder = self.hold("deploy", "release 12")
        taken = time.monotonic()
        browser.until("it shows", self.row("deploy"))
        print(f"a lock that was taken showed after {time.monotonic() - taken:.2f} s")
        self.assertEqual(browser.run(self.row("deploy") + ".querySelector('.reason').textContent"), "release 12")
        holder.stdin.close()
        browser.until("it goes", "!" + self.row("deploy"))

    def test_the_queue_is_shown_in_order_and_the_lock_of_a_killed_holder_passes_on(self):
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

    def test_a_ring_of_waiting_processes_is_marked(self):
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

    def test_the_page_states_how_many_of_many_waits_it_leaves_out(self):
        processes = [{"host": "web", "pid": n} for n in range(1, 602)]
        waits = [{"from": n, "to": 0, "must": False, "in_ring": False, "lock": "pool"} for n in range(1, 601)]
        answer = {"schema": 1, "processes": processes, "waits": waits, "waits_left_out": 1400, "rings": []}
        browser.run("(() => { const real = window.fetch; window.fetch = (path, how) => String(path).startsWith('/api/graph') ? "
                    f"Promise.resolve(new Response(JSON.stringify({json.dumps(answer)}))) : real(path, how); }})()")
        self.go("waits")
        browser.until("the count", "document.querySelector('#waits').innerText.includes('1500 more waits are not listed')")
        self.assertEqual(browser.run("document.querySelectorAll('#waits tbody tr').length"), 500)

    def test_unlocking_needs_the_token(self):
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
        browser.until("no holder", "document.querySelector('#lock').innerText.includes('No holder')")
        self.assertEqual(self.shown("deploy")["holders"], [])
        holder.stdin.close()
        self.assertEqual(holder.wait(60), 79)

    def test_unlocking_needs_no_mouse(self):
        self.hold("deploy")
        browser.until("it shows", self.row("deploy"))
        browser.run("document.querySelector('#grid').focus()")
        browser.press("ArrowDown")
        browser.press("Enter")
        browser.until("the button", "document.querySelector('#lock td button')")
        for _ in range(30):
            if browser.run("document.activeElement.matches('#lock td button')"):
                break
            browser.press("Tab")
        browser.press("Enter")
        browser.until("the token is asked for", "document.activeElement.id === 'unlock-token'")
        for key in self.facts["token"]:
            browser.press(key)
        browser.press("Enter")
        browser.until("no holder", "document.querySelector('#lock').innerText.includes('No holder')")
        self.assertFalse(browser.run("document.querySelector('#unlock').open"))
        self.assertEqual(self.shown("deploy")["holders"], [])

    def test_names_and_reasons_are_shown_as_text_and_not_run_as_markup(self):
        evil = ["<img src=x onerror=window.hit=1>", "\"><script>window.hit=1</script>", "\u202egnorw", "a&lt;b", "javascript:window.hit=1",
                "{{window.hit=1}}", "x" * 200]
        for name in evil:
            self.hold(name, "" if name.startswith("\u202e") else name)
        for name in evil:
            shown = name.replace("\u202e", "\\u202e")
            browser.until("it shows as it is: " + shown, self.row(shown))
            self.go("lock/0/" + urllib.parse.quote(name, safe=""))
            browser.until("its page", f"document.querySelector('#lock-name')?.textContent === {json.dumps(shown)}")
            self.go("locks")
        self.assertFalse(browser.run("Boolean(window.hit) || document.querySelectorAll('img, main script').length > 0"))

    def test_any_bytes_in_a_store_are_shown_as_text_and_not_run_as_markup(self):
        """Names, and what a record says of its holder, as only somebody else's program could write them."""
        self.hold("real", "MARK", "--ttl", "10m")
        record = self.record_of("real")
        seed = random.randrange(2**32)
        print(f"seed {seed}")
        chance = random.Random(seed)
        markup = ["<img src=x onerror=window.hit=1>", "<svg/onload=window.hit=1>", "</script><script>window.hit=1</script>", "&lt;b&gt;",
                  "\x1b[2J\x1b[31m", "\x9b31m", "\u202egnorw\u2066", "\u200f\u061c", "\U000e0041\U000e007f", "\u2028\u2029", "\x00\x07\r\n",
                  "\u034f\u3164\ufeff", "'\"`${window.hit=1}", "__proto__", "constructor"]
        texts = markup + ["".join(chr(chance.choice([chance.randrange(0x20), chance.randrange(0x20, 0x250), chance.randrange(0x250, 0xd800),
                                                     chance.randrange(0xe000, 0x110000)])) for _ in range(50)) for _ in range(60)]
        made = [(f"{n:03} " + t, record.replace("MARK", json.dumps(t, ensure_ascii=False)[1:-1])) for n, t in enumerate(texts)]
        raw = [bytes(chance.randrange(256) for _ in range(200)) for _ in range(30)]
        self.records(made)
        database = sqlite3.connect(self.store.removeprefix("sqlite:"), timeout=60)
        with database:  # bytes that are no UTF-8, in names and in records
            for n, some in enumerate(raw):
                inside = record.encode().replace(b"MARK", some.replace(b'"', b"").replace(b"\\", b""))
                database.execute("INSERT INTO holdfast_locks VALUES (CAST(? AS TEXT), CAST(? AS TEXT))",
                                 (b"raw " + some, inside))
        database.close()
        total = 1 + len(made) + len(raw)
        browser.until("all show", f"document.querySelector('#shown').textContent === '{total} names'")
        hidden = r"/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(document.querySelector('main').innerText.replace(/[\n\t]/g, ''))"
        for view in ("locks", "waits", "elections", "stores"):
            self.go(view)
            browser.until("it is drawn", f"location.hash === '#/{view}'")
            self.assertFalse(browser.run(hidden))
        for name, _ in made[:len(markup)]:
            self.go("lock/0/" + urllib.parse.quote(name, safe=""))
            browser.until("its page " + repr(name), "document.querySelector('#lock').innerText.includes('Holders') && "
                          f"document.querySelector('#lock-name').textContent.startsWith({json.dumps(name[:4])})")
            self.assertFalse(browser.run(hidden))
        self.assertFalse(browser.run("Boolean(window.hit) || document.querySelectorAll('img, main script').length > 0"))

    def test_a_hidden_tab_keeps_no_connection(self):
        """A browser has six to one server, and another tab would wait for one."""
        seen = ("Object.defineProperty(document, 'hidden', {{configurable: true, get: () => {}}});"
                "document.dispatchEvent(new Event('visibilitychange'))")
        self.hold("before")
        browser.until("it shows", self.row("before"))
        browser.run(seen.format("true"))
        self.assertFalse(browser.run("import('/state.js').then((it) => it.state.connected)"))
        other = self.viewer()
        self.hold("meanwhile")
        heard = b""
        while b'"lock":"meanwhile"' not in heard:
            heard = heard[-100:] + other.recv(65536)
        self.assertFalse(browser.run(self.row("meanwhile")))
        browser.run(seen.format("false"))
        browser.until("what came meanwhile shows", self.row("meanwhile"))

    def test_a_rate_limit_is_shown_with_its_buckets(self):
        for key in ("acme", "acme", "<b>other</b>"):
            limited = self.start("limit", "api", "--rate", "5/1d", "--key", key)
            self.assertEqual(limited.wait(60), 0)
        self.go("lock/0/api")
        rows = ("[...document.querySelectorAll('#buckets tbody tr')]"
                ".map(r => r.children[1].innerText + ' ' + r.children[2].innerText.trim())")
        browser.until("the buckets", rows + ".length === 2")
        self.assertEqual(browser.run(rows), ["acme 3 of 5", "<b>other</b> 4 of 5"])
        self.go("elections")
        browser.until("the lowest", "document.querySelector('#elections').innerText.includes('3 of 5')")

    def test_the_page_shows_when_a_store_is_away_and_back(self):
        server = ["redis-server", "--port", "0", "--unixsocket", self.folder.name + "/redis.sock", "--save", "", "--dir", self.folder.name]
        redis = self.start(*server[1:], program=server[0])
        self.store = "redis+unix://" + self.folder.name + "/redis.sock"
        end = time.monotonic() + 60
        while not os.path.exists(self.folder.name + "/redis.sock"):
            self.assertLess(time.monotonic(), end)
        self.hold("deploy")
        self.serve("--share", "20")
        browser.until("it shows", self.row("deploy"))
        self.go("lock/0/deploy")
        browser.until("its page", "document.querySelectorAll('#lock table').length > 0")
        redis.kill()
        redis.wait()
        browser.until("the page says so", "document.querySelector('#trouble').textContent.includes('does not answer')")
        browser.until("and how old it is", "document.querySelector('#lock').innerText.includes('This was its state')")
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.get("api/locks?max_age=0")
        self.assertEqual(refused.exception.code, 503)
        os.unlink(self.folder.name + "/redis.sock")
        self.start(*server[1:], program=server[0])
        browser.until("it is back", "document.querySelector('#trouble').hidden")
        self.go("locks")
        # The new server knows nothing of the lock: it went with the old one, or its holder has it again.
        self.hold("later")
        browser.until("what is new shows", self.row("later"))

    def test_a_store_that_never_answered_does_not_hide_other_stores(self):
        self.serve("--share", "20", "--store", self.store, "--store", "redis://127.0.0.1:1")
        browser.until("it says so", "document.querySelector('#trouble').textContent.includes('does not answer')")
        self.go("waits")
        browser.until("the other one is told", "document.querySelector('#waits').innerText.includes('No process waits')")
        self.assertIn("the store has not answered yet", browser.run("document.querySelector('#waits').innerText"))
        self.hold("busy")
        self.go("stores")
        browser.until("its busiest names, too", "document.querySelector('#stores').innerText.includes('taken once')", limit=120)
        self.requests_may_have_failed()

    def test_a_store_removed_from_serve_is_not_reported_as_away(self):
        self.serve("--share", "20", "--store", self.store, "--store", "redis://127.0.0.1:1")
        browser.until("it says so", "document.querySelector('#trouble').textContent.includes('redis://127.0.0.1:1 does not answer')")
        self.server.kill()
        self.server.wait()
        browser.until("it is missed", "document.querySelector('#trouble').textContent.includes('is lost')")
        port = urllib.parse.urlsplit(self.facts["url"]).port
        self.start("serve", "--json", "--listen", f":{port}", "--store", self.store).stdout.readline()
        browser.until("nothing is away", "document.querySelector('#trouble').hidden")
        self.requests_may_have_failed()

    def test_two_hundred_viewers_are_served_beside_a_viewer_that_reads_nothing(self):
        dead = self.viewer()
        others = [self.viewer() for _ in range(200)]
        for other in others:
            self.assertTrue(other.recv(1))
        self.hold("deploy", "for all")
        browser.until("it shows here", self.row("deploy"))
        for other in others:
            heard = b""
            while b'"lock":"deploy"' not in heard:
                more = other.recv(65536)
                self.assertTrue(more, "the stream ended")
                heard = heard[-100:] + more
        health = self.get("api/health")
        self.assertLessEqual(health["used_share"], health["allowed_share"] * 1.5 + 0.1)
        dead.close()

    def test_a_hundred_thousand_names_are_shown(self):
        """They come in pieces; the page and the server answer meanwhile, and the table draws what is seen of it."""
        self.hold("seed", "one of many", "--ttl", "10m")
        record = self.record_of("seed")
        self.records((f"order:{n:06}", record) for n in range(100_000))
        self.serve("--share", "50")
        browser.until("the first ones", "/^[1-9]\\d* names$/.test(document.querySelector('#shown').textContent)")
        dead = self.viewer()  # it reads nothing of a hundred thousand rows
        browser.until("all show", "document.querySelector('#shown').textContent === '100001 names'", limit=300)
        self.assertLess(browser.run("document.querySelectorAll('#rows .row').length"), 100)
        browser.run("document.querySelector('#search').value = 'order:09999'; "
                    "document.querySelector('#search').dispatchEvent(new Event('input'))")
        browser.until("they are found", "document.querySelector('#shown').textContent.startsWith('10 of')")
        self.assertEqual(len(self.get("api/locks")["locks"]), 100_001)
        status = pathlib.Path(f"/proc/{self.server.pid}/status").read_text()
        print("serve with 100,000 names:", status.split("VmRSS:")[1].splitlines()[0].strip())
        dead.close()

    def test_the_page_can_be_used_with_the_keyboard_alone(self):
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

    def test_the_page_fits_a_phone_in_dark_mode(self):
        name = "a-name-that-is-much-too-long-for-the-screen-of-a-phone-" + "x" * 100
        self.hold(name, "a-reason-" + "y" * 140)
        self.wait_for(name, "another-" + "z" * 140)
        browser.size(360, 640, dark=True)
        for view, there in (("locks", self.row(name)), ("lock/0/" + name, "document.querySelectorAll('#lock table').length > 1"),
                            ("waits", "document.querySelector('#waits path.edge')"), ("elections", "true"), ("stores", "true")):
            self.go(view)
            browser.until("the view " + view, there)
            browser.until("no sideways scrolling", "document.documentElement.scrollWidth <= innerWidth")
        self.assertEqual(browser.run("getComputedStyle(document.body).backgroundColor"), "rgb(13, 17, 23)")
        self.go("lock/0/" + name)
        browser.until("the button", "document.querySelector('#lock td button')")
        browser.run("document.querySelector('#lock td button').click()")
        edges = browser.until("the dialog", "document.querySelector('#unlock').open && "
                              "(({left, right}) => [left, right])(document.querySelector('#unlock').getBoundingClientRect())")
        self.assertGreaterEqual(edges[0], 0)
        self.assertLessEqual(edges[1], 360)
        self.assertTrue(browser.run("document.querySelector('#unlock').scrollWidth <= document.querySelector('#unlock').clientWidth"))

    def test_a_phone_can_sort_without_column_headers(self):
        self.hold("idle")
        self.hold("stuck")
        self.wait_for("stuck")
        order = "[...document.querySelectorAll('#rows .row:not([hidden]) .name')].map((n) => n.textContent).join()"
        offered = "getComputedStyle(document.querySelector('#sort')).display !== 'none'"
        browser.until("both by name", order + " === 'idle,stuck'")
        self.assertFalse(browser.run(offered))
        browser.size(360, 640)
        self.assertTrue(browser.run(offered))
        browser.run("document.querySelector('#sort').value = 'waiters'; "
                    "document.querySelector('#sort').dispatchEvent(new Event('input'))")
        browser.until("the one with a waiter is first", order + " === 'stuck,idle'")

    def test_the_page_shows_that_its_server_has_ended(self):
        self.hold("deploy")
        browser.until("it shows", self.row("deploy"))
        self.server.kill()
        browser.until("it says so", "!document.querySelector('#trouble').hidden")
        self.assertTrue(browser.run("Boolean(" + self.row("deploy") + ")"), "what was known stays")
        browser.events = [e for e in browser.events if e.get("method") != "Log.entryAdded"]

    def test_the_page_stays_quick_with_ten_thousand_names(self):
        crowd = self.start("-B", str(HERE / "crowd.py"), self.store, "10000", program=sys.executable)
        self.assertEqual(crowd.stdout.readline(), "has 10000\n")
        browser.until("all show", "document.querySelector('#shown').textContent === '10000 names'", limit=300)
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

    def test_the_pages_pictured_in_the_manual_open(self):
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
            pictured.add(name)


def main():
    global arguments, browser
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("holdfast", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--pictures", type=pathlib.Path)
    parser.add_argument("tests", nargs="*")
    arguments = parser.parse_intermixed_args()
    with Chromium() as browser:
        ran = unittest.main(argv=[sys.argv[0], *("Serve." + t for t in arguments.tests)], verbosity=2, exit=False)
    passed = ran.result.wasSuccessful()
    if passed and pictured.issuperset(of_page.PICTURES) and arguments.pictures.resolve() == of_page.HERE:
        of_page.note()
    sys.exit(not passed)


if __name__ == "__main__":
    main()
