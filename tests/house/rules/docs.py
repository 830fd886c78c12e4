"""Documents: their links lead somewhere, their programs are compiled or run, and their tables are well-formed."""
import fnmatch
import re
import textwrap

from .tree import Finding

# A snippet is a block of one of these languages whose first line is "// examples/FILE[#region]", or that follows the comment
# "<!-- examples/FILE[#region] -->". In the example a region stands between "// #region NAME" and "// #endregion" (Python: "# #region").
# The file may be one of tests/, too. Each is compiled or run by a test.
LANGUAGES = r"(?:cpp|c\+\+|cc|c|python|py|js|mjs|ts)"
COMMENT = r"(?://|#)"
MARK = r"(?:\.{1,2}/)*((?:examples|tests)/[\w./-]+)(?:#([\w-]+))?"

# [text](target "title"), "[name]: target" and the attributes of HTML.
LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)|^\s*\[[^\]]+\]:\s+<?([^\s>]+)|\b(?:src|srcset|href)=\"([^\"\s]+)\"")


# `suite.test` and `suite.*`: what would refute a sentence. Test names have several words, files and functions seldom.
TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)")
NAMED_TEST = re.compile(r"`([\w*]+\.\w*(?:_\w*){3}\*?)`")

# [`name.hpp`](path): a source, and the file to which its name leads.
NAMED_FILE = re.compile(r"\[`?([\w./-]*\w\.(?:hpp|h|cpp|lua|py|cmake|pml|sh|js|ts))`?\]\(([^)#\s]+)\)")

# It separates cells in inline code, too, unless a backslash is before it.
BAR = re.compile(r"(?<!\\)\|")

HEADING_INSIDE = re.compile(r"^[^#|].*\s#{2,6} \w")


def check_links(tree):
    yield from _dead_tests(tree)
    for file in _documents(tree):
        for number, line in _prose(file):
            if HEADING_INSIDE.search(line):
                yield Finding(file.path, number, "links", "a heading inside of a line is no heading, and nothing can link to it")
            for target in (found[found.lastindex] for found in LINK.finditer(line)):
                problem = _judge_link(tree, file, target)
                if problem:
                    yield Finding(file.path, number, "links", problem)
        yield from _renamed_files(file)


def _renamed_files(file):
    for number, line in _prose(file, code="kept"):
        for name, target in NAMED_FILE.findall(line):
            if not target.endswith((".md", "/" + name)) and target != name:
                yield Finding(file.path, number, "links", f"{name} leads to {target}: the file was renamed, or is another one")


def _dead_tests(tree):
    tests = [".".join(names) for f in tree.files if f.suffix == ".cpp" for names in TEST.findall(f.text)]
    for file in _documents(tree):
        for number, line in enumerate(file.lines, 1):
            for name in NAMED_TEST.findall(line):
                if not fnmatch.filter(tests, name):
                    yield Finding(file.path, number, "links", f"there is no test {name}: it was renamed, or never was there")


def _judge_link(tree, file, target):
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return None
    path, _, anchor = target.partition("#")
    full = (file.full.parent / path).resolve() if path else file.full
    if path.startswith("/") or not full.is_relative_to(tree.root):
        return f"{target} leads out of the repository: use a relative link"
    if not full.exists():
        return f"{target} leads nowhere"
    if anchor and full.suffix == ".md" and anchor not in _anchors(full.read_text(encoding="utf-8")):
        return f"{target}: there is no such heading in {full.relative_to(tree.root)}"
    return None


def _anchors(text):
    found = set()
    for line in re.sub(r"^```.*?^```", "", text, flags=re.S | re.M).splitlines():
        match = re.match(r"#+\s+(.*?)\s*#*\Z", line)
        if match:
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[1]).lower()
            slug = base = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
            again = 0
            while slug in found:
                again += 1
                slug = f"{base}-{again}"
            found.add(slug)
    return found


def _prose(file, code="dropped"):
    """The numbered lines outside of code blocks; inline code is dropped, or kept."""
    fenced = False
    for number, line in enumerate(file.lines, 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line if code == "kept" else re.sub(r"`[^`]*`", "", line)


def _blocks(file):
    """(index of the first line inside, lines, example, region, line that is the mark or None) of each block that holds a program."""
    lines, at = file.lines, 0
    while at < len(lines):
        if re.match(rf"```{LANGUAGES}(?![\w+])", lines[at].strip()):
            end = next((i for i in range(at + 1, len(lines)) if lines[i].strip() == "```"), len(lines))
            content = lines[at + 1:end]
            inner = re.match(rf"{COMMENT}\s*{MARK}\s*\Z", content[0].strip()) if content else None
            before = next((lines[i].strip() for i in range(at - 1, -1, -1) if lines[i].strip()), "")
            outer = re.match(rf"<!--\s*{MARK}\s*-->\Z", before)
            mark = inner or outer
            yield at + 1, content, mark and mark[1], mark and mark[2], content[0] if inner else None
            at = end
        at += 1


def _region(file, region):
    """What a document shows of an example: the region, or the whole file; None if there is no such region."""
    lines = file.lines
    if region:
        starts = [i for i, line in enumerate(lines) if re.match(rf"\s*{COMMENT} #region {re.escape(region)}\s*\Z", line)]
        if len(starts) != 1:
            return None
        depth, end = 1, starts[0]
        while depth and end + 1 < len(lines):
            end += 1
            depth += bool(re.match(rf"\s*{COMMENT} #region ", lines[end])) - bool(re.match(rf"\s*{COMMENT} #endregion", lines[end]))
        lines = lines[starts[0] + 1:end]
    shown = [line for line in lines if not re.match(rf"\s*{COMMENT} #(end)?region\b", line)]
    return textwrap.dedent("\n".join(shown)).strip("\n").splitlines()


def _documents(tree):
    return [f for f in tree.files if f.suffix == ".md"]


def _is_for_users(file):
    return file.path == "README.md" or file.path.startswith("docs/")


def _indented_blocks(file):
    """The lines that begin a code block without fences. A paragraph of a list may be indented."""
    before, in_list = "", False
    for number, line in _prose(file, code="kept"):
        if line.strip() and not line.startswith(" "):
            in_list = bool(re.match(r"([-*]|\d+\.)\s", line))
        elif line.startswith("    ") and not before.strip() and not in_list:
            yield number
        before = line


def _tables(file):
    """The numbered rows of each table, as lists of their cells."""
    rows = []
    for number, line in _prose(file, code="kept"):
        line = re.sub(r"<!--.*?-->", "", line).strip()
        if rows and (not line.startswith("|") or number != rows[-1][0] + 1):
            yield rows
            rows = []
        if line.startswith("|"):
            cells = [cell.strip() for cell in BAR.split(line)[1:]]
            rows.append((number, cells if cells[-1] else cells[:-1]))
    if rows:
        yield rows


def check_tables(tree):
    for file in _documents(tree):
        for (first, header), *rows in _tables(file):
            if not rows or not all(re.fullmatch(r":?-+:?", cell) for cell in rows[0][1]):
                yield Finding(file.path, first, "tables", "no line of dashes is below the header, so it is not shown as a table")
            for number, cells in rows:
                if len(cells) != len(header):
                    yield Finding(file.path, number, "tables", f"this row has {len(cells)} cells, its header {len(header)}: what is "
                                  "too much is not shown. A | inside of a cell is written \\|, in code, too")


def check_snippets(tree):
    for file in _documents(tree):
        for number in _indented_blocks(file) if _is_for_users(file) else ():
            yield Finding(file.path, number, "snippets", "a block of code has fences that name its language (```sh blocks are run by "
                          "tests/docs/shell_blocks.py)")
        for first, content, example, region, mark in _blocks(file):
            if not example:
                if _is_for_users(file):
                    yield Finding(file.path, first + 1, "snippets", "a program in the documentation is copied from an example "
                                  "that a test compiles or runs: put <!-- examples/FILE#region --> before the block")
                continue
            source = tree.get(example)
            wanted = source and _region(source, region)
            if not source:
                yield Finding(file.path, first + 1, "snippets", f"{example} does not exist")
            elif wanted is None:
                yield Finding(file.path, first + 1, "snippets", f"{example} has no single '#region {region}'")
            elif [line.rstrip() for line in content[1 if mark else 0:]] != wanted:
                yield Finding(file.path, first + 1, "snippets", f"differs from {example}{'#' + region if region else ''}, which is "
                              "what compiles or runs. Change the example, then run tests/house/check.py --write-snippets")


def write_snippets(tree):
    for file in _documents(tree):
        lines, changed = list(file.lines), False
        # From the end, so that line numbers before stay right.
        for first, content, example, region, mark in reversed(list(_blocks(file))):
            source = example and tree.get(example)
            wanted = source and _region(source, region)
            if wanted:
                new = ([mark] if mark else []) + wanted
                changed |= new != content
                lines[first:first + len(content)] = new
        if changed:
            file.full.write_text("\n".join(lines) + "\n", encoding="utf-8")
            file.__dict__.pop("text", None)
            file.__dict__.pop("lines", None)
