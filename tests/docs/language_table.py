#!/usr/bin/env python3
"""The table of languages and primitives in docs/c.md names each primitive of the README and of docs/matrix.md, and what the C headers, the
Python package and the types of the Node package have for it; and nothing else."""
import ast
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEAD = "| C++ | C | Python | Node |"
VARIANTS = {"lingering_mutex", "preferring_shared_mutex"}  # rows of the matrix about a primitive with an option
SHORTER = {"condition_variable": "condition", "rate_limiter": "limiter"}  # the names in the other languages
PRIMITIVES = {"Lock", "SharedMutex", "Semaphore", "Election", "Latch", "Barrier", "Condition", "Limiter", "MultiLock", "Redlock"}


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def rows():
    """The names in each row; None for a dash."""
    table = read("docs/c.md").split(HEAD)[1].split("\n\n")[0]
    cells = [line.strip("|").split("|") for line in table.splitlines()[2:]]
    return [[match and match[1] for match in (re.search(r"`([^`]+)`", cell) for cell in row)] for row in cells]


def column(number):
    return sorted(row[number] for row in rows() if row[number])


class Table(unittest.TestCase):
    def test_it_has_each_primitive_of_cpp(self):
        part = read("README.md").split("\n## Primitives\n")[1].split("\n\nMost ")[0]
        named = {name for line in part.splitlines() if line.startswith("| [") or line.startswith("| `")
                 for name in re.findall(r"`([^`]+)`", line.split(" | ")[0])}
        tested = set(re.findall(r"^\| `(\w+)` \|", read("docs/matrix.md"), re.M)) - VARIANTS
        self.assertGreater(len(tested), 10)
        self.assertEqual(column(0), sorted(named | tested))

    def test_it_has_what_the_c_headers_make(self):
        text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "include/holdfast/c").glob("*.h"))
        made = re.findall(r"^int (holdfast_\w+)\([^;]*holdfast_(?:lock|latch|barrier|condition|limiter)\*\* ", text, re.M)
        self.assertEqual(column(1), sorted(made))

    def test_it_has_what_a_session_of_python_makes(self):
        def made(functions):
            return [f.name for f in functions if isinstance(f, ast.FunctionDef) and not f.name.startswith("_") and f.returns
                    and ast.unparse(f.returns).split(".")[-1] in PRIMITIVES]

        session = next(node for node in ast.parse(read("bindings/python/holdfast/session.py")).body
                       if isinstance(node, ast.ClassDef) and node.name == "Session")
        module = ast.parse(read("bindings/python/holdfast/locks.py")).body
        self.assertEqual(column(2), sorted(made(session.body) + made(module)))

    def test_it_has_what_a_session_of_node_makes(self):
        types = read("bindings/node/index.d.ts")
        session = re.search(r"^export interface Session extends Handle \{$(.*?)^\}$", types, re.M | re.S)[1]
        kinds = "|".join(PRIMITIVES)
        session, types = (re.sub(r"\{[^{}]*\}", "", text) for text in (session, types))  # the types of options
        made = re.findall(rf"^  (\w+)\([^;]*\): (?:{kinds});", session, re.M)
        made += re.findall(rf"^export function (\w+)\([^;]*\): (?:{kinds});", types, re.M)
        self.assertEqual(column(3), sorted(made))

    def test_a_row_is_one_primitive(self):
        for cpp, c, python, node in rows():
            with self.subTest(cpp):
                self.assertEqual({c is None, python is None, node is None}, {c is None}, "the packages have what C has")
                if c:
                    name = SHORTER.get(cpp, cpp)
                    self.assertEqual([re.sub("^holdfast_|_open$", "", c), python, re.sub("[A-Z]", lambda m: "_" + m[0].lower(), node)],
                                     [name] * 3)


if __name__ == "__main__":
    unittest.main()
