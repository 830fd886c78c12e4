#!/usr/bin/env python3
"""debian_lists.py PREFIX: each file that CMake installed into PREFIX is in one Debian package, or in debian/not-installed; what the
packages take from the tree is there; each store that is a driver has its package; and docs/drivers.md names each scheme of a driver.

"make deb" finds the same, after it has compiled everything.
"""
import fnmatch
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
DEBIAN = ROOT / "packaging/debian"
ARCHITECTURE = "a-b-c"  # the folder of Debian's libraries


def lines_of(file, where):
    """The patterns of a list. One that may be executed prints them: debhelper calls it where debian/tmp has what was installed."""
    if not file.stat().st_mode & 0o100:
        text = file.read_text(encoding="utf-8")
    else:
        text = subprocess.run([file], cwd=where, check=True, capture_output=True, text=True).stdout
    return [line for line in text.split("\n") if line and not line.startswith("#")]


def takes(pattern, path):
    """As debhelper does: a folder takes all that is below it."""
    parts, wanted = path.split("/"), pattern.split("/")
    return len(parts) >= len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))


def lay_out(prefix, where):
    """debian/tmp as debhelper finds it: the prefix is /usr, and libraries are in the folder of the architecture."""
    usr = where / "debian/tmp/usr"
    (usr / "lib").mkdir(parents=True)
    for folder in prefix.iterdir():
        (usr / "lib" / ARCHITECTURE if folder.name.startswith("lib") else usr / folder.name).symlink_to(folder)
    return [str(at.relative_to(where / "debian/tmp")) for folder in [*usr.iterdir(), usr / "lib" / ARCHITECTURE]
            for at in sorted(folder.resolve().rglob("*")) if not at.is_dir()
            for at in [folder / at.relative_to(folder.resolve())]]


def problems(prefix):
    with tempfile.TemporaryDirectory() as place:
        where = pathlib.Path(place)
        files = lay_out(prefix, where)
        lists = {file: lines_of(file, where) for file in [*sorted(DEBIAN.glob("*.install")), DEBIAN / "not-installed"]}
    for path in files:
        packages = [file.name for file, patterns in lists.items() if any(takes(pattern, path) for pattern in patterns)]
        if len(packages) != 1:
            yield f"/{path} is in {' and in '.join(packages) or 'no package'}: change packaging/debian/*.install"
    for file in [*DEBIAN.glob("*.docs"), *DEBIAN.glob("*.examples")]:
        for pattern in lines_of(file, ROOT):
            if not list(ROOT.glob(pattern)):
                yield f"{file.name} names {pattern}, which is not there"


def different_stores():
    """What each place says of the stores that are drivers."""
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    linked = re.search(r"^set\(HOLDFAST_LINKED_STORES (.*)\)", (ROOT / "cmake/holdfast-drivers.cmake").read_text(encoding="utf-8"), re.M)
    drivers = set(re.findall(r"^holdfast_add_store\((\w+)", text, re.M)) - set(linked[1].split())
    rules = re.search(r"^STORES := (.*)$", (DEBIAN / "rules").read_text(encoding="utf-8"), re.M)
    control = (DEBIAN / "control").read_text(encoding="utf-8")
    page = (ROOT / "docs/drivers.md").read_text(encoding="utf-8")
    places = {"debian/rules": set(rules[1].split()), "debian/control": set(re.findall(r"^Package: holdfast-store-(\w+)$", control, re.M)),
              "debian/*.install": {file.stem.removeprefix("holdfast-store-") for file in DEBIAN.glob("holdfast-store-*.install")},
              "docs/drivers.md": set(re.findall(r"`holdfast-store-(\w+)` \|$", page, re.M))}
    for place, stores in places.items():
        if stores != drivers:
            yield f"{place} has the stores {sorted(stores)}, but CMake makes drivers of {sorted(drivers)}"


def schemes_without_a_row():
    """docs/drivers.md says which driver each scheme needs."""
    text = (ROOT / "src/drivers/linked.cpp").read_text(encoding="utf-8")
    page = (ROOT / "docs/drivers.md").read_text(encoding="utf-8")
    rows = {store: schemes for schemes, store in re.findall(r"^\| (.*?) \| `holdfast-store-(\w+)\.so` \|", page, re.M)}
    for scheme, store in re.findall(r'\{"([a-z+]+)", "(\w+)"\}', text):
        if store in rows and f"`{scheme}://`" not in rows[store]:
            yield f"docs/drivers.md lacks {scheme}:// in the row of {store}"


found = [*problems(pathlib.Path(sys.argv[1]).resolve()), *different_stores(), *schemes_without_a_row()]
print("\n".join(found or ["each file is in one package"]))
sys.exit(1 if found else 0)
