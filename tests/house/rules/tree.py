"""The files of the project, as the rules see them."""
import functools
import pathlib
import re
import typing

# Not ours to judge: what is built, what is data, and the fixture that is wrong on purpose.
SKIPPED = ("build", ".git", ".cache", "tests/house/fixture")
SOURCE = (".cpp", ".hpp", ".h")
TEXT = SOURCE + (".c", ".py", ".js", ".mjs", ".ts", ".sh", ".cmake", ".in", ".lua", ".sql", ".txt", ".md", ".yml", ".pml", ".faults")


class Finding(typing.NamedTuple):
    path: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: [{self.rule}] {self.message}"


class File:
    def __init__(self, root, path):
        self.path = path.relative_to(root).as_posix()
        self.full = path
        self.suffix = path.suffix

    @functools.cached_property
    def text(self):
        return self.full.read_text(encoding="utf-8")

    @functools.cached_property
    def lines(self):
        return self.text.splitlines()

    @functools.cached_property
    def code(self):
        """The lines of a C++ file without comments and without the insides of literals."""
        return strip_cpp(self.text).splitlines()

    @functools.cached_property
    def includes(self):
        """(line, name, quoted) of each #include."""
        found = []
        for number, line in enumerate(self.lines, 1):
            match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if match:
                found.append((number, match[2], match[1] == '"'))
        return found


class Tree:
    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        skipped = [self.root / s for s in SKIPPED]
        self.files = [File(self.root, path) for path in self._walk(self.root, skipped)]

    def _walk(self, folder, skipped):
        for path in sorted(folder.iterdir()):
            if path in skipped or path.is_symlink():
                continue
            if path.is_dir():
                yield from self._walk(path, skipped)
            elif path.suffix in TEXT or path.name == "Makefile":
                yield path

    def under(self, *folders, suffixes=SOURCE):
        """The files in these folders (or with exactly these paths)."""
        return [f for f in self.files if f.suffix in suffixes and is_under(f.path, folders)]

    def get(self, path):
        return next((f for f in self.files if f.path == path), None)


def line_of(text, at):
    """The number of the line that the character at this index stands in."""
    return text.count("\n", 0, at) + 1


def is_under(path, folders):
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.S)


def strip_cpp(text):
    def blank(match):
        token = match[0]
        kept = "" if token.startswith("/") else '""'
        return kept + "\n" * token.count("\n")

    # An #include's quotes are no literal.
    lines = [line if not re.match(r"\s*#\s*include", line) else "" for line in text.split("\n")]
    return _TOKEN.sub(blank, "\n".join(lines))
