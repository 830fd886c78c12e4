#!/usr/bin/env python3
"""Runs the shell blocks of the documentation, each in a folder and with a store of its own.

shell_blocks.py --holdfast PROGRAM [FILE...]    without files: README.md, CONTRIBUTING.md and docs

A line has to end with 0, or with N where its comment says "exit code N". A job in the background is waited for until it
has its lock. `make TARGET` is a dry run. What a block does not have (backup.sh, curl, …) is a program that succeeds.
In the Markdown, a comment before the block may say

    <!-- sh: not run: WHY -->      the block is left out
    <!-- sh: first: COMMANDS -->   what the reader has done before, or other hosts do meanwhile. `a_redis` starts a server of the
                                   block's own, to which its redis-cli talks
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MARK = re.compile(r"<!-- sh: (not run|first): (.+) -->\Z")
EXPECTED = re.compile(r"#.*\bexit code (\d+)")
BACKGROUND = re.compile(r"\A(\s*holdfast (?:run|hold) (\S+) .*&)(\s*(?:#.*)?)\Z")
OTHERS_PROGRAMS = ["curl", "dot", "importer", "jq", "mail", "report", "sendmail", "simulate", "ops"]
LIMIT_SECONDS = 30

# The trap says which lines of the block failed. A job that was started has its lock before the next line runs.
PRELUDE = """
set -E
trap 'code=$?; [[ ${BASH_SOURCE[0]} != ./block ]] || echo "$LINENO $code" >&9' ERR
holds() { until holdfast list --held | grep -q "^$1 "; do :; done; }
user=alice
a_redis() {
  redis-server --port 0 --unixsocket "$HOME/redis" --save '' >/dev/null &
  redis-cli() { command redis-cli -e -s "$HOME/redis" "$@"; }
  until redis-cli ping &>/dev/null; do :; done
}
"""


def blocks(path):
    """(line, commands, mark, its text) of each ```sh block."""
    lines = path.read_text(encoding="utf-8").splitlines()
    at = 0
    while at < len(lines):
        if lines[at] == "```sh":
            end = lines.index("```", at)
            before = next((line for line in reversed(lines[:at]) if line.strip()), "")
            mark = MARK.match(before)
            yield at + 2, lines[at + 1:end], mark and mark[1], mark and mark[2]
            at = end
        at += 1


def expectations(commands):
    return {number: int(match[1]) for number, line in enumerate(commands, 1) if (match := EXPECTED.search(line))}


def script(commands):
    return "\n".join(BACKGROUND.sub(r"\1 holds \2\3", line) for line in commands) + "\n"


def stubs(folder, commands):
    names = {f"bin/{name}" for name in OTHERS_PROGRAMS}
    names |= {name[2:] for line in commands for name in re.findall(r"(?:\A|\s)(\./[\w.-]+)", line)}
    for name in names:
        (folder / name).write_text("#!/bin/sh\nexit 0\n")
        (folder / name).chmod(0o755)
    make = folder / "bin/make"
    make.write_text(f'#!/bin/sh\nexec /usr/bin/make -n -C {ROOT} "$@" >/dev/null\n')
    make.chmod(0o755)


def run(holdfast, path, line, commands, before):
    """What is wrong with a block, as text; empty if nothing is."""
    with tempfile.TemporaryDirectory(prefix="holdfast-docs-") as name:
        folder = pathlib.Path(name)
        (folder / "bin").mkdir()
        stubs(folder, commands)
        (folder / "docs.db").touch()  # the reader's store: commands that only inspect it do not create it
        for program in [holdfast, holdfast.with_name("holdfast-faultproxy")]:
            (folder / "bin" / program.name).symlink_to(program)
        (folder / "prelude").write_text(PRELUDE)
        (folder / "block").write_text(script(commands))
        whole = f". ./prelude; {before or ':'}\nexec 9>failed; . ./block; trap - ERR; jobs -p | xargs -r kill; wait"
        environment = dict(os.environ, HOME=name, PATH=f"{folder}/bin:{os.environ['PATH']}",
                           HOLDFAST_STORE=f"sqlite:{folder}/docs.db", HOLDFAST_COLOR="never")
        with open(folder / "said", "w", encoding="utf-8") as said:
            try:
                subprocess.run(["bash", "-c", whole], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=said,
                               stderr=subprocess.STDOUT, timeout=LIMIT_SECONDS, check=False)
            except subprocess.TimeoutExpired:
                return f"{path.relative_to(ROOT)}:{line}: does not end: {commands}"
        said = (folder / "said").read_text()
        failed = {int(n): int(code) for n, code in (entry.split() for entry in (folder / "failed").read_text().splitlines())}
    wrong = []
    for number in sorted({*failed, *expectations(commands)}):
        expected, got = expectations(commands).get(number, 0), failed.get(number, 0)
        if got != expected:
            wrong.append(f"{path.relative_to(ROOT)}:{line + number - 1}: ends with {got}, not {expected}: {commands[number - 1]}")
    return "\n".join([*wrong, said] if wrong else wrong)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--holdfast", type=pathlib.Path, required=True)
    arguments.add_argument("files", nargs="*", type=pathlib.Path)
    given = arguments.parse_args()
    files = given.files or [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")),
                            *sorted((ROOT / "docs/stores").glob("*.md"))]
    all_blocks = [(path.resolve(), *block) for path in files for block in blocks(path)]
    ready = [(path, line, commands, text) for path, line, commands, mark, text in all_blocks if mark != "not run"]
    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as several:
        wrong = [text for text in several.map(lambda block: run(given.holdfast.resolve(), *block), ready) if text]
    print("\n".join(wrong))
    print(f"{len(ready)} shell blocks ran, {len(all_blocks) - len(ready)} are marked as not run, {len(wrong)} failed")
    return 1 if wrong or not ready else 0


if __name__ == "__main__":
    sys.exit(main())
