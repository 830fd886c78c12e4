#!/usr/bin/env python3
"""The screenshots of the page of holdfast serve, and the files of the page that they show.

of_page.py --check     fails if a file of the page has changed since tests/browser/serve_test.py made the screenshots
of_page.py             notes that they are new: serve_test.py does that when it has made all of them
"""
import hashlib
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
PICTURES = ("serve-locks.png", "serve-ring.png")
NOTED = HERE / "serve.sha256"


def of_page():
    """A hash of the page's files, with their names."""
    files = sorted((HERE.parents[1] / "tool/serve/page").iterdir())
    listed = "".join(f"{hashlib.sha256(f.read_bytes()).hexdigest()}  {f.name}\n" for f in files)
    return hashlib.sha256(listed.encode()).hexdigest() + "\n"


def note():
    NOTED.write_text(of_page())


if __name__ == "__main__":
    if "--check" not in sys.argv[1:]:
        note()
    elif not NOTED.exists() or NOTED.read_text() != of_page():
        sys.exit(f"the page has changed since {' and '.join(PICTURES)}: run tests/browser/serve_test.py HOLDFAST --pictures docs/pictures")
