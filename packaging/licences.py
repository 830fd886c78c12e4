#!/usr/bin/env python3
"""licences.py [--notices]: docs/licences.md names each package that those of build/deb and the Node package need, and none that they do
not; and packaging/NOTICES has the notice of what the page says is compiled in. With --notices all of this without those of build/deb.
"""
import json
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


def needed_of_npm():
    return set(json.loads((ROOT / "bindings/node/package.json").read_text(encoding="utf-8")).get("dependencies", {}))


def listed_of_npm():
    row = re.search(r"^\| the Node package \|([^|]*)\|", (ROOT / "docs/licences.md").read_text(encoding="utf-8"), re.M)
    return set(re.findall(r"`([^`]+)`", row[1])) if row else set()


def compiled_in():
    """What asks for its notice wherever the programs go."""
    text = (ROOT / "docs/licences.md").read_text(encoding="utf-8")
    sentence = re.search(r"^The programs also contain code of header-only libraries: (.*?)\.\s", text, re.M | re.S)
    names = sentence and re.findall(r"(\w[\w+ ]*) \((?:BSD-3-Clause|MIT)\)", " ".join(sentence[1].split()))
    return names or sys.exit("docs/licences.md does not say 'The programs also contain code of header-only libraries: NAME (MIT), …'")


def differences(wanted, named):
    yield from (f"{name} is not in docs/licences.md" for name in sorted(wanted - named))
    yield from (f"docs/licences.md names {name}, which no package needs" for name in sorted(named - wanted))


wrong = []
if sys.argv[1:] != ["--notices"]:
    packages = needed()
    if not packages:
        sys.exit("build/deb has no packages: make deb builds them")
    wrong += differences(packages, listed())
wrong += differences(needed_of_npm(), listed_of_npm())
notices = (ROOT / "packaging/NOTICES").read_text(encoding="utf-8")
wrong += [f"packaging/NOTICES lacks the notice of {name}" for name in compiled_in() if f"\n{name} (" not in notices]
if wrong:
    sys.exit("; ".join(wrong))
print(f"{len(listed() | listed_of_npm())} packages on the page, and the notices of {', '.join(compiled_in())}")
