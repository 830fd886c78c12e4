"""Sizes and forms that keep the whole readable."""
import re

from .tree import Finding, SOURCE

README_LINES = 200
HEADER_LINES = 200
COLUMNS = 140


def check(tree):
    yield from _long_files(tree)
    yield from _long_lines(tree)
    yield from _headers(tree)
    yield from _contracts(tree)


def _long_files(tree):
    readme = tree.get("README.md")
    if readme and len(readme.lines) > README_LINES:
        yield Finding("README.md", README_LINES + 1, "shape", f"has {len(readme.lines)} lines, at most {README_LINES}: "
                      "nobody reads more to find out what this is; move it to docs/")
    for file in tree.under("include"):
        if len(file.lines) > HEADER_LINES:
            yield Finding(file.path, HEADER_LINES + 1, "shape", f"has {len(file.lines)} lines, at most {HEADER_LINES}: a "
                          "header is read as a manual; split the concept")


def _long_lines(tree):
    for file in tree.files:
        for number, line in enumerate(file.lines, 1):
            # A table's row and a link cannot be broken.
            if file.suffix == ".md" and (line.startswith("|") or "](" in line or "http" in line):
                continue
            if len(line) > COLUMNS:
                yield Finding(file.path, number, "shape", f"{len(line)} columns, at most {COLUMNS}: two files fit side by side")


def _headers(tree):
    for file in tree.files:
        if file.suffix in SOURCE and file.suffix != ".cpp":
            code = [line.strip() for line in file.code if line.strip()]
            if code and code[0] != "#pragma once":
                yield Finding(file.path, 1, "shape", "a header begins with #pragma once")
    for file in tree.under("include"):
        for number, line in enumerate(file.code, 1):
            if re.match(r"\s*#\s*(define|undef)\b", line):
                yield Finding(file.path, number, "shape", "a macro in a public header reaches into every user's program: use "
                              "a constant, a type or a function")
            if re.match(r"\s*using\s+namespace\b", line):
                yield Finding(file.path, number, "shape", "using namespace in a header changes its users' look-ups")


def _contracts(tree):
    """A function of the C interface has its contract directly before it."""
    for file in tree.under("include/holdfast/c"):
        for number, line in enumerate(file.lines, 1):
            if re.match(r"[a-z][\w *]*\bholdfast_\w+\(", line) and not file.lines[number - 2].startswith("///"):
                yield Finding(file.path, number, "shape", "a function without a comment: its caller has to know effect, errors and cost")
