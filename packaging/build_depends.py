#!/usr/bin/env python3
"""build_depends.py: debian/control asks for each package that scripts/install-deps.sh installs for the library and the programs; and
"install-deps.sh deb" installs each package that debian/control asks for."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
ESSENTIAL = {"g++"}  # of build-essential, which Debian has wherever it builds
SCRIPT = (ROOT / "scripts/install-deps.sh").read_text(encoding="utf-8")


def installed():
    lists = [re.search(rf"^{name}=\(([^)]*)\)", SCRIPT, re.M) for name in ("library", "programs")]
    return {package for found in lists for package in found[1].split()}


def installed_for_deb():
    return installed() | set(re.search(r"^  deb\) +packages=\(([^)]*)\)", SCRIPT, re.M)[1].split())


def asked_for():
    text = (ROOT / "packaging/debian/control").read_text(encoding="utf-8")
    return set(re.findall(r"^ ([^\s,(:]+)", re.search(r"^Build-Depends:\n((?: .*\n)+)", text, re.M)[1], re.M))


missing = sorted(installed() - ESSENTIAL - asked_for())
if missing:
    sys.exit("packaging/debian/control builds without " + ", ".join(missing) + ": add it to Build-Depends")
missing = sorted(asked_for() - {"debhelper-compat"} - installed_for_deb())  # debhelper provides it
if missing:
    sys.exit("scripts/install-deps.sh deb does not install " + ", ".join(missing) + ", which packaging/debian/control asks for")
print(f"{len(installed() - ESSENTIAL)} packages, each in Build-Depends")
