"""A copy of the source tree in which every fault is there, behind its switch. The real sources are left alone."""
import hashlib
import os
import shutil

import faults as seeded
import scripts
from faults import ROOT

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
            if path.as_posix() == scripts.TEMPLATE:
                text = with_faulty_scripts([f for f in faults if f.form == "text"], text)
            put(target / path, text)
            shutil.copymode(file, target / path)  # CMake calls some of them
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

def with_faulty_scripts(faults, template):
    """The template that CMake makes a source of, with each faulty script beside the right one."""
    put_together = scripts.Scripts(ROOT)
    variants = {}
    for fault in faults:
        for program, text in put_together.changed_by(fault).items():
            variants.setdefault(program, []).append((fault, text))

    def choice(match):
        name = match[1]
        chosen = "".join(f"  if ({seeded.asks(f)}) return {literal(made)};\n" for f, made in variants.get(name, ()))
        return chosen + f"  return {literal(put_together.right[name])};"

    return '#include "../../source/mutant.hpp"\n' + scripts.PROGRAM.sub(choice, template)


def literal(text):
    # The compiler takes long literals, but other tools do not: in pieces.
    pieces = [text[i:i + 8000] for i in range(0, len(text), 8000)]
    sha = hashlib.sha1(text.encode()).hexdigest()
    return "{" + "\n".join(f'R"=lua=({p})=lua="' for p in pieces) + f', "{sha}"}}'
