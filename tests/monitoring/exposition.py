"""A strict reader of the two texts that Prometheus reads: OpenMetrics 1.0, and the older text format 0.0.4."""
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)\Z")
SUFFIXES = {"counter": ("_total",), "gauge": ("",), "info": ("_info",), "histogram": ("_bucket", "_sum", "_count")}


class Malformed(Exception):
    pass


class Family:
    def __init__(self, name, kind):
        self.name, self.kind, self.help, self.unit = name, kind, None, None
        self.samples = {}  # (name, labels) -> value, in their order


def require(condition, what, line):
    if not condition:
        raise Malformed(f"{what}: {line!r}")


def read_labels(text, line):
    labels, at = [], 0
    while at < len(text):
        match = LABEL.match(text, at)
        require(match, "a label is malformed", line)
        labels.append((match[1], match[2]))
        at = match.end()
        if at < len(text):
            require(text[at] == "," and at + 1 < len(text), "labels are separated by one comma", line)
            at += 1
    names = [name for name, _ in labels]
    require(len(set(names)) == len(names), "a label is there twice", line)
    return tuple(labels)


def read(text, strict):
    """The families by their names; `strict`: as OpenMetrics."""
    require(text.endswith("\n"), "the last line does not end", text[-40:])
    lines = text[:-1].split("\n")
    if strict:
        require(lines.pop() == "# EOF", "the text does not end with # EOF", lines[-1] if lines else "")
    families, present = {}, None
    for line in lines:
        require(line == line.strip() and line, "an empty line, or a blank at an end", line)
        comment = re.match(rf"# (TYPE|HELP|UNIT) ({NAME}) (.*)\Z", line)
        if comment:
            word, name, rest = comment.groups()
            if word == "TYPE":
                require(name not in families, "a family is there twice", line)
                require(rest in SUFFIXES and (strict or rest != "info"), "no such type", line)
                present = families[name] = Family(name, rest)
            require(present and name == present.name, "it belongs to another family", line)
            require(not present.samples, "it comes behind samples", line)
            if word == "HELP":
                require(present.help is None and rest, "one text of help", line)
                present.help = rest
            if word == "UNIT":
                require(name.endswith("_" + rest), "the unit is not the end of the name", line)
                present.unit = rest
            continue
        require(not line.startswith("#"), "a comment that is none", line)
        read_sample(line, present, strict)
    for family in families.values():
        require(family.help, "no help", family.name)
        check_histogram(family)
    return families


def read_sample(line, family, strict):
    match = SAMPLE.match(line)
    require(match and family, "neither a comment nor a sample", line)
    name, labels, value = match[1], read_labels(match[2] or "", line), match[3]
    suffixes = SUFFIXES[family.kind] if strict or family.kind == "histogram" else ("",)
    require(name in [family.name + s for s in suffixes], f"no sample of {family.name}", line)
    require(re.fullmatch(r"-?\d+(\.\d+)?([eE][+-]?\d+)?|\+Inf|NaN", value), "no number", line)
    if family.kind in ("counter", "histogram"):
        require(float(value) >= 0, "it counts below zero", line)
    key = (name, labels)
    require(key not in family.samples, "a sample is there twice", line)
    family.samples[key] = float(value)


def check_histogram(family):
    if family.kind != "histogram":
        return
    series = {}
    for (name, labels), value in family.samples.items():
        others = tuple(label for label in labels if label[0] != "le")
        series.setdefault(others, {}).setdefault(name[len(family.name):], []).append((dict(labels).get("le"), value))
    for labels, parts in series.items():
        require(set(parts) == {"_bucket", "_sum", "_count"}, f"parts are missing: {set(parts)}", str(labels))
        bounds = [float(le) for le, _ in parts["_bucket"]]
        counts = [n for _, n in parts["_bucket"]]
        require(bounds == sorted(set(bounds)) and bounds[-1] == float("inf"), "bounds grow up to +Inf", str(labels))
        require(counts == sorted(counts), "buckets hold what those below them hold", str(labels))
        require(counts[-1] == parts["_count"][0][1], "the last bucket is the count", str(labels))
