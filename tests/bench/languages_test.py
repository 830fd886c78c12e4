#!/usr/bin/env python3
"""Rules of bench/languages.py that need no server."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import languages  # noqa: E402
import report  # noqa: E402


class Turns(unittest.TestCase):
    def test_the_first_round_does_not_count_and_every_second_one_goes_backwards(self):
        measured = []

        def once_of(name):
            def once():
                measured.append(name)
                return len(measured)
            return once

        had = languages.rounds_of({name: once_of(name) for name in "abc"}, rounds=3)
        self.assertEqual("".join(measured), "abc" "abc" "cba" "abc")
        self.assertEqual(had, {"a": [4, 9, 10], "b": [5, 8, 11], "c": [6, 7, 12]})

    def test_each_is_compared_with_the_round_that_it_shares(self):
        """The machine was ten times as slow in two of five rounds, and one of Python's went wrong."""
        rows = {row["client"]: row for row in languages.compared(
            {"C++": [1000, 100, 1000, 100, 1000], "Python": [500, 50, 500, 50, 10]})}
        self.assertEqual(rows["C++"], {"client": "C++", "ops_per_s": 1000, "ratio": 1, "ratio_quartiles": [1, 1]})
        self.assertEqual(rows["Python"], {"client": "Python", "ops_per_s": 50, "ratio": 2, "ratio_quartiles": [2, 2]})

    def test_the_page_has_a_table_for_each_store(self):
        how = {"rounds": 31, "seconds": 0.5, "load": 0.25, "date": "2026-12-01", "machine": "M"}
        rows = [how | {"store": store, "client": client, "ops_per_s": rate, "ratio": 20000 / rate, "ratio_quartiles": [1.9, 2.25]}
                for store in ("redis", "zookeeper") for client, rate in (("C++", 20000), ("Node", 10000))]
        table = ["| C++ | 20,000 | 1.00 × | – |", "| Node | 10,000 | 2.00 × | 1.90 to 2.25 × |"]
        head = " | per second | time of C++'s | half of the rounds |"
        self.assertEqual(list(report.languages_tables(rows)), [
            "Measured on 2026-12-01, 31 rounds of 0.5 s each.", "Machine: M; load average of the minute before 0.2.",
            "", "| W1 on `redis:`" + head, "|---|--:|--:|--:|", *table, "", "| W1 on `zookeeper:`" + head, "|---|--:|--:|--:|", *table])


if __name__ == "__main__":
    unittest.main()
