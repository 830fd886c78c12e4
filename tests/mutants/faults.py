"""The seeded faults: reading them, checking that each still fits its source, and writing sources that have all of them."""
import dataclasses
import fnmatch
import pathlib
import re

import scripts

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 60


class Broken(Exception):
    """An entry that says nothing, or that its source has left behind."""


@dataclasses.dataclass
class Fault:
    area: str
    name: str
    where: str  # the line of its entry
    rule: str = ""
    file: str = ""
    tests: list = dataclasses.field(default_factory=list)  # (program, filter), in the order in which they are run
    seconds: int = SECONDS
    form: str = ""
    survives: str = ""
    find: list = dataclasses.field(default_factory=list)
    replace: list = dataclasses.field(default_factory=list)

    @property
    def id(self):
        return f"{self.area}/{self.name}"

    @property
    def number(self):
        """FNV-1a of the name, as mutant.hpp computes it: a new fault changes no file but its own."""
        number = 0x811C9DC5
        for byte in self.id.encode():
            number = (number ^ byte) * 0x01000193 & 0xFFFFFFFF
        return number

    @property
    def pattern(self):
        """What it replaces, whatever the white space: formatting is no change."""
        made, before = "", ""
        for word in re.findall(r"\w+|[^\w\s]", "\n".join(self.find)):
            apart = r"\s+" if re.match(r"\w", before) and re.match(r"\w", word) else r"\s*"
            made += (apart if before else r"\b" if re.match(r"\w", word) else "") + re.escape(word)
            before = word
        return re.compile(made + (r"\b" if re.match(r"\w", before) else ""))


# ---- reading -----------------------------------------------------------------------------------------------------

def read(folder=HERE):
    faults = []
    for file in sorted(folder.glob("*.faults")):
        faults += read_area(file)
    known = {}
    for fault in faults:
        same = known.setdefault(fault.number, fault)
        if same is not fault:
            raise Broken(f"{fault.where}: {fault.id} is there already, or has the number of {same.id}: give it another name")
    return faults


def read_area(file):
    faults, tests = [], []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        where = f"tests/mutants/{file.name}:{number}"
        word, _, rest = line.partition(" ")
        fault = faults[-1] if faults else None
        if not line.strip() or word == "#":
            continue
        if word == "fault":
            faults.append(Fault(file.stem, rest.partition("#")[0].strip(), where))
        elif word == "by" and fault is None:
            tests.append(test_of(rest, where))
        elif fault is None:
            raise Broken(f"{where}: before the first fault there are comments and the tests of those that name none")
        elif word == "by":
            fault.tests.append(test_of(rest, where))
        elif word in ("-", "+"):
            (fault.find if word == "-" else fault.replace).append(rest)
        elif word == "within":
            fault.seconds = int(rest)
        elif word in ("rule", "survives"):
            setattr(fault, word, (getattr(fault, word) + " " + rest).strip())
        elif word in ("in", "as"):
            setattr(fault, {"in": "file", "as": "form"}[word], rest.strip())
        else:
            raise Broken(f"{where}: '{word}' is none of fault, rule, in, by, as, within, survives, - and +")
    for fault in faults:
        fault.tests = fault.tests or tests
        complete(fault)
    return faults


def test_of(text, where):
    program, _, pattern = text.strip().partition(" ")
    if not pattern.strip():
        raise Broken(f"{where}: a test program and a filter of GoogleTest, as in: by engine wait_loop.*")
    return program, pattern.strip()


def complete(fault):
    parts = {"rule": fault.rule, "file (in)": fault.file, "tests (by)": fault.tests, "line that it replaces (-)": fault.find}
    for what, said in parts.items():
        if not said:
            raise Broken(f"{fault.where}: {fault.id} has no {what}")
    if not fault.form:
        last = fault.find[-1].rstrip()
        fault.form = "text" if fault.file.endswith(".lua") else "statement" if last.endswith((";", "}")) else "expression"
    if fault.form not in ("text", "statement", "expression"):
        raise Broken(f"{fault.where}: a fault is a statement, an expression, or (in a script) text")


# ---- checking ----------------------------------------------------------------------------------------------------

def problems(faults, root=ROOT):
    """What is wrong with them, as (fault, sentence)."""
    sources, known, put_together = {}, tests_of(root), None
    for fault in faults:
        if fault.file not in sources:
            path = root / fault.file
            sources[fault.file] = path.read_text(encoding="utf-8") if path.is_file() else None
        text = sources[fault.file]
        if text is None:
            yield fault, f"{fault.file} is not there any more"
            continue
        times = len(fault.pattern.findall(text))
        if times != 1:
            yield fault, f"what it replaces is {times} times in {fault.file}: it has to be there once"
        elif cannot := why_no_switch(fault, text):
            yield fault, cannot
        elif fault.form == "text":
            put_together = put_together or scripts.Scripts(root)
            if cannot := put_together.problem(fault):
                yield fault, cannot
        for program, pattern in fault.tests:
            yield from ((fault, f"no test of {program} matches {one}") for one in unmatched(known.get(program), pattern))
    for file in {f.file for f in faults if sources.get(f.file)}:
        try:
            spans([f for f in faults if f.file == file and f.pattern.search(sources[file])], sources[file])
        except Broken as why:
            yield next(f for f in faults if f.file == file), str(why)


def cuts_a_string(fault, text):
    literal = r"""'(?:\\.|[^'\\\n])'|"(?:\\.|[^"\\\n])*\""""
    if any('"' in re.sub(literal, "", "\n".join(lines)) for lines in (fault.find, fault.replace)):
        return True
    at = fault.pattern.search(text)
    begins, ends = text[: at.start()].rstrip().endswith('"'), text[at.end() :].lstrip().startswith('"')
    return begins and at[0].startswith('"') or ends and at[0].endswith('"')


def why_no_switch(fault, text):
    """What the compiler would say only after half an hour, or never: a declaration would end with its branch of the switch."""
    before = re.sub(r"//[^\n]*", "", text[: fault.pattern.search(text).start()]).rstrip()
    word = re.search(r"\w+$", before)
    if fault.form == "statement" and re.match(r"(const|auto|static)\b", fault.find[0].strip()):
        return "a declaration cannot be put into a switch: replace its initializer, as an expression"
    goes_on = re.match(r"else\b", fault.find[0].strip())
    if fault.form == "statement" and (
            goes_on or not before.endswith((";", "{", "}", ")", ":")) and not (word and word[0] == "else")):
        return "it begins in the middle of a statement"
    if fault.form == "statement" and before.endswith(")") and count_of_statements(fault.find) > 1:
        return "only its first statement is under the condition before it, and the switch would be as a whole: replace the condition, too"
    found = "\n".join(fault.find).rstrip()
    # The end of the block around it may be the last that it quotes: the branch then ends there, and the block with the branch.
    if fault.form != "text" and not (any(map(in_one_block, (found, found.removesuffix("}")))) and in_one_block(faulty(fault))):
        return "one side ends in another block than it begins in"
    if fault.form != "text" and cuts_a_string(fault, text):
        return "it begins or ends in a string literal, or between two that are one"
    if fault.form == "expression" and (before.endswith("]") or word and word[0] not in ("return", "case", "throw", "co_return")):
        return "it begins in the middle of an expression"
    if fault.form == "expression" and any(is_no_expression(lines) for lines in (fault.find, fault.replace)):
        return "neither side may begin or end in the middle of an expression, or be left out"
    if fault.form == "statement" and (name := declared_and_used_later(fault, text)):
        return f"'{name}' is declared in it and used behind it: the declaration would end with its branch of the switch"
    line = text[text.rfind("\n", 0, fault.pattern.search(text).start()) + 1 : fault.pattern.search(text).end()]
    if re.match(r"\s*(static |inline )*constexpr\b", line):
        return "a constexpr cannot ask which fault is on: replace it where it is used"
    return ""


def count_of_statements(lines):
    """One block of a condition's is one."""
    depth, count, whole = 0, 0, "\n".join(lines).strip()
    for at, sign in enumerate(whole):
        depth += {"{": 1, "(": 1, "}": -1, ")": -1}.get(sign, 0)
        ends = sign == ";" or sign == "}" and not re.match(r"\s*(else\b|[;,)])", whole[at + 1:])
        count += depth == 0 and ends
    return count


NO_TYPE = r"(?!(?:return|co_return|throw|delete|else|case|using)\b)"
DECLARES = re.compile(NO_TYPE + r"(?:const\s+)?[\w:]+(?:<[^;()]*>)?[&*]*\s+[&*]?(\w+)\s*[={;(]")


def declared_and_used_later(fault, text):
    """The name of a variable that lies beside what is replaced, not inside, and that what follows in its block needs."""
    depth, names = 0, []
    for line in fault.find:
        names += [m[1] for m in [DECLARES.match(line.strip())] if m and depth == 0]
        depth += line.count("{") - line.count("}")
    rest = text[fault.pattern.search(text).end():]
    depth = 0
    for at, sign in enumerate(rest):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if depth < 0:
            rest = rest[:at]
            break
    return next((name for name in names if re.search(rf"\b{name}\b", rest)), "")


def in_one_block(code):
    depth = 0
    for bracket in re.findall(r"[{}]", re.sub(r'"(\\.|[^"\\])*"|\'.\'|//.*', "", code)):
        depth += 1 if bracket == "{" else -1
        if depth < 0:
            return False
    return depth == 0


def is_no_expression(lines):
    said = " ".join(lines).strip()
    begins = re.match(r"(if|while|for|return)\b|[.,{}+/%<>=?|]|:(?!:)|&&", said)
    ends = re.search(r"[,{(=|&*/%<?:!]$|(?<!\+)\+$|(?<!-)-$", said)
    return not said or bool(begins or ends) or "//" in said


def tests_of(root):
    """For each test program the tests whose names stand in its folder."""
    found = {}
    for file in sorted((root / "tests").rglob("*_test.cpp")):
        program = "_".join(file.parent.relative_to(root / "tests").parts)
        text = file.read_text(encoding="utf-8")
        found.setdefault(program, set()).update(
            f"{s}.{n}" for s, n in re.findall(r"^\s*(?:TYPED_)?TEST(?:_F|_P)?\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)", text, re.M))
    for file in (root / "tests" / "c").glob("*.c"):  # the rules of a program in C, on the store "memory"
        found.setdefault("c", set()).update(f"c.memory_{n}" for n in re.findall(r"\bRULE\((\w+)\)", file.read_text(encoding="utf-8")))
    return found


def unmatched(tests, pattern):
    if tests is None:
        return [pattern]
    wanted = pattern.partition("-")[0].split(":")
    missing = []
    for one in wanted:
        # instance/suite.rule/store__primitive: only what stands in the middle is in the source
        parts = one.split("/")
        middle = next((p for p in parts if "." in p), one if one.startswith("*memory_") and "__" not in one else "*")
        if not any(fnmatch.fnmatchcase(test, middle) for test in tests):
            missing.append(one)
    return missing


# ---- writing -----------------------------------------------------------------------------------------------------

def spans(faults, text):
    """(begin, end, faults) for each place, the outer before the inner."""
    places = {}
    for fault in faults:
        match = fault.pattern.search(text)
        places.setdefault((match.start(), match.end()), []).append(fault)
    found = sorted((b, -e, those) for (b, e), those in places.items())
    result = [(b, -e, those) for b, e, those in found]
    for i, (b, e, those) in enumerate(result):
        for other_b, other_e, others in result[i + 1:]:
            if other_b < e < other_e:
                raise Broken(f"{those[0].where}: {those[0].id} begins before {others[0].id} and ends inside of it")
        if len({f.form for f in those}) > 1:
            raise Broken(f"{those[0].where}: a statement and an expression replace the same place")
    return result


def with_faults(text, faults, header):
    """The source with all of them, each behind its switch."""
    return f'#include "{header}"\n' + render(text, 0, len(text), spans(faults, text))


def render(text, begin, end, places):
    out, at = "", begin
    while places:
        first, last, faults = places[0]
        inner = [p for p in places[1:] if p[0] < last]
        out += text[at:first] + switched(faults, render(text, first, last, inner))
        at, places = last, places[1 + len(inner):]
    return out + text[at:end]


def switched(faults, original):
    if faults[0].form == "expression":
        return "(" + "".join(f"{asks(f)} ? ({faulty(f)}) : " for f in faults) + f"({original}))"
    return "".join(f"if ({asks(f)}) {{ {faulty(f)} }} else " for f in faults) + f"{{ {original} }}"


def asks(fault):
    return f"::holdfast::mutant(0x{fault.number:08x}U /* {fault.id} */)"


def faulty(fault):
    return "\n".join(fault.replace)


HEADER = """#pragma once
// Written by tests/mutants: HOLDFAST_MUTANT names the fault that is on.
#include <fcntl.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

namespace holdfast {

inline std::uint32_t chosen_mutant() noexcept {
  static const std::uint32_t chosen = [] {
    std::uint32_t number = 0x811c9dc5U;
    const char* name = std::getenv("HOLDFAST_MUTANT");
    if (name == nullptr || *name == 0) return 0U;
    for (; *name != 0; ++name) number = (number ^ static_cast<unsigned char>(*name)) * 0x01000193U;
    return number;
  }();
  return chosen;
}
// A file of 1 MiB with a byte for each switch that was asked (tests/mutants/simulate.py).
inline unsigned char* reached_mutants() noexcept {
  static unsigned char* const marks = []() -> unsigned char* {
    const char* name = std::getenv("HOLDFAST_MUTANTS_REACHED");
    const int file = name == nullptr ? -1 : ::open(name, O_RDWR | O_CLOEXEC);
    if (file < 0) return nullptr;
    void* const at = ::mmap(nullptr, 1U << 20U, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return at == MAP_FAILED ? nullptr : static_cast<unsigned char*>(at);
  }();
  return marks;
}
inline bool mutant(std::uint32_t number) noexcept {
  if (auto* const marks = reached_mutants(); marks != nullptr) marks[number >> 12U] = 1;
  return chosen_mutant() == number;
}

}  // namespace holdfast
"""
