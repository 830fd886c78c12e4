"""What stands before a store forwards all that the port has, and what stands for a client library has all that a driver calls."""
import re

from .tree import Finding

PORTS = ("include/holdfast/store/store.hpp", "include/holdfast/store/posting.hpp")
FORWARDING = "include/holdfast/store/forwarding_store.hpp"
VIRTUAL = re.compile(r"\bvirtual\s[^;{}]*?(?<!~)\b(\w+)\s*\(")
OVERRIDDEN = re.compile(r"\b(\w+)\s*\([^;{}]*\)\s*(?:const\s*)?(?:noexcept\s*)?override\b")


def check_forwarding(tree):
    forwarding = tree.get(FORWARDING)
    if not forwarding:
        return
    first_class = "\n".join(forwarding.code).partition("\n};")[0]
    forwarded = set(OVERRIDDEN.findall(first_class))
    for port in filter(None, map(tree.get, PORTS)):
        text = "\n".join(port.code)
        for match in VIRTUAL.finditer(text):
            if match[1] not in forwarded:
                line = text.count("\n", 0, match.start(1)) + 1
                yield Finding(port.path, line, "forwarding", f"{match[1]}() is not passed on by {FORWARDING}: every store that "
                              "stands before another would answer with the default, in silence")


# The simulator's own client libraries. transaction_locks.cpp uses the connection of the caller's program, which is not simulated.
CLIENTS = {"src/store/mariadb/": ("mysql_", "tests/simulation/libmariadb.cpp"), "src/store/postgres/": ("PQ", "tests/simulation/libpq.cpp")}
NOT_SIMULATED = "transaction_locks.cpp"


def check_clients(tree):
    for folder, (prefix, simulated) in CLIENTS.items():
        if not tree.get(simulated):
            continue
        call = re.compile(rf"\b({prefix}\w+)\s*\(")
        known = set(call.findall("\n".join(tree.get(simulated).code)))
        for file in tree.files:
            if not file.path.startswith(folder) or file.path.endswith(NOT_SIMULATED):
                continue
            for number, line in enumerate(file.code, 1):
                for name in call.findall(line):
                    if name not in known:
                        yield Finding(file.path, number, "clients", f"{name}() is not in {simulated}: the simulation would call the "
                                      "real library, and crash")
