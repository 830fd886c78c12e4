"""Decisions (docs/adr): a file each, an index that agrees with the files, and references to those that there are."""
import os
import re

from .tree import Finding, line_of

FOLDER = "docs/adr"
INDEX = f"{FOLDER}/README.md"
NAME = re.compile(r"(\d{4})-[a-z0-9]+(?:-[a-z0-9]+)*\.md")
PARTS = ["Context", "Decision", "Consequence"]
REFERENCE = re.compile(r"\b(?:ADRs?|[Dd]ecisions?)\s+(\d+)((?:,\s+\d+)*\s+and\s+\d+)?\b")
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]*)(?:#[^)\s]*)?\)")


def check(tree):
    files = [f for f in tree.files if f.path.startswith(f"{FOLDER}/") and f.path != INDEX]
    known = {}
    for file in files:
        match = NAME.fullmatch(file.full.name)
        number = match and int(match[1])
        if not number:
            yield _finding(file, 1, "is no decision's name: write NNNN-short-title.md, with the number from 0001 on")
        elif number in known:
            yield _finding(file, 1, f"{known[number].full.name} has that number, too: take the next one that is free")
        else:
            known[number] = file
            yield from _form(file, number)
    yield from _index(tree, known)
    for file in tree.files:
        yield from _references(file, known)
        yield from _links(file)


def _finding(file, line, message):
    return Finding(file.path, line, "decisions", message)


def _lines(file):
    return [re.sub(r"\s*<!--.*?-->", "", line) for line in file.lines]


def _form(file, number):
    lines = _lines(file)
    if not re.fullmatch(rf"# {number}\. \S.*", lines[0] if lines else ""):
        yield _finding(file, 1, f"begins with '# {number}. Title'")
    if not _status(file):
        yield _finding(file, min(3, len(lines)), "its third line is 'Status: in force', or 'Status: replaced by [N](file)'")
    parts = [(i, line[3:]) for i, line in enumerate(lines) if line.startswith("## ")]
    if [name for _, name in parts] != PARTS:
        yield _finding(file, 1, f"its parts are {', '.join(PARTS)}, in this order")
    ends = [i for i, _ in parts[1:]] + [len(lines)]
    for (start, name), end in zip(parts, ends):
        if not any(line.strip() for line in lines[start + 1:end]):
            yield _finding(file, start + 1, f"the part {name} is empty")


def _title(file):
    return re.sub(r"^# \d+\. ", "", _lines(file)[0])


def _status(file):
    line = (_lines(file) + [""] * 3)[2]
    return line[len("Status: "):] if line.startswith("Status: ") else None


def _index(tree, known):
    index = tree.get(INDEX)
    listed = set()
    for number, line in enumerate(_lines(index) if index else [], 1):
        row = re.match(r"\| \[(\d+)\]\(([^)]*)\) \|(.*)\|\s*$", line)
        file = row and known.get(int(row[1]))
        if not row:
            continue
        if not file or file.full.name != row[2]:
            yield _finding(index, number, f"{row[2]} is not the file of decision {row[1]}")
            continue
        if int(row[1]) in listed:
            yield _finding(index, number, f"{row[1]} is in the index twice: choose the subject where it is looked for first")
        listed.add(int(row[1]))
        cells = [cell.strip() for cell in row[3].split(" | ")]
        if cells[0] != _title(file):
            yield _finding(index, number, f"its title is '{_title(file)}': write the same in file and index")
        if len(cells) != 3 or not cells[1]:
            yield _finding(index, number, "says title, one line and status")
        elif _status(file) and cells[2] != _status(file):
            yield _finding(index, number, f"its status is '{_status(file)}': write the same in file and index")
    for number, file in known.items():
        if number not in listed:
            yield _finding(file, 1, f"is not in {INDEX}: add its row, or nobody finds it")


def _references(file, known):
    for match in REFERENCE.finditer(file.text):
        for number in re.findall(r"\d+", match[0]):
            if int(number) not in known:
                yield _finding(file, line_of(file.text, match.start()), f"there is no decision {number} in {FOLDER}")


def _links(file):
    """A link whose text says the number of a decision leads to that one."""
    if file.suffix != ".md":
        return
    folder = os.path.dirname(file.path)
    for match in LINK.finditer(file.text):
        target = os.path.normpath(os.path.join(folder, match[2]))
        said = re.fullmatch(r"\d+", match[1]) or REFERENCE.search(match[1])
        if not said or os.path.dirname(target) != FOLDER:
            continue
        number = int(re.findall(r"\d+", said[0])[0])
        name = NAME.fullmatch(os.path.basename(target))
        if not name or int(name[1]) != number:
            yield _finding(file, line_of(file.text, match.start()), f"'{match[1]}' leads to {match[2]}: link decision {number}'s own file")
