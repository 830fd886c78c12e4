#!/usr/bin/env python3
"""What the shared libraries export, against the lists in this folder, which are those of the last release.

abi.py c LIBRARY        libholdfast-c: what the list has must be there; what is new must be added to the list
abi.py cpp LIBRARY      libholdfast, the functions and objects of its public version node (inline ones belong to the program)
abi.py layout RULES     what holdfast.h puts into a program: structs, as the compiler laid them out and the program RULES
                        (tests/c/rules.c) prints them, the types of their fields and of the functions, and the values of constants
abi.py driver           the headers that a driver is compiled with: driver.hpp and what it includes
abi.py --update c|cpp|layout LIBRARY, abi.py --update driver   writes the list anew
abi.py --drivers LIBRARY        libholdfast shows its own names only, and each driver beside it one function
"""
import hashlib
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
HEADERS = HERE.parents[1] / "include"
UPDATE = "python3 packaging/abi/abi.py --update {}"


def exported(library):
    """[(kind of symbol, name, version node)]"""
    said = subprocess.run(["nm", "--dynamic", "--defined-only", "--with-symbol-versions", library], check=True, capture_output=True,
                          text=True).stdout
    found = re.findall(r"^[0-9a-f]+ (\w) ([^\s@]+)(?:@+(\S+))?$", said, re.M)
    return [(kind, name, node) for kind, name, node in found if kind != "A"]


def strong(library, node):
    return sorted(name for kind, name, of in exported(library) if re.fullmatch(node, of) and kind in "TDBR")


LISTS = {"c": "libholdfast-c.symbols", "cpp": "libholdfast.symbols", "layout": "libholdfast-c.layout",
         "driver": "driver-{}.headers"}
GONE = {"layout": "no longer so, and a program that was compiled before has it in it",
        "driver": "no longer so, and a driver that was compiled before has it in it"}


def list_of(which):
    return HERE / LISTS[which].format(driver_number() if which == "driver" else "")


def c_headers():
    """The C headers, which are compiled into programs, without comments."""
    return [re.sub(r"//.*", "", path.read_text(encoding="utf-8")) for path in sorted((HEADERS / "holdfast/c").glob("*.h"))]


def constants():
    """A line for each constant: its name and value."""
    found = []
    for values in (values for text in c_headers() for values in re.findall(r"\benum\b[^{;]*\{([^}]*)\}", text)):
        value = -1
        for name, _, given in (part.partition("=") for part in values.split(",") if part.strip()):
            value = int(given) if given else value + 1
            found.append(f"{name.strip()} {value}")
    return found


def functions():
    """{name: (type of the result, types of the parameters)}"""
    found = [match for text in c_headers() for match in re.findall(r"^([\w *]+?)\b(holdfast_\w+)\(([^)]*)\);", text, re.M)]
    return {name: (result.strip(), [] if takes == "void" else [re.sub(r"\s*\w+$", "", one.strip()) for one in takes.split(",")])
            for result, name, takes in found}


def prototypes():
    return [f"{result} {name}({', '.join(takes)})" for name, (result, takes) in functions().items()]


def fields():
    """A line for each field of a struct: its type. Its place and size do not show the sign, or what a pointer points to."""
    structs = [match for text in c_headers() for match in re.findall(r"^typedef struct \w+ \{([^}]*)\} (\w+);", text, re.M)]
    return [f"{struct}.{name} {kind}" for body, struct in structs
            for kind, name in re.findall(r"(\w[\w *]*?)\s*\b(\w+(?:\[\d+\])?);", " ".join(body.split())) if not name.startswith("unused")]


def driver_number():
    return re.search(r'"holdfast_store_driver_(\d+)"', (HEADERS / "holdfast/store/driver.hpp").read_text(encoding="utf-8"))[1]


def driver_headers():
    """A line for each header that a driver is compiled with: a digest of its code, without comments and white space."""
    found, names = {}, ["holdfast/store/driver.hpp"]
    for name in names:  # grows meanwhile
        text = (HEADERS / name).read_text(encoding="utf-8")
        names += [other for other in re.findall(r"^#include <(holdfast/[^>]+\.hpp)>", text, re.M) if other not in names]
        tokens = re.findall(r"""//.*|/\*[\s\S]*?\*/|"(?:\\.|[^"\\\n])*"|\w[\w']*|'(?:\\.|[^'\\\n])*'|\S""", text)
        code = " ".join(token for token in tokens if not token.startswith(("//", "/*")))
        found[name] = hashlib.sha256(code.encode()).hexdigest()[:16]
    return [f"{name} {digest}" for name, digest in sorted(found.items())]


def now_in(which, library):
    """The lines that the list should have."""
    if which == "layout":
        structs = subprocess.run([library, "--layout"], check=True, capture_output=True, text=True).stdout.splitlines()
        return structs + constants() + fields() + prototypes()
    if which == "driver":
        return driver_headers()
    return strong(library, r"HOLDFAST_\d+" if which == "c" else r"HOLDFAST_\d+\.\d+")


def readable(names):
    return subprocess.run(["c++filt"], input="\n".join(names), check=True, capture_output=True, text=True).stdout.splitlines()


def compare(which, library=""):
    path = list_of(which)
    if not path.exists():
        sys.exit(f"there is no {path.relative_to(HERE.parents[1])}. If the number has changed by intent (docs/stability.md): "
                 + UPDATE.format(which))
    listed, now = set(path.read_text(encoding="utf-8").splitlines()), set(now_in(which, library))
    if not now:
        sys.exit(f"{library} exports nothing: is it the right library?")
    gone = GONE.get(which, "no longer exported, so a program that was linked with it does not start")
    for what, names in ((gone, listed - now), ("new, and not in the list", now - listed)):
        for name in readable(sorted(names)):
            print(f"{name}: {what}")
    if listed != now:
        sys.exit(f"{path.relative_to(HERE.parents[1])} differs from {library or HEADERS}. If that is meant (docs/stability.md): "
                 + UPDATE.format(f"{which} {library}".strip()))
    print(f"{len(now)} lines, as in {path.name}")


def namespaces(folder):
    found = set()
    for path in (*(HERE.parents[1] / folder).rglob("*.hpp"), *(HERE.parents[1] / folder).rglob("*.cpp")):
        found |= set(re.findall(r"^namespace (holdfast[\w:]*) \{", path.read_text(encoding="utf-8"), re.M))
    return found


def hidden_members():
    """The classes that a public class only declares, such as rate_limiter::state: src/ has them."""
    found = set()
    for path in (*(HERE.parents[1] / "src").rglob("*.hpp"), *(HERE.parents[1] / "src").rglob("*.cpp")):
        found |= {f"holdfast::{name}" for name in re.findall(r"^(?:class|struct) (\w+::\w+) ", path.read_text(encoding="utf-8"), re.M)}
    return found


def private_names_shown(library):
    """What is in the public version node, and in a namespace or a class that no public header has."""
    own = tuple(f"{name}::" for name in (namespaces("src") - namespaces("include")) | hidden_members())
    public = [name for _, name, node in exported(library) if re.fullmatch(r"HOLDFAST_\d+\.\d+", node)]
    of = re.compile(r"^(?:typeinfo (?:name )?for |vtable for )?(.*)")
    return [name for name in readable(public) if of.match(name)[1].startswith(own)]


def check_drivers(library):
    """That nothing of the C++ library's templates, or of a client, leaks out, to be taken by somebody's program."""
    leaks = [name for _, name, node in exported(library) if not node.startswith("HOLDFAST_")]
    leaks += [f"{name} (HOLDFAST_PRIVATE_SCOPES lacks its namespace or class)" for name in private_names_shown(library)]
    drivers = list(pathlib.Path(library).parent.glob("holdfast-*/*.so"))
    if not drivers:
        sys.exit(f"there are no drivers beside {library}")
    for driver in drivers:
        names = [name for _, name, _ in exported(driver)]
        leaks += [f"{driver.name}: {name}" for name in names if not re.fullmatch(r"holdfast_store_driver_\d+", name)]
        if not names:
            sys.exit(f"{driver} exports no driver")
    if leaks:
        sys.exit("exported, and should not be: " + ", ".join(leaks))


def main(words):
    if words[:1] == ["--update"] and (words[1:] == ["driver"] or len(words) == 3):
        list_of(words[1]).write_text("\n".join(now_in(words[1], words[-1])) + "\n", encoding="utf-8")
    elif words == ["driver"]:
        compare("driver")
    elif words[:1] == ["--drivers"] and len(words) == 2:
        check_drivers(words[1])
    elif len(words) == 2 and words[0] in LISTS:
        compare(*words)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
