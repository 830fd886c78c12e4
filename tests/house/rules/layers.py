"""Which way the rooms lean on each other: read from the #include lines."""
import re

from .tree import Finding, is_under

# What a room of src/ may include from src/. An arrow that is not here does not exist.
ROOMS = {
    "primitive": ("primitive", "quorum", "wait", "diagnose", "local", "lease", "session", "base"),
    "quorum": ("quorum", "wait", "lease", "session", "base"),
    "wait": ("wait", "diagnose", "local", "lease", "session", "base"),
    "diagnose": ("diagnose", "lease", "session", "base"),
    "local": ("local", "lease", "session", "base"),
    "lease": ("lease", "local", "session", "base"),
    "session": ("session", "base"),
    "family": ("family", "kernel"),
    "kernel": ("kernel",),
    "base": ("base",),
    "observe": ("observe", "base"),
    "testing": ("testing",),
    "c": ("c",),  # sees what users see
}
# What the C interface sees besides: it needs nothing of the library that users cannot see.
INLINE = ("base/utf8.hpp",)
# The one unit that joins the parts of a session, and knows them all.
JOINER = "src/session/session_impl"
# A driver includes its own folder only, and what it shares with others: SQL, the text of contenders.
DRIVERS = "store"
SHARED = {"store/sql": ("store/sqlite", "store/postgres", "store/mariadb"),
          "store/contender_text": ("store/zookeeper", "store/etcd")}
# What is under both stacks.
BASE = "base"
# Drivers whose own words the simulator runs, on a server of its own.
SIMULATED = ("store/redis", "store/postgres", "store/mariadb", "store/memcached")
# Where stores and families are joined, a file for each store; and open(), which finds them.
OPENERS = ("src/open.cpp", "src/drivers")

# What kernel, family and drivers see of the public headers: the ports, and the words used in them.
PORTS = ("holdfast/store", "holdfast/error.hpp", "holdfast/result.hpp", "holdfast/clock.hpp")

# The kernel is pure: nothing that waits, prints, reads files or draws random numbers.
IMPURE = ("thread", "mutex", "shared_mutex", "condition_variable", "semaphore", "latch", "barrier", "future", "atomic",
          "stop_token", "chrono", "ctime", "iostream", "fstream", "filesystem", "random", "cstdio")

# Programs see what users see.
USERS = ("tool", "bench", "examples")

# A vendor's client belongs to one store, and never to a public header.
VENDORS = {
    r"sqlite3(ext)?\.h": "sqlite",
    r"libpq|libpq-fe\.h|postgres.*|pqxx": "postgres",
    r"mysql|mariadb|mysql\.h": "mariadb",
    r"hiredis|sw": "redis",
    r"zookeeper": "zookeeper",
    r"grpc|grpcpp|google|etcd": "etcd",
    r"libmemcached.*": "memcached",
}
CPP_STANDARD = re.compile(r"[a-z_]+\Z")
# Public headers that are asked for by name, and what of other libraries they may include.
BY_NAME = {
    "include/holdfast/testing.hpp": None,
    "include/holdfast/guard.hpp": None,
    "include/holdfast/holdfast.h": None,
    "include/holdfast/c/error.h": re.compile(r"stdint\.h\Z"),
    "include/holdfast/asio.hpp": re.compile(r"asio(\.hpp|/[\w/]+\.hpp)\Z"),
    "include/holdfast/prometheus.hpp": re.compile(r"prometheus/\w+\.h\Z"),
}
# Vendor headers are allowed where a test or the tool looks at a store's own tables.
VENDOR_ELSEWHERE = ("tests", "tool", "bench", "examples")


def room_of(path):
    """src/kernel/permits.hpp -> kernel; src/store/sqlite/x.hpp -> store/sqlite; otherwise None."""
    match = re.match(r"src/(store/[^/]+|[^/]+)/", path)
    return match[1] if match else None


def check(tree):
    rooms = {room_of(f.path) for f in tree.under("src")} - {None}
    for file in tree.under("src", "include", "tests", *USERS):
        for line, name, quoted in file.includes:
            problem = _judge(tree, file, name, rooms)
            if problem:
                yield Finding(file.path, line, "layers", problem)
            elif quoted and file.path.startswith("include/"):
                yield Finding(file.path, line, "layers", f'write <{name}>: a public header is read from an install prefix, '
                              "where no neighbour file is found by quotes")


def _judge(tree, file, name, rooms):
    target = room_of("src/" + name)
    if name.startswith("../") or "/../" in name:
        return f'"{name}" goes up: name the room, as in "kernel/permits.hpp", so that arrows can be read'
    if target not in rooms:
        target = None
    if target is None and "/" not in name:
        local = (tree.root / file.path).parent / name
        if local.exists() and file.path.startswith("src/"):
            return f'"{name}" is a neighbour: write "{room_of(file.path)}/{name}", so that arrows can be read'
    room = room_of(file.path)

    if file.path.startswith("include/"):
        if target:
            return f"a public header includes {name} from src/, which is not installed"
        return None
    if is_under(file.path, USERS):
        if target:
            return f"programs see only include/holdfast, as users do; {name} is in src/"
        return None
    if file.path.startswith("tests/"):
        if file.path.startswith("tests/fuzz/"):  # each target is a part, or what the parts of several stores have alike
            return None
        own = re.match(r"tests/(store/[^/]+)/", file.path)
        allowed = own and (own[1] == target or own[1] in SHARED.get(target, ()))
        # It runs the driver's scripts, its SQL, or its connection, on a server of its own.
        allowed = allowed or (target in SIMULATED and file.path.startswith("tests/simulation/"))
        if target and target.startswith("store/") and not allowed:
            return f"only tests/{target} may know the driver {name}; other tests open it by its URL"
        return None
    if room is None or is_under(file.path, OPENERS) or file.path.startswith(JOINER + "."):
        return None
    return _judge_public(room, name) or _judge_room(room, target, name)


def _judge_public(room, name):
    if name == "holdfast/holdfast.hpp":
        return "the umbrella header is for users; include what is used"
    narrow = room in ("kernel", "family") or room.startswith(DRIVERS + "/")
    if narrow and name.startswith("holdfast/") and not is_under(name, PORTS):
        return f"{room} sees only the ports ({', '.join(PORTS)}), not {name}: it must work without a session"
    if room == "kernel" and name in IMPURE:
        return f"the kernel is pure (time and identity are arguments); <{name}> is not"
    return None


def _judge_room(room, target, name):
    if target is None:
        return None
    if target.startswith(DRIVERS + "/"):
        if target == room or room in SHARED.get(target, ()):
            return None
        return f"{name} belongs to the driver {target}: only {OPENERS[1]} includes drivers"
    if room.startswith(DRIVERS + "/") and target == BASE:
        return None
    if room.startswith(DRIVERS + "/"):
        return f"a driver sees its own folder, src/base, include/holdfast/store and its vendor's client, not {name}"
    if room == "c" and name in INLINE:
        return None
    if target not in ROOMS.get(room, ()):
        allowed = ", ".join(ROOMS.get(room, ())) or "nothing: add the room to ROOMS in tests/house/rules/layers.py"
        return f"{room} may include {allowed}; {name} is in {target}. Two stacks meet at holdfast/store only: what a " \
               "program uses, and what a store consists of"
    return None


def check_vendor(tree):
    for file in tree.under("include"):
        for line, name, _ in file.includes:
            others = BY_NAME.get(file.path)
            if not name.startswith("holdfast/") and not CPP_STANDARD.match(name) and not (others and others.match(name)):
                yield Finding(file.path, line, "vendor", f"<{name}> in a public header: users would need it too; only the "
                              "C++ standard library is allowed here")
    for file in tree.under("src"):
        for line, name, _ in file.includes:
            for pattern, store in VENDORS.items():
                if re.match(rf"({pattern})(/|\Z)", name) and room_of(file.path) != f"store/{store}":
                    yield Finding(file.path, line, "vendor", f"<{name}> is the client of the {store} store and stays in "
                                  f"src/store/{store}")


def check_umbrella(tree):
    """Every top-level public header is reached from holdfast.hpp, but for those that are asked for by name."""
    top = "include/holdfast/holdfast.hpp"
    if not tree.get(top):
        return
    reached, todo = set(), [top]
    while todo:
        file = tree.get(todo.pop())
        if file and file.path not in reached:
            reached.add(file.path)
            todo += ["include/" + name for _, name, _ in file.includes if name.startswith("holdfast/")]
    for file in tree.under("include/holdfast"):
        if file.path.count("/") == 2 and file.path not in reached and file.path not in BY_NAME:
            yield Finding(file.path, 1, "umbrella", "holdfast.hpp does not include it, so whoever includes the umbrella "
                          "does not get it")
