"""A copy of the source tree in which every fault is there, behind its switch. The real sources are left alone."""
import hashlib
import os
import re
import shutil

import faults as seeded
from faults import ROOT, SCRIPTS

# What is copied; the rest is linked to.
COPIED = ("src", "tool", "include")


def write(target, faults):
    """Writes what has changed only, so that the next build is a short one."""
    target.mkdir(parents=True, exist_ok=True)
    by_file = {}
    for fault in faults:
        by_file.setdefault(fault.file, []).append(fault)
    for name in sorted(p.name for p in ROOT.iterdir()):
        if name not in COPIED and name not in ("build", ".git", "cmake") and not (target / name).exists():
            (target / name).symlink_to(os.path.relpath(ROOT / name, target))
    put(target / "mutant.hpp", seeded.HEADER)
    wanted = {target / "mutant.hpp"}
    for folder in (*COPIED, "cmake"):
        for file in sorted(p for p in (ROOT / folder).rglob("*") if p.is_file()):
            path = file.relative_to(ROOT)
            text = file.read_text(encoding="utf-8")
            mine = [f for f in by_file.get(path.as_posix(), ()) if f.form != "text"]
            if mine:
                text = seeded.with_faults(text, mine, os.path.relpath(target / "mutant.hpp", (target / path).parent))
            if path.as_posix() == "cmake/redis-scripts.cpp.in":
                text = scripts([f for f in faults if f.form == "text"], text)
            put(target / path, text)
            wanted.add(target / path)
    for folder in (*COPIED, "cmake"):
        for file in [p for p in (target / folder).rglob("*") if p.is_file() and p not in wanted]:
            file.unlink()


def put(path, text):
    if path.is_file() and not path.is_symlink() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def clear(target):
    shutil.rmtree(target, ignore_errors=True)


# ---- the scripts -------------------------------------------------------------------------------------------------

def scripts(faults, template):
    """The template that CMake makes a source of, with each faulty script beside the right one."""
    texts = {p.stem: p.read_text(encoding="utf-8") for p in (ROOT / SCRIPTS).glob("*.lua")}
    right = {name: put_in(texts, name) for name in texts}
    variants = {}
    for fault in faults:
        name = fault.file.removeprefix(SCRIPTS).removesuffix(".lua")
        faulty = dict(texts)
        faulty[name] = fault.pattern.sub(lambda _: seeded.faulty(fault), texts[name], count=1)
        for each in texts:
            made = put_in(faulty, each)
            if made != right[each]:
                variants.setdefault(each, []).append((fault, made))

    def choice(match):
        name = match[1]
        chosen = "".join(f"  if ({seeded.asks(f)}) return {literal(made)};\n" for f, made in variants.get(name, ()))
        return chosen + f"  return {literal(right[name])};"

    made = re.sub(r'  return \{R"=lua=\(@HOLDFAST_(\w+)_TEXT@\).*?\};', choice, template)
    return '#include "../../source/mutant.hpp"\n' + made


def put_in(texts, name):
    """As cmake/holdfast-redis.cmake does: some have others inside."""
    text, before = texts[name], None
    while text != before:
        text, before = re.sub(r"@(\w+)\.lua@", lambda m: texts[m[1]], text), text
    return text


def literal(text):
    # The compiler takes long literals, but other tools do not: in pieces.
    pieces = [text[i:i + 8000] for i in range(0, len(text), 8000)]
    sha = hashlib.sha1(text.encode()).hexdigest()
    return "{" + "\n".join(f'R"=lua=({p})=lua="' for p in pieces) + f', "{sha}"}}'
