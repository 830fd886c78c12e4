"""Calls that this project does without."""
import re
import typing

from .tree import Finding, is_under


class Ban(typing.NamedTuple):
    pattern: str
    folders: tuple
    reason: str
    allowed: dict = {}  # path or folder -> why it may


BANS = (
    Ban(r"\bstd::(counting|binary)_semaphore\b", ("src", "include"),
        "libstdc++ 12 can lose a wake-up in it; use a mutex and a condition variable"),
    Ban(r"\bstd::(recursive_|shared_)?timed_mutex\b", ("src", "include"),
        "ThreadSanitizer of g++ 12 does not know its clock wait and reports races that are none; wait on the clock seam"),
    Ban(r"\b(system_clock|gettimeofday|CLOCK_REALTIME|timespec_get)\b|\bstd::time\s*\(|(?<![\w.:>])time\s*\(\s*(nullptr|NULL|0)\s*\)",
        ("src", "include"),
        "no wall clock of a client decides anything: somebody can set it. Store time in the store, boot_clock in the process",
        {"include/holdfast/session.hpp": "participant::since, a label for people",
         "include/holdfast/election.hpp": "leader::since, the same",
         "src/primitive/common.cpp": "the same",
         "src/observe/event_log.cpp": "the time of a line, a label for people",
         "src/store/etcd/etcd.cpp": "the same: etcd knows no time",
         "src/store/memory": "it is the store: its time begins at the wall clock, so that fences grow across restarts",
         "src/store/sqlite": "the same: the machine's clock is the store's"}),
    Ban(r"\bstd::(cout|cerr|clog)\b|(?<![\w])(std::)?(v?printf|v?fprintf|puts|fputs|putchar|perror)\s*\(", ("src", "include"),
        "the library prints nothing: tell the observer"),
    Ban(r"\bthis_thread::sleep_(for|until)\s*\(|(?<![\w.:>])(::)?((u|nano|clock_nano)sleep\s*\(|sleep\s*\(\s*\d)",
        ("src", "include", "tests"),
        "sleeping to make sure is slow and still not sure: wait for the event, or move the fake clock",
        {"tests/simulation/threads.cpp": "it is what a simulated thread sleeps by",
         "tests/fault/storm.cpp": "work under a lock takes its time, and so does a fault"}),
    Ban(r"\bthread::id\b|\bthis_thread::get_id\s*\(", ("src/primitive", "include"),
        "a later thread gets it when its own has ended, and would have what that one left: primitive::this_thread_number()"),
    Ban(r"\b(rand|srand)\s*\(", ("src", "include"), "predictable, and shared with the user's program"),
    Ban(r"\bvolatile\b", ("src", "include"), "orders nothing between threads: use std::atomic"),
    Ban(r"(?<!\w)::ppoll\s*\(", ("src",),
        "wakes up late by a thousandth of its time-out, or a two-hundredth: base::next_sleep() and sleep_until_ready()",
        {"src/base/readiness.hpp": "it is where that is seen to"}),
    Ban(r"\.detach\s*\(\s*\)", ("src", "tool"), "a detached thread outlives what it uses: keep it and join it",
        {"src/session/session_impl.cpp": "a session that ends on its own keeper's thread, which cannot join itself",
         "src/session/worker.hpp": "the same, of the last lease of a redlock that is dropped by whom it tells of its loss",
         "tool/line_writer.cpp": "it may be in a write that never ends, and shares what it uses"}),
)
# A session may be a static object: at exit it runs after everything that was made later is destroyed. Found by the
# form of a declaration: `static T name` in a block, or a name of the standard library's in a namespace. Not found: a
# static that is initialized with parentheses, and a class of ours in a namespace.
DESTROYED_AT_EXIT = (
    re.compile(r"\s+(?:static\s+thread_local|static|thread_local)\s+(?!constexpr\b|constinit\b)"
               r"(?P<type>[^=;{()]*?[\w>*&])\s+\w+\s*(?:=|\{|;|$)"),
    re.compile(r"(?:static |inline |thread_local |extern )*(?:const )?(?P<type>std::[\w:]+(?:<.*>)?)\s+\w+\s*(?:=|\{|;)"))
TRIVIAL = re.compile(r"(?:const )?(?:auto|bool|int|unsigned|pid_t|(?:std::)?u?int\w*_t|std::(?:atomic(?:<.*>|_\w+)|once_flag|size_t|"
                     r"mutex|minstd_rand))(?: const)?$|.*[*&](?: ?const)?$")
DESTROYED_WHY = ("is destroyed at exit, perhaps before a static session that needs it: make it constexpr, or "
                 "`static const auto* const x = new …`")
MAY_BE_DESTROYED = {"src/lease/own_holds.cpp": "its own destructor notes that it is gone",
                    "src/observe/counters.cpp": "the same"}


# In all text. The words are put together so that this file does not find itself.
WORDS = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")


def check(tree):
    for ban in BANS:
        pattern = re.compile(ban.pattern)
        for file in tree.under(*ban.folders):
            if is_under(file.path, ban.allowed):
                continue
            for number, line in enumerate(file.code, 1):
                match = pattern.search(line)
                if match:
                    yield Finding(file.path, number, "banned", f"{match[0].strip(' (')}: {ban.reason}")
    for file in tree.under("src", "include"):
        if is_under(file.path, MAY_BE_DESTROYED):
            continue
        for number, line in enumerate(file.code, 1):
            for form in DESTROYED_AT_EXIT:
                match = form.match(line)
                if match and not TRIVIAL.match(match["type"].strip()):
                    yield Finding(file.path, number, "banned", f"{line.strip()} {DESTROYED_WHY}")
    for file in tree.files:
        for number, line in enumerate(file.lines, 1):
            match = WORDS.search(line)
            if match:
                yield Finding(file.path, number, "banned", f"{match[0]}: do it, or open an issue; a note in the code is "
                              "neither")
