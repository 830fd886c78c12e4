#!/usr/bin/env python3
"""unity_groups.py SIZE @TARGET FILE... [@TARGET FILE...]...: which sources of a target can be compiled as one.

Prints a line a group, TARGET|FILE|FILE..., with at most SIZE files.

Two files that define the same name for themselves (in an unnamed namespace, static, or an alias) cannot be glued together. What this
does not see is found by the compiler: give one of the two names another word.
"""
import functools
import pathlib
import re
import sys

OPENS = re.compile(r"^namespace\s*([\w:]*)\s*\{")
CLOSES = re.compile(r"^\}\s*//\s*namespace(?:\s+([\w:]+))?")
DEFINES = (
    re.compile(r"^(?:class|struct|union|enum class|enum)\s+(?:alignas\([^)]*\)\s*)?(\w+)"),
    re.compile(r"^#define\s+(\w+)"),
    re.compile(r"^[^(={;]*?\b(\w+)\s*(?:\(|=|\{|;|\[)"),
)


ROOT = pathlib.Path(__file__).resolve().parent.parent
ALIAS = re.compile(r"^(?:using|namespace) (?:enum )?(?P<of>[\w:]+)\s*(?P<means>=[^;]*)?;", re.M)
HEADERS = [path for folder in ("include", "src", "tests", "tool", "bench") for path in sorted((ROOT / folder).rglob("*.hpp"))]


@functools.cache
def enumerators(name):
    """What "using enum" brings."""
    for header in HEADERS:
        found = re.search(rf"\benum class {name}\b[^{{;]*{{([^}}]*)}}", re.sub(r"//[^\n]*", "", header.read_text(encoding="utf-8")))
        if found:
            return re.findall(r"(\w+)\s*(?:=[^,]*)?(?:,|$)", found[1].strip())
    sys.exit(f"unity_groups.py: no header has the enumeration {name}")


def aliases(text):
    """{name: what it is another word for}: two files may say the same thing twice."""
    found = {}
    for alias in ALIAS.finditer(text):
        if alias["means"]:
            found[alias["of"]] = alias["means"]
        elif alias[0].startswith("using enum "):
            found.update(dict.fromkeys(enumerators(alias["of"].split("::")[-1]), alias["of"]))
    return found


def names_of_namespaces(text, only_own):
    """What is defined in a namespace, but for aliases; only_own: in one without a name, or static."""
    names, inside = set(), False
    for line in text.splitlines(keepends=True):
        opened, closed = OPENS.match(line), CLOSES.match(line)
        if opened:
            inside = inside or not opened[1]
            continue
        if closed:
            inside = inside and bool(closed[1])
            continue
        if line.startswith("#define"):
            found = re.match(r"#define\s+(\w+)", line)
            names.update([found[1]] if found else [])
        if only_own and not (inside or line.startswith("static ")) or line[0] in " \t}/#\n*)":
            continue
        if line.startswith(("using ", "namespace ")) or line.startswith(("template", "TEST", "INSTANTIATE")) and "=" not in line:
            continue
        for pattern in DEFINES:
            found = pattern.match(line)
            if found:
                names.add(found[1])
                break
    return names


@functools.cache
def names_of_header(path):
    return names_of_namespaces(path.read_text(encoding="utf-8"), False)


@functools.cache
def names_of_headers():
    return set().union(*map(names_of_header, HEADERS))


def said(text):
    """The words in it that may mean a name of a namespace: not members, not comments. What no header defines is a name of its own, or a
    local one, which hides those of namespaces."""
    words = set(re.findall(r"(?<![\w.:>])[A-Za-z_]\w*", re.sub(r"//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"", "", text)))
    return words & names_of_headers() | names_of_namespaces(text, False)


class Group:
    def __init__(self, path):
        text = pathlib.Path(path).read_text(encoding="utf-8")
        self.files, self.names, self.aliases = [path], names_of_namespaces(text, True), aliases(text)
        self.words = said(text) - self.aliases.keys()

    def fits(self, other):
        return (not self.names & (other.words | other.aliases.keys()) and not other.names & (self.words | self.aliases.keys())
                and not self.aliases.keys() & other.words and not other.aliases.keys() & self.words
                and all(other.aliases.get(name, means) == means for name, means in self.aliases.items()))

    def take(self, other):
        self.files += other.files
        self.names |= other.names
        self.words |= other.words
        self.aliases |= other.aliases


def groups(size, paths):
    """Those that fit with the fewest come first: so there are fewer groups."""
    all_of_them, made = [Group(path) for path in paths], []
    refuse = {one.files[0]: sum(not one.fits(other) for other in all_of_them) for one in all_of_them}
    for new in sorted(all_of_them, key=lambda one: -refuse[one.files[0]]):
        for group in made:
            if len(group.files) < size and group.fits(new):
                group.take(new)
                break
        else:
            made.append(new)
    return [group.files for group in made]


if __name__ == "__main__":
    size, sources = int(sys.argv[1]), {}
    for word in sys.argv[2:]:
        if word.startswith("@"):
            united = sources.setdefault(word[1:], [])
        else:
            united.append(word)
    for target, paths in sources.items():
        for files in groups(size, paths):
            print("|".join([target, *files]))
