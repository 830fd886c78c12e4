#!/usr/bin/env python3
"""pages.py FOLDER: the README, the pages and their pictures, as the Debian package holdfast has them in FOLDER.

A link to a file that the package has leads to its place there. Of a link to a source or to a decision only the words are left: the
package has neither.
"""
import os
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
REASONS = re.compile(r"\s\(why\)")  # what is left of a link to a decision
FENCED = re.compile(r"^(```.*?^```)", re.S | re.M)


def contents():
    """What the package has: a file of the repository, and where it is in the folder. Debian's lists name what is beside the pages."""
    for path in [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*"))]:
        name = path.relative_to(ROOT)
        if path.suffix in (".md", ".svg", ".png") and name.parts[:2] != ("docs", "adr"):
            yield path, str(name)
    for name, folder in (("holdfast.docs", ""), ("holdfast.examples", "examples/")):
        for pattern in (ROOT / "packaging/debian" / name).read_text(encoding="utf-8").split():
            for path in sorted(ROOT.glob(pattern)):
                yield path, folder + path.name


def rewritten(page, place, places):
    """The page, with links that are right where it is."""
    def lead(link):
        image, words, target, anchor = link[1], link[2], link[3], link[4] or ""
        if not target or re.match(r"[a-z][a-z0-9+.-]*:", target):
            return link[0]
        there = places.get((page.parent / target).resolve())
        return f"{image}[{words}]({os.path.relpath(there, os.path.dirname(place) or '.')}{anchor})" if there else words

    parts = FENCED.split(page.read_text(encoding="utf-8"))
    return "".join(part if part.startswith("```") else REASONS.sub("", LINK.sub(lead, part)) for part in parts)


def main():
    folder = pathlib.Path(sys.argv[1])
    places = dict(contents())
    for path, place in places.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            (folder / place).write_text(rewritten(path, place, places), encoding="utf-8")
        else:
            shutil.copyfile(path, folder / place)


if __name__ == "__main__":
    main()
