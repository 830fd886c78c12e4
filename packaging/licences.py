#!/usr/bin/env python3
"""licences.py [--notices]: docs/licences.md names each package that those of build/deb need, and none that they do not; and
packaging/NOTICES has the notice of what the page says is compiled in. With --notices only the latter, which needs no packages.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
# The system's own: each program of the system needs them.
SYSTEM = {"libc6", "libgcc-s1", "libstdc++6", "python3", "dpkg", "debconf"}


def needed():
    found = set()
    for package in (ROOT / "build/deb").glob("*.deb"):
        fields = subprocess.run(["dpkg-deb", "--field", package, "Depends"], check=True, capture_output=True, text=True).stdout
        found |= {re.match(r"[^ (:]+", need.strip())[0] for need in re.split(r"[,|]", fields) if need.strip()}
    return {name for name in found - SYSTEM if not name.startswith(("libholdfast", "holdfast", "python3-holdfast"))}


def listed():
    text = (ROOT / "docs/licences.md").read_text(encoding="utf-8")
    return set(re.findall(r"`(lib[a-z0-9.+-]+)`", text))


def compiled_in():
    """What asks for its notice wherever the programs go."""
    text = (ROOT / "docs/licences.md").read_text(encoding="utf-8")
    sentence = re.search(r"^The programs also contain code of header-only libraries: (.*?)\.\s", text, re.M | re.S)
    names = sentence and re.findall(r"(\w[\w+ ]*) \((?:BSD-3-Clause|MIT)\)", " ".join(sentence[1].split()))
    return names or sys.exit("docs/licences.md does not say 'The programs also contain code of header-only libraries: NAME (MIT), …'")


wrong = []
if sys.argv[1:] != ["--notices"]:
    packages = needed()
    if not packages:
        sys.exit("build/deb has no packages: make deb builds them")
    wrong += [f"{name} is not in docs/licences.md" for name in sorted(packages - listed())]
    wrong += [f"docs/licences.md names {name}, which no package needs" for name in sorted(listed() - packages)]
notices = (ROOT / "packaging/NOTICES").read_text(encoding="utf-8")
wrong += [f"packaging/NOTICES lacks the notice of {name}" for name in compiled_in() if f"\n{name} (" not in notices]
if wrong:
    sys.exit("; ".join(wrong))
print(f"{len(listed())} packages on the page, and the notices of {', '.join(compiled_in())}")
