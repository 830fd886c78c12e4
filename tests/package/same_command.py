#!/usr/bin/env python3
"""same_command.py COMMAND...: a compiler launcher for a project that embeds the library. Where a build of the library compiled the
same sources with the same options, its object is copied. Otherwise the command runs.

HOLDFAST_SAME_AS: the folder of that build.
HOLDFAST_USER_FLAGS: the options of the user, separated by blanks. Each command must have them. Those that ask for warnings, the
build must have, too: what it compiled without a warning has none here either. Optimisation may differ.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import sys

NO_MATTER = re.compile(r"-(O.?|g.*|-param=.*|M[MD]+)$")
WARNINGS = re.compile(r"-(W(?![apl],).*)$")
WITH_FILE = ("-o", "-c", "-MT", "-MF")


def parsed(words):
    """(files that the command names, what must be equal, warnings)."""
    files, equal, warnings, words = {}, [], set(), iter(words)
    for word in words:
        if word in WITH_FILE:
            files[word] = next(words)
        elif WARNINGS.match(word):
            warnings.add(word)
        elif not NO_MATTER.match(word):
            equal.append(word)
    return files, equal, warnings


def text(path):
    """A group of sources is a file of its own in each build; other sources are the same file."""
    return path.read_text(encoding="utf-8") if "Unity" in path.parts else str(path)


def tail(path):
    """CMakeFiles/foo.dir/Unity/unity_0_cxx.cxx of a longer path."""
    return path[path.rindex("CMakeFiles/"):] if "CMakeFiles/" in path else path


def same(build, words, flags):
    """(the object that the build made from the same sources with the same options, "") or (None, why there is none)."""
    files, equal, warnings = parsed(words)
    source, why = pathlib.Path(files["-c"]), "is not compiled there"
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        if tail(entry["file"]) != tail(files["-c"]):
            continue
        theirs, their_equal, their_warnings = parsed(shlex.split(entry["command"]))
        made = build / theirs.get("-o", "")
        lacks = {flag for flag in flags if WARNINGS.match(flag)} - their_warnings
        differs = [word for word in [*equal, *their_equal] if word not in equal or word not in their_equal]
        if differs or equal != their_equal:
            why = "has other options there: " + (" ".join(differs) or "another order")
        elif lacks:
            why = "has fewer warnings there: " + " ".join(sorted(lacks))
        elif {word for word in warnings ^ their_warnings if word in warnings or word.startswith("-Wno-")} - set(flags):
            why = "has other warnings there"
        elif text(pathlib.Path(entry["file"])) != text(source):
            why = "is another group of sources there"
        elif not made.is_file():
            why = "has no object there"
        else:
            return made, ""
    return None, why


def main():
    build, flags, words = pathlib.Path(os.environ["HOLDFAST_SAME_AS"]), os.environ["HOLDFAST_USER_FLAGS"].split(), sys.argv[1:]
    files = parsed(words)[0]
    if "-c" in files:
        missing = [flag for flag in flags if flag not in words]
        if missing:
            sys.exit(f"{files['-c']} is compiled without the user's options {' '.join(missing)}")
        made, why = same(build, words, flags)
        if made:
            shutil.copyfile(made, files["-o"])
            if "-MF" in files:
                pathlib.Path(files["-MF"]).write_text(f"{files['-MT']}: {made}\n", encoding="utf-8")
            return
        print(f"compiled, because it {why}", flush=True)
    os.execvp(words[0], words)


if __name__ == "__main__":
    main()
