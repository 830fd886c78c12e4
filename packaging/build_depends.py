#!/usr/bin/env python3
"""build_depends.py: debian/control asks for each package that scripts/install-deps.sh installs for the library and the programs;
"install-deps.sh deb" installs each package that debian/control asks for; and each command of the Makefile that runs Python installs it."""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
ESSENTIAL = {"g++"}  # of build-essential, which Debian has wherever it builds
SCRIPT = (ROOT / "scripts/install-deps.sh").read_text(encoding="utf-8")


def installed():
    lists = [re.search(rf"^{name}=\(([^)]*)\)", SCRIPT, re.M) for name in ("library", "programs")]
    return {package for found in lists for package in found[1].split()}


def installed_for(command):
    return installed() | set(re.search(rf"^  (?:\w+\|)*{command}(?:\|\w+)*\)\s+packages=\(([^)]*)\)", SCRIPT, re.M)[1].split())


def asked_for():
    text = (ROOT / "packaging/debian/control").read_text(encoding="utf-8")
    return set(re.findall(r"^ ([^\s,(:]+)", re.search(r"^Build-Depends:\n((?: .*\n)+)", text, re.M)[1], re.M))


def united():
    """The presets that have cmake run unity_groups.py."""
    presets = {each["name"]: each for each in json.loads((ROOT / "CMakePresets.json").read_text(encoding="utf-8"))["configurePresets"]}

    def unity(name):
        own = presets[name].get("cacheVariables", {}).get("HOLDFAST_UNITY")
        return own or ("inherits" in presets[name] and unity(presets[name]["inherits"])) or "0"

    return {name for name in presets if unity(name) != "0"}


def runs_python(recipe):
    scripts = [(ROOT / path).read_text(encoding="utf-8") for path in re.findall(r"scripts/[\w-]+\.sh", recipe)
               if path not in ("scripts/install-deps.sh", "scripts/build.sh")]
    return any(re.search(r"^[^#\n]*\bpython3 ", text, re.M) for text in [recipe, *scripts]) or \
        bool(set(re.findall(r"scripts/(?:build|lane)\.sh (\w+)", recipe)) & united())


def without_python():
    """Of a fresh Debian, which has none."""
    for targets, recipe in re.findall(r"^([a-z][\w -]*):.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M):
        packages = {package for command in re.findall(r"scripts/install-deps\.sh ([\w-]+)", recipe) for package in installed_for(command)}
        if runs_python(recipe) and not packages & {"python3", "python3-minimal"}:
            yield targets


missing = sorted(installed() - ESSENTIAL - asked_for())
if missing:
    sys.exit("packaging/debian/control builds without " + ", ".join(missing) + ": add it to Build-Depends")
missing = sorted(asked_for() - {"debhelper-compat"} - installed_for("deb"))  # debhelper provides it
if missing:
    sys.exit("scripts/install-deps.sh deb does not install " + ", ".join(missing) + ", which packaging/debian/control asks for")
missing = list(without_python())
if missing:
    sys.exit("no list of scripts/install-deps.sh that these commands of the Makefile install has python3: " + ", ".join(missing))
print(f"{len(installed() - ESSENTIAL)} packages, each in Build-Depends")
