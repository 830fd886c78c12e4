#!/usr/bin/env python3
"""Reads the site in a browser: begins at its first page, and follows each link to a page of the documentation (make docs-check).

browser.py SITE PICTURES    SITE is what scripts/site.py made; PICTURES: a folder for screenshots of five pages

A page must come up with its heading, and the console must show no error. That all other links lead somewhere is known from scripts/site.py.
"""
import concurrent.futures
import contextlib
import functools
import http.server
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

from site_links import Links  # noqa: E402

PICTURED = ["index.html", "docs/getting-started.html", "docs/choosing-a-store.html", "docs/cli.html", "headers.html"]
BROWSER = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"]
LIMIT_SECONDS = 120


def browse(*options):
    with tempfile.TemporaryDirectory(prefix="holdfast-docs-", ignore_cleanup_errors=True) as profile:
        return subprocess.run([*BROWSER, f"--user-data-dir={profile}", *options], capture_output=True, text=True, timeout=LIMIT_SECONDS,
                              check=True)


def opened(url):
    """What is wrong with a page, and where it leads to."""
    shown = browse("--dump-dom", url)
    errors = re.findall(r"CONSOLE.*?\] \"(.*(?:Error|ERR_|Failed).*)\"", shown.stderr)
    wrong = [f"{url}: the console says: {error}" for error in errors]
    if "<h1" not in shown.stdout:
        wrong.append(f"{url}: has no heading")
    return wrong, Links(shown.stdout).targets


def led_to(url, targets):
    """The pages that a person reads in order; sources, decisions and the API reference are for looking up."""
    for target in targets:
        there = urllib.parse.urlsplit(urllib.parse.urljoin(url, target))
        place = there.path.lstrip("/")
        if re.fullmatch(r"(docs/)?(stores/)?[\w-]+\.html", place) and there.netloc == urllib.parse.urlsplit(url).netloc:
            yield f"http://{there.netloc}/{place}"


def look(server):
    """What is wrong with the pages, and how many there are."""
    seen, wrong, todo = set(), [], {f"{server}/index.html"}
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as several:
        while todo:
            seen |= todo
            pages, todo = sorted(todo), set()
            for url, (problems, targets) in zip(pages, several.map(opened, pages)):
                wrong += problems
                todo |= set(led_to(url, targets)) - seen
    return seen, wrong


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def copyfile(self, source, outputfile):
        with contextlib.suppress(ConnectionError):  # the browser has seen enough of it
            super().copyfile(source, outputfile)


def main():
    site, pictures = (pathlib.Path(folder).resolve() for folder in sys.argv[1:3])
    pictures.mkdir(parents=True, exist_ok=True)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        seen, wrong = look(url)
        for page in PICTURED:
            picture = pictures / (page.replace("/", "-").removesuffix(".html") + ".png")
            browse("--window-size=1400,2000", f"--screenshot={picture}", f"{url}/{page}")
        server.shutdown()
    missing = {f"{url}/{page}" for page in PICTURED} - seen
    wrong += [f"{page}: no page leads to it" for page in sorted(missing)]
    print("\n".join(wrong + [f"{len(seen)} pages opened, {len(wrong)} problems; pictures of five are in {pictures}"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
