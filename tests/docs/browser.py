#!/usr/bin/env python3
"""Reads the site in a browser: begins at its first page, and follows each link (make docs-check).

browser.py SITE [PICTURES]    SITE is what scripts/site.py made; PICTURES: a folder for screenshots of five pages

A page must come up with its heading and its navigation, and must say nothing to the console that is an error. The pages that Doxygen made
are opened where another page leads to them; their own links are not followed.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
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


def opened(page):
    """What is wrong with a page, and the pages that it leads to."""
    shown = browse("--dump-dom", page.as_uri())
    errors = re.findall(r"CONSOLE.*?\] \"(.*(?:Error|ERR_).*)\"", shown.stderr)
    wrong = [f"{page}: the console says: {error}" for error in errors]
    if "<h1" not in shown.stdout and "class=\"title\"" not in shown.stdout:
        wrong.append(f"{page}: has no heading")
    return wrong, Links(shown.stdout).targets


def led_to(page, targets):
    for target in targets:
        parts = urllib.parse.urlsplit(target)
        if parts.path.endswith(".html") and parts.scheme in ("", "file"):
            yield (page.parent / urllib.parse.unquote(parts.path)).resolve()


def main():
    site = pathlib.Path(sys.argv[1]).resolve()
    seen, wrong, todo = set(), [], {site / "index.html"}
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as several:
        while todo:
            seen |= todo
            pages, todo = sorted(todo), set()
            for page, (problems, targets) in zip(pages, several.map(opened, pages)):
                wrong += problems
                followed = set() if page.is_relative_to(site / "api") else set(led_to(page, targets))
                gone = [there for there in followed if not there.is_file()]
                wrong += [f"{page}: {there} is not there" for there in gone]
                todo |= followed - seen - set(gone)
    for page in PICTURED if len(sys.argv) > 2 else ():
        picture = pathlib.Path(sys.argv[2]).resolve() / (page.replace("/", "-").removesuffix(".html") + ".png")
        picture.parent.mkdir(parents=True, exist_ok=True)
        browse("--window-size=1400,2000", f"--screenshot={picture}", (site / page).as_uri())
    print("\n".join(wrong + [f"{len(seen)} pages opened, {len(wrong)} problems"]))
    return 1 if wrong or not seen >= {site / page for page in PICTURED} else 0


if __name__ == "__main__":
    sys.exit(main())
