#!/usr/bin/env python3
"""Rules of bench/languages.py that need no server."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import languages  # noqa: E402


class Turns(unittest.TestCase):
    def test_the_first_measurement_excludes_the_start_of_the_server(self):
        measured = []

        def once_of(name):
            def once():
                measured.append(name)
                return 100 if len(measured) > 2 else 25
            return once

        subjects = {name: once_of(name) for name in ("first", "second", "third")}
        self.assertEqual(languages.best_of(subjects, rounds=1), dict.fromkeys(subjects, 100))

    def test_the_best_round_of_each_counts(self):
        rates = {"one": iter((9, 1, 3, 2)), "two": iter((9, 5, 4, 6))}
        subjects = {name: lambda all=all: next(all) for name, all in rates.items()}
        self.assertEqual(languages.best_of(subjects, rounds=3), {"one": 3, "two": 6})


if __name__ == "__main__":
    unittest.main()
