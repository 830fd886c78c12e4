#!/usr/bin/env python3
"""The tests of the house rules: in fixture/ each marked line is caught, by the rule it names, and nothing else is."""
import pathlib
import re
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import check  # noqa: E402
from rules import docs  # noqa: E402
from rules.tree import Tree, strip_cpp  # noqa: E402


def marked(tree):
    for file in tree.files:
        for number, line in enumerate(file.lines, 1):
            match = re.search(r"caught: ([a-z ]+?)\s*(-->)?\s*$", line)
            for rule in match[1].split() if match else ():
                yield file.path, number, rule


class House(unittest.TestCase):
    def test_each_violation_in_the_fixture_is_caught_and_nothing_else(self):
        tree = Tree(HERE / "fixture")
        findings = [finding for rule in check.RULES.values() for finding in rule(tree)]
        self.assertEqual({f[:3] for f in findings}, set(marked(tree)), "\n" + "\n".join(map(str, sorted(findings))))

    def test_each_rule_has_a_violation_in_the_fixture(self):
        self.assertEqual({rule for _, _, rule in marked(Tree(HERE / "fixture"))}, set(check.RULES))

    def test_a_finding_names_place_rule_and_reason(self):
        finding = next(iter(check.RULES["umbrella"](Tree(HERE / "fixture"))))
        self.assertRegex(str(finding), r"^include/holdfast/forgotten\.hpp:1: \[umbrella\] .{20,}")

    def test_ctest_runs_each_rule(self):
        listed = re.search(r"set\(rules ([^)]*)\)", (HERE / "CMakeLists.txt").read_text())
        self.assertEqual(listed[1].split(), list(check.RULES))

    def test_comments_and_literals_are_not_code(self):
        text = 'a /* b\nc */ "d // e" R"x(f\n)")x" \'"\' g // h'
        stripped = strip_cpp(text)
        self.assertEqual(stripped.count("\n"), text.count("\n"))
        self.assertEqual(re.findall(r"[a-z]", stripped), ["a", "g"])

    def test_written_snippets_are_what_the_check_wants(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "examples").mkdir()
            (root / "examples/a.cpp").write_text("int main() {\n  // #region r\n  f();\n  // #endregion\n}\n")
            page = root / "README.md"
            page.write_text("x\n<!-- examples/a.cpp#r -->\n```cpp\n```\n\n```cpp\n// examples/a.cpp\nold\n```\nend\n")
            docs.write_snippets(Tree(root))
            self.assertEqual(list(docs.check_snippets(Tree(root))), [])
            self.assertEqual(page.read_text(), "x\n<!-- examples/a.cpp#r -->\n```cpp\nf();\n```\n\n"
                             "```cpp\n// examples/a.cpp\nint main() {\n  f();\n}\n```\nend\n")


if __name__ == "__main__":
    unittest.main()
