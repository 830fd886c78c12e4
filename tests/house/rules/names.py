"""A test's name is the rule that it checks, and no test is forgotten."""
import re

from .tree import Finding

TEST = re.compile(r"^\s*(?:TYPED_)?TEST(?:_F|_P)?\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.M)
SNAKE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*\Z")
WORDS = 3
PERSONS = {"who", "whom", "whoever", "he", "him", "his", "himself",
           *(some + one for some in ("no", "some", "any", "every") for one in ("one", "body", "bodys"))}


def check(tree):
    for file in tree.under("tests"):
        text = "\n".join(file.code)
        for match in TEST.finditer(text):
            line = text.count("\n", 0, match.start(1)) + 1
            suite, name = match[1], match[2]
            if not SNAKE.match(suite):
                yield Finding(file.path, line, "names", f"{suite}: suites are named in snake_case, as all types here")
            if not SNAKE.match(name) or name.count("_") + 1 < WORDS:
                yield Finding(file.path, line, "names", f"{name}: a test's name is the rule it checks, in snake_case, such as "
                              "release_by_a_former_holder_changes_nothing")
            for word in sorted(PERSONS & {*suite.split("_"), *name.split("_")}):
                yield Finding(file.path, line, "names", f"{suite}.{name}: \"{word}\" is a person; the subject of a test is a thing "
                              "with a standard name, such as a waiter, a holder, a process, a session or a request")


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
