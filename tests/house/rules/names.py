"""A test's name is the rule that it checks, and no test is forgotten."""
import re

from .tree import Finding, line_of

TEST = re.compile(r"^\s*(?:TYPED_)?TEST(?:_F|_P)?\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.M)
RULE = re.compile(r"^\s*RULE\((\w+)\)", re.M)  # a test in C: an entry of a table
METHOD = re.compile(r"^[ \t]+(?:async )?def test_(\w+)\(", re.M)
SNAKE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*\Z")
WORDS = 3
PERSONS = {"who", "whom", "whoever", "he", "him", "his", "himself",
           *(some + one for some in ("no", "some", "any", "every") for one in ("one", "body", "bodys"))}

SUBJECT = "the subject of a test is a thing with a standard name, such as a waiter, a holder, a process, a session or a request"
# What a name calls "one" before a clause is the same person in disguise: one_that_waits is a waiter.
ONE = re.compile(r"(?:^|_)one_(?:that|which|who|whose)(?:_|$)")


def check(tree):
    for file in tree.under("tests", suffixes=(".cpp", ".c", ".py")):
        for line, suite, name in tests_of(file):
            full = f"{suite}.{name}" if suite else name
            if suite and not SNAKE.match(suite):
                yield Finding(file.path, line, "names", f"{suite}: suites are named in snake_case, as all types here")
            if not SNAKE.match(name) or name.count("_") + 1 < WORDS:
                yield Finding(file.path, line, "names", f"{name}: a test's name is the rule it checks, in snake_case, such as "
                              "release_by_a_former_holder_changes_nothing")
            for word in sorted(PERSONS & {*suite.split("_"), *name.split("_")}):
                yield Finding(file.path, line, "names", f"{full}: \"{word}\" is a person; {SUBJECT}")
            if ONE.search(name):
                yield Finding(file.path, line, "names", f"{full}: \"one that\" leaves open what it is; {SUBJECT}")


def tests_of(file):
    """(line, suite, name) of each test; in C and Python the suite is not part of the rule."""
    if file.suffix == ".py":
        for match in METHOD.finditer(file.text):
            yield line_of(file.text, match.start(1)), "", match[1]
        return
    text = "\n".join(file.code)
    for match in (RULE if file.suffix == ".c" else TEST).finditer(text):
        yield line_of(text, match.start(1)), *(("", match[1]) if file.suffix == ".c" else match.groups())


def check_rooms(tree):
    """Not run is red: a folder of tests that the build does not know, or a store without tests, is a finding."""
    build = tree.get("tests/CMakeLists.txt")
    known = re.findall(r"(?:holdfast_room|add_subdirectory)\((\S+?)[\s)]", build.text) if build else []
    known = [k.replace("${store}", "*") for k in known]
    seen = set()
    for file in tree.under("tests", suffixes=(".cpp",)):
        room = file.path.rpartition("/")[0].removeprefix("tests/")
        general = re.sub(r"^store/[^/]+\Z", "store/*", room)
        if TEST.search("\n".join(file.code)) and room not in seen and not {room, general} & set(known):
            seen.add(room)
            yield Finding(file.path, 1, "rooms", f"nobody runs tests/{room}: add holdfast_room({room}) to tests/CMakeLists.txt")
    stores = {f.path.split("/")[2]: f for f in tree.under("src/store", suffixes=(".cpp",))}
    for store, file in sorted(stores.items()):
        if not tree.under(f"tests/store/{store}", suffixes=(".cpp",)):
            yield Finding(file.path, 1, "rooms", f"has no tests/store/{store}: what only this store can get wrong is "
                          "tested there")
