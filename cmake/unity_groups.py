#!/usr/bin/env python3
"""unity_groups.py SIZE FILE...: which sources can be compiled as one, a line a group, at most SIZE files in each.

Two files that define the same name for themselves (in an unnamed namespace, static, or an alias) cannot be glued together. What this
does not see is found by the compiler: give one of the two names another word.
"""
import re
import sys

OPENS = re.compile(r"^namespace\s*([\w:]*)\s*\{")
CLOSES = re.compile(r"^\}\s*//\s*namespace(?:\s+([\w:]+))?")
DEFINES = (
    re.compile(r"^(?:class|struct|union|enum class|enum)\s+(?:alignas\([^)]*\)\s*)?(\w+)"),
    re.compile(r"^using\s+(\w+)\s*="),
    re.compile(r"^#define\s+(\w+)"),
    re.compile(r"^[^(={;]*?\b(\w+)\s*(?:\(|=|\{|;|\[)"),
)


def own_names(path):
    """What only this file means by these names."""
    names, inside = set(), False
    for line in open(path, encoding="utf-8"):
        opened, closed = OPENS.match(line), CLOSES.match(line)
        if opened:
            inside = inside or not opened[1]
            continue
        if closed:
            inside = inside and bool(closed[1])
            continue
        if line.startswith("#define") or line.startswith("using ") and "=" in line or line.startswith("namespace "):
            found = re.match(r"(?:#define|using|namespace)\s+(\w+)", line)
            names.update([found[1]] if found else [])
        if not (inside or line.startswith("static ")) or line[0] in " \t}/#\n*)":
            continue
        if line.startswith(("template", "using ", "TEST", "INSTANTIATE")) and "=" not in line:
            continue
        for pattern in DEFINES:
            found = pattern.match(line)
            if found:
                names.add(found[1])
                break
    return names


def said(path):
    """The words in it that may mean a name of the namespace: not members, not comments."""
    text = re.sub(r"//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"", "", open(path, encoding="utf-8").read())
    # What "using enum" brings stands nowhere: such a file stays alone.
    return set(re.findall(r"\busing enum\b|(?<![\w.:>])[A-Za-z_]\w*", text))


def groups(size, paths):
    made = []  # files, what they define, what they say
    for path in paths:
        words = said(path)
        names = own_names(path)
        for group in made if "using enum" not in words else ():
            files, taken, spoken = group
            if "using enum" not in spoken and len(files) < size and not names & spoken and not taken & words:
                files.append(path)
                taken |= names
                spoken |= words
                break
        else:
            made.append(([path], set(names), set(words)))
    return [files for files, _, _ in made]


if __name__ == "__main__":
    for files in groups(int(sys.argv[1]), sys.argv[2:]):
        print(";".join(files))
