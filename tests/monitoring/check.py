#!/usr/bin/env python3
"""Checks what the library and the program print for Prometheus, and everything that is built on it.

check.py --library PROGRAM --tool PROGRAM [--promtool]

Both texts of both, and that of holdfast serve for two stores, are read by a strict reader. docs/monitoring.md lists exactly their
metrics, with their types and labels. The alert rules and the dashboard use nothing that is not listed. With --promtool, Prometheus' own
program judges all that, too.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import exposition  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
MONITORING = ROOT / "packaging" / "monitoring"
ROW = re.compile(r"\| `(holdfast_\w+)` \| (\w+) \| ([^|]*) \|")
# What a query may say beside metrics and labels.
WORDS = {"sum", "max", "min", "count", "by", "rate", "increase", "histogram_quantile", "last_over_time", "label_values", "time",
         "and", "or", "unless", "on", "floor"}
OTHERS = {"node_textfile_mtime_seconds": {"file"}}  # metrics of node_exporter, with their labels
ADDED = {"le", "__name__", "quorum"}  # by the format, by Prometheus, and by the relabelling that docs/monitoring.md shows


def output_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout


def served(tool, stores):
    """What holdfast serve answers at /metrics. It waits until it has read each store."""
    page = subprocess.Popen([tool, "serve", "--json", "--listen", ":0", *(word for url in stores for word in ("--store", url))],
                            stdout=subprocess.PIPE)
    try:
        url = json.loads(page.stdout.readline())["url"]
        with urllib.request.urlopen(url.rstrip("/") + "/metrics", timeout=60) as answer:
            return answer.read().decode()
    finally:
        page.terminate()
        page.communicate(timeout=30)


def texts(library, tool):
    """What both programs print, by the name of the format, and what holdfast serve answers."""
    with tempfile.TemporaryDirectory() as folder:
        stores = [f"sqlite:{folder}/other.db", f"sqlite:{folder}/locks.db"]
        for os.environ["HOLDFAST_STORE"] in stores:
            output_of(tool, "run", "once", "--", "true")
        hold = subprocess.Popen([tool, "elect", "importer", "--", "sleep", "100"], stdin=subprocess.PIPE)
        lock = subprocess.Popen([tool, "hold", "--json", "order:1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        lock.stdout.readline()
        try:
            said = {form: (output_of(library, form), output_of(tool, "metrics", "--format", form))
                    for form in ("openmetrics", "prometheus")}
            return said | {"served": served(tool, stores)}
        finally:
            for process in (hold, lock):
                process.terminate()
                process.communicate(timeout=30)


def listed():
    """name -> (type, labels) as the page says."""
    rows = {}
    for name, kind, labels in ROW.findall((ROOT / "docs" / "monitoring.md").read_text()):
        rows[name] = (kind, set(re.findall(r"`(\w+)`", labels)))
    return rows


def shown_name(family):
    """As people write it in a query."""
    return family.name + (exposition.SUFFIXES[family.kind][0] if family.kind in ("counter", "info") else "")


def check_listed(families, page):
    for name, (kind, labels) in page.items():
        if name not in families:
            yield f"docs/monitoring.md lists {name}, and nothing prints it"
    for name, family in families.items():
        if name not in page:
            yield f"{name} is printed, and docs/monitoring.md does not list it"
            continue
        kind, labels = page[name]
        if kind != family.kind:
            yield f"{name} is a {family.kind}, and docs/monitoring.md says {kind}"
        for _, found in family.samples:
            names = {label for label, _ in found} - {"le"}
            if names != labels:
                yield f"{name} has the labels {sorted(names)}, and docs/monitoring.md says {sorted(labels)}"
                break


def queries():
    for match in re.finditer(r"\n( +)expr: (?:>-((?:\n\1  .*)+)|(.*))", (MONITORING / "alerts.yml").read_text()):
        yield "alerts.yml", match[2] or match[3]
    board = json.loads((MONITORING / "dashboard.json").read_text())
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield f"dashboard.json, {panel['title']}", target["expr"]
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield f"dashboard.json, {variable['name']}", variable["query"]["query"]


def metric_of(word, page):
    """The metric that a name in a query is of."""
    if word in page and page[word][0] != "histogram":
        return word
    for suffix in exposition.SUFFIXES["histogram"]:
        if word.endswith(suffix) and page.get(word[:-len(suffix)], ("", ()))[0] == "histogram":
            return word[:-len(suffix)]
    return None


def check_query(where, query, page):
    bare = re.sub(r'"[^"]*"', '""', query)
    metrics = re.findall(r"holdfast_\w+", query)
    others = [m for m in OTHERS if m in bare]
    labels = set().union(*(page[metric_of(m, page)][1] for m in metrics if metric_of(m, page)), *map(OTHERS.get, others)) | ADDED
    if not metrics and not others:
        yield f"{where}: no metric in {query}"
    for metric in metrics:
        if metric_of(metric, page) is None:
            yield f"{where}: there is no {metric}"
    for word in re.findall(r"(?<![\w$\[])[a-z_]\w*", bare):
        if word not in labels and word not in WORDS and word not in metrics + others:
            yield f"{where}: no metric there has a label {word}: {query}"


def check_served(said, told, page):
    """holdfast serve has the families of holdfast metrics, and each store has its series."""
    families, theirs = exposition.read(said, strict=True), exposition.read(told, strict=True)
    yield from check_listed({shown_name(f): f for f in families.values()}, {name: page[name] for name in map(shown_name, theirs.values())})
    if len(families["holdfast_store_up"].samples) != 2:
        yield f"holdfast serve shows other stores than the two that it was given:\n{said}"


def as_rules(expressions):
    """Of queries of the dashboard, with any value for each of its variables. JSON is YAML."""
    rules = []
    for at, query in enumerate(expressions):
        query = re.sub(r"label_values\((.*), \w+\)", r"\1", query).replace("$__rate_interval", "5m")
        rules.append({"record": f"dashboard:{at}", "expr": re.sub(r"\$(store|group)\b", "any", query)})
    return json.dumps({"groups": [{"name": "dashboard", "rules": rules}]})


def parse_dashboard():
    """promtool reads the queries as PromQL."""
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as rules:
        rules.write(as_rules(query for where, query in queries() if where.startswith("dashboard.json")))
        rules.flush()
        output = subprocess.run(["promtool", "check", "rules", rules.name], capture_output=True, text=True, timeout=60)
    if output.returncode:
        yield "promtool check rules, of the dashboard: " + output.stdout + output.stderr


def promtool(said):
    output = subprocess.run(["promtool", "check", "metrics"], input=said, capture_output=True, text=True, timeout=60)
    if output.returncode not in (0, 3):  # 3: remarks on style
        yield "promtool check metrics: " + output.stderr
    for line in output.stderr.splitlines():
        yield "promtool check metrics: " + line


def check(library, tool, with_promtool):
    printed = texts(library, tool)
    families = {}
    for said in printed["openmetrics"]:
        families.update({shown_name(f): f for f in exposition.read(said, strict=True).values()})
    for said in printed["prometheus"]:
        exposition.read(said, strict=False)
    page = listed()
    yield from check_listed(families, page)
    for where, query in queries():
        yield from check_query(where, query, page)
    yield from check_served(printed["served"], printed["openmetrics"][1], page)
    if with_promtool:
        for said in (*printed["prometheus"], printed["served"]):
            yield from promtool(said)
        yield from parse_dashboard()
        for words in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]):
            subprocess.run(["promtool", *words], check=True, cwd=MONITORING, timeout=60)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--library", required=True)
    arguments.add_argument("--tool", required=True)
    arguments.add_argument("--promtool", action="store_true")
    given = arguments.parse_args()
    findings = list(check(given.library, given.tool, given.promtool))
    print("\n".join(findings))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
