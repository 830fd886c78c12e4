#!/usr/bin/env python3
"""The rules of the house, checked by a program: each finding names the place, the rule and the reason.

check.py [--root DIR] [RULE...]         all rules, or the named ones; exits with 1 if something was found
check.py --list                         the names of the rules
check.py --write-snippets               copies the examples into the documents that quote them
"""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from rules import banned, circles, decisions, docs, layers, loops, mutants, names, pictures, ports, shape, walks  # noqa: E402
from rules.tree import Tree  # noqa: E402

RULES = {
    "layers": layers.check,
    "circles": circles.check,
    "vendor": layers.check_vendor,
    "umbrella": layers.check_umbrella,
    "banned": banned.check,
    "loops": loops.check,
    "links": docs.check_links,
    "snippets": docs.check_snippets,
    "tables": docs.check_tables,
    "decisions": decisions.check,
    "pictures": pictures.check,
    "shape": shape.check,
    "names": names.check,
    "rooms": names.check_rooms,
    "forwarding": ports.check_forwarding,
    "clients": ports.check_clients,
    "mutants": mutants.check,
    "walks": walks.check,
}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    arguments.add_argument("--list", action="store_true")
    arguments.add_argument("--write-snippets", action="store_true")
    arguments.add_argument("rules", nargs="*", metavar="RULE")
    given = arguments.parse_args()

    if given.list:
        print("\n".join(RULES))
        return 0
    unknown = set(given.rules) - set(RULES)
    if unknown:
        arguments.error(f"no such rule: {', '.join(sorted(unknown))}; there are: {', '.join(RULES)}")

    tree = Tree(given.root)
    if given.write_snippets:
        docs.write_snippets(tree)
    findings = sorted({finding for rule in given.rules or RULES for finding in RULES[rule](tree)})
    for finding in findings:
        print(finding)
    if findings:
        print(f"{len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
