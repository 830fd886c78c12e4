"""run_time.py FOLDER: what the programs, libraries and drivers of an unpacked tarball need of others is what docs/install.md says."""
import pathlib
import platform
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SYSTEM = {"libc6", "libgcc-s1", "libstdc++6"}  # each program in C++ has them


def said(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def packages(file):
    """The Debian packages of the libraries that the file asks for."""
    libraries = [name for name in re.findall(r"^\s*NEEDED\s+(\S+)$", said("objdump", "-p", str(file)), re.M)
                 if not name.startswith("libholdfast")]
    return {said("dpkg-query", "--search", f"*/{platform.machine()}-linux-gnu/{name}").split(":")[0] for name in libraries} - SYSTEM


def listed():
    """The table of the page: each part, with its packages."""
    text = (ROOT / "docs/install.md").read_text(encoding="utf-8")
    table = re.search(r"^\| part of the tarball .*?\n\|[-|]+\n(.*?)\n\n", text, re.S | re.M)
    rows = [row.strip("|").split("|") for row in table[1].split("\n")]
    return {part: set(re.findall(r"`([^`]+)`", needs)) for parts, needs in rows for part in re.findall(r"`([^`]+)`", parts)}


folder = pathlib.Path(sys.argv[1])
found = {}
for path in [*(folder / "bin").iterdir(), *folder.glob("lib*/libholdfast*.so.*"), *folder.glob("lib*/holdfast-*/*.so")]:
    if not path.is_symlink() or path.name in listed():
        found[path.name] = packages(path)
found = {name: needs for name, needs in found.items() if not re.search(r"\.so\.\d+\.\d+\.\d+$", name)}
page = listed()
wrong = [f"{name} needs {sorted(found.get(name, []))}, but docs/install.md says {sorted(page.get(name, []))}"
         for name in sorted(found.keys() | page.keys()) if found.get(name) != page.get(name)]
print("\n".join(wrong or [f"{len(page)} parts of the tarball need what docs/install.md says"]))
sys.exit(1 if wrong else 0)
