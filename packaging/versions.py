#!/usr/bin/env python3
"""versions.py [--released]: every file that has the version has that of CMakeLists.txt, and so have the names of libraries, folders and
packages on the pages; for a release, the changelog has its date, too."""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


def found(path, pattern):
    match = re.search(pattern, text(path), re.M)
    return match[1] if match else None


VERSION = found("CMakeLists.txt", r"^project\(holdfast\s+VERSION (\S+)")
PLACES = {
    "packaging/debian/changelog": found("packaging/debian/changelog", r"\Aholdfast \((\S+)\)"),
    "packaging/vcpkg/vcpkg.json": json.loads(text("packaging/vcpkg/vcpkg.json"))["version"],
    "packaging/conan/conanfile.py": found("packaging/conan/conanfile.py", r'^    version = "(.*)"'),
    "bindings/python/pyproject.toml": found("bindings/python/pyproject.toml", r'^version = "(.*)"'),
    "bindings/node/package.json": json.loads(text("bindings/node/package.json"))["version"],
    "CHANGELOG.md": found("CHANGELOG.md", r"^## (\S+)"),
}

NAMED = re.compile(r"holdfast(?:\.so\.|[ -]| has version )(\d+\.\d+(?:\.\d+)?)")


def on_the_pages():
    """Names with the version in them, or with the minor version. Decisions and the changelog also name earlier ones."""
    for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]):
        path = page.relative_to(ROOT).as_posix()
        if path != "CHANGELOG.md" and not path.startswith("docs/adr/"):
            for name in sorted(set(NAMED.findall(page.read_text(encoding="utf-8")))):
                yield path, name


wrong = [f"{path} says {version}" for path, version in PLACES.items() if version != VERSION]
wrong += [f"{path} says {version}" for path, version in on_the_pages() if version not in (VERSION, VERSION.rpartition(".")[0])]
if sys.argv[1:] == ["--released"] and not found("CHANGELOG.md", rf"^## {re.escape(VERSION)} \((\d{{4}}-\d\d-\d\d)\)"):
    wrong.append(f"CHANGELOG.md has no date for {VERSION}: ## {VERSION} (YYYY-MM-DD)")
if wrong:
    sys.exit(f"CMakeLists.txt says {VERSION}, but: " + "; ".join(wrong))
print(f"{len(PLACES) + len(list(on_the_pages()))} places say {VERSION}")
