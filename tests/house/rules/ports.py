"""What stands before a store forwards all that the port has."""
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
