#!/usr/bin/env python3
"""each_source.py [FILE...]: what g++ says of each source and of each public header by itself, as users compile them; no code is made.

The lanes glue sources together, which hides a missing #include and what g++ says of a name that two files have. Of the time that g++
needs for one source, reading the standard library's headers and making code are two thirds. So those that most sources include are
read once (a forgotten one of them can be missed here; a header of the project cannot), and no code is made. For public headers,
nothing is read before.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TREE = ROOT / "build" / "programs"
INCLUDE = re.compile(r"^#include (<[a-z_]+>)$", re.M)
MAKES_CODE = re.compile(r"-O\w*|--param=.*|-fPIC|-g\d?")


def configure():
    """Only the list of commands is needed, and the one header that the build makes."""
    subprocess.run(["cmake", "--preset", "programs"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    made = TREE / "generated"
    made.mkdir(exist_ok=True)
    subprocess.run(["protoc", "--proto_path=src/store", f"--cpp_out={made}", "src/store/etcd/etcd.proto"], cwd=ROOT, check=True)
    return json.loads((TREE / "compile_commands.json").read_text(encoding="utf-8"))


def standard_headers():
    """What most of our files include of the standard library, precompiled; the name of the header."""
    used = collections.Counter()
    for room in ("include", "src", "tool"):
        for file in (ROOT / room).rglob("*.[ch]pp"):
            used.update(set(INCLUDE.findall(file.read_text(encoding="utf-8"))))
    many = sorted(name for name, files in used.items() if files >= 30)
    header = TREE / "standard.hpp"
    header.write_text("".join(f"#include {name}\n" for name in many), encoding="utf-8")
    subprocess.run(["g++", "-std=c++20", "-x", "c++-header", str(header), "-o", f"{header}.gch"], check=True)
    return header


def checking(command, header):
    """The command without what only the code depends on."""
    words, kept = shlex.split(command["command"]), []
    skip = False
    for word in words:
        if skip or word in ("-o", "-c") or MAKES_CODE.fullmatch(word):
            skip = word == "-o" and not skip
            continue
        kept.append(word)
    kept.insert(1, "-fsyntax-only")
    if "_verify_interface_header_sets" not in command["file"]:
        kept[2:2] = ["-include", str(header)]
    return kept


def check(command, header):
    done = subprocess.run(checking(command, header), cwd=command["directory"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    return command["file"], done.returncode, done.stdout


def main(wanted):
    started = time.monotonic()
    commands = [command for command in configure() if "/generated/" not in command["file"]]
    if wanted:
        wanted = {str(pathlib.Path(name).resolve()) for name in wanted}
        commands = [command for command in commands if command["file"] in wanted]
    if not commands:
        sys.exit("each_source.py: there is nothing to compile")
    header = standard_headers()
    commands.sort(key=lambda command: -os.path.getsize(command["file"]))
    failed = []
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", os.cpu_count()))) as pool:
        for file, status, said in pool.map(lambda command: check(command, header), commands):
            if status or said:
                print(said, end="", flush=True)
            if status:
                failed.append(os.path.relpath(file, ROOT))
    for file in failed:
        print(f"each_source.py: failed: {file}", file=sys.stderr)
    print(f"each_source.py: g++ has compiled {len(commands)} sources in {time.monotonic() - started:.0f} s, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
