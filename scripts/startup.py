#!/usr/bin/env python3
"""startup.py [--rounds N] NAME=COMMAND...: how long whole runs take, in turns: the median of each, and how many times that of the first.

    scripts/startup.py "flock=flock /tmp/lock true" "run=holdfast run --store sqlite:/tmp/locks.db x -- true" "help=holdfast --help"

`chrt --fifo 1` in front of it keeps other programs of the machine out of the figures.
"""
import os
import shlex
import statistics
import sys
import time

WARM_UP = 5


def seconds(command, output):
    began = time.perf_counter()
    pid = os.posix_spawnp(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, output, 1)])
    _, status = os.waitpid(pid, 0)
    if status:
        sys.exit(f"{shlex.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - began


def main(words):
    rounds = 100
    if words[:1] == ["--rounds"]:
        rounds, words = int(words[1]), words[2:]
    commands = {name: shlex.split(command) for name, _, command in (word.partition("=") for word in words)}
    if not commands or not all(commands.values()):
        sys.exit(__doc__)
    times = {name: [] for name in commands}
    output = os.open(os.devnull, os.O_WRONLY)
    for turn in range(WARM_UP + rounds):
        for name, command in commands.items():
            took = seconds(command, output)
            if turn >= WARM_UP:
                times[name].append(took)
    medians = {name: statistics.median(each) for name, each in times.items()}
    first = next(iter(medians.values()))
    for name, median in medians.items():
        print(f"{name:20} {median * 1e3:7.2f} ms {median / first:6.2f} x")


if __name__ == "__main__":
    main(sys.argv[1:])
