#!/usr/bin/env python3
"""The strict reader refuses what is malformed."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check  # noqa: E402
import exposition  # noqa: E402

GOOD = """# TYPE a counter
# HELP a An a.
a_total{x="1",y="q\\"\\\\\\n"} 3
# TYPE b_seconds histogram
# UNIT b_seconds seconds
# HELP b_seconds A b.
b_seconds_bucket{le="0.5"} 1
b_seconds_bucket{le="+Inf"} 2
b_seconds_sum 3.5
b_seconds_count 2
# EOF
"""
BROKEN = [
    ("# EOF\n", ""), ("# EOF\n", "\n# EOF\n"), ("a_total{", "a{"), (" 3\n", " x\n"), (" 3\n", " -3\n"),
    ('x="1",', 'x="1",,'), ('x="1",', 'x="1",x="2",'), ('x="1",', 'x="1"'), ("counter", "number"),
    ("# HELP a An a.\n", ""), ("# UNIT b_seconds seconds", "# UNIT b_seconds metres"), ('le="+Inf"', 'le="1"'),
    ("} 1\n", "} 5\n"), ("_count 2", "_count 1"), ("b_seconds_sum 3.5\n", ""), ('x="1"', 'x="\\t"'),
    ("# EOF", 'a_total{x="1"} 3\n# EOF'), ("# TYPE b_seconds", "# TYPE a counter\n# TYPE b_seconds"),
]
PAGE = {"a_total": ("counter", {"x", "y"}), "holdfast_b_seconds": ("histogram", {"x"}),
        "holdfast_c": ("gauge", set())}


class Reader(unittest.TestCase):
    def test_well_formed_text_is_parsed(self):
        families = exposition.read(GOOD, strict=True)
        self.assertEqual(set(families), {"a", "b_seconds"})

    def test_malformed_text_is_refused(self):
        for before, after in BROKEN:
            self.assertIn(before, GOOD)
            with self.assertRaises(exposition.Malformed, msg=f"{before!r} -> {after!r}"):
                exposition.read(GOOD.replace(before, after, 1), strict=True)

    def test_in_the_older_format_the_suffix_belongs_to_the_family_name(self):
        old = "# TYPE a_total counter\n# HELP a_total An a.\na_total 3\n"
        exposition.read(old, strict=False)
        with self.assertRaises(exposition.Malformed):
            exposition.read(old + "# EOF\n", strict=True)


class Queries(unittest.TestCase):
    def refused(self, query):
        return list(check.check_query("here", query, PAGE))

    def test_listed_metrics_may_be_queried(self):
        self.assertEqual([], self.refused('sum by (le, x) (rate(holdfast_b_seconds_bucket{x=~"z"}[5m])) > 1'))
        self.assertEqual([], self.refused("holdfast_c == 0"))

    def test_metrics_that_are_not_printed_may_not_be_queried(self):
        for query in ("holdfast_d", "holdfast_b_seconds", "holdfast_c_bucket", "up == 1",
                      'holdfast_c{x="1"}', "sum by (z) (holdfast_b_seconds_sum)"):
            self.assertNotEqual([], self.refused(query), query)

    def test_every_metric_is_listed_with_its_type_and_labels(self):
        page = check.listed()
        self.assertGreater(len(page), 15)
        family = exposition.Family("holdfast_lost", "gauge")
        family.samples[("holdfast_lost_total", (("x", "1"),))] = 1
        said = list(check.check_listed({"holdfast_lost_total": family, "holdfast_new": family}, page))
        for hint in ("holdfast_lost_total is a gauge", "has the labels ['x']", "holdfast_new is printed",
                     "lists holdfast_held, and nothing"):
            self.assertTrue([s for s in said if hint in s], hint)


if __name__ == "__main__":
    unittest.main()
