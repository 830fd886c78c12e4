"""Whether each fault compiles with its switch: each changed source is compiled alone, and the tests are not."""
import re
import subprocess

INCLUDES = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.M)
ERROR = re.compile(r"^(\S+?):(\d+):\d+: (?:fatal )?error: (.*)$", re.M)
SWITCH = re.compile(r"mutant\(0x[0-9a-f]+U /\* (\S+) \*/\)")
PLACES = ("include", "src", "tool")


class Tree:
    def __init__(self, root):
        self.root = root
        self.includes = {}
        for place in PLACES:
            for file in sorted((root / place).rglob("*.[ch]pp")):
                name = file.relative_to(root).as_posix()
                self.includes[name] = set(INCLUDES.findall(file.read_text(encoding="utf-8")))

    def sources_of(self, file):
        """The file itself, or a source that reads this header, as near as possible."""
        seen, now = {file}, [file]
        while now and not any(f.endswith(".cpp") for f in now):
            names = {f.partition("/")[2] for f in now} | set(now)
            now = [f for f, read in self.includes.items() if f not in seen and read & names]
            seen.update(now)
        return next((f for f in now if f.endswith(".cpp")), None)


def objects(build, sources):
    """The targets that compile them; a source that is not in this build has none."""
    said = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"], check=True, capture_output=True, text=True).stdout
    all_of_them = [line.rpartition(":")[0] for line in said.splitlines()]
    found = {}
    for target in all_of_them:
        name = re.sub(r"^(?:.*/)?CMakeFiles/[^/]+\.dir/", "", target)
        if target.endswith(".cpp.o"):
            folder = target.partition("CMakeFiles/")[0]
            found.setdefault(folder + name.removesuffix(".o"), target)
    return [found[s] for s in sorted(sources) if s in found], sorted(s for s in sources if s not in found)


def fault_at(root, file, line):
    """The one whose text is there: the last that begins at the line or before it."""
    path = root / file
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[:line] if path.is_file() else []
    names = SWITCH.findall("\n".join(lines))
    return names[-1] if names else ""


def problems(root, build, faults, jobs):
    """What the compiler says, as (fault, sentence); and the sources that are not in this build."""
    tree = Tree(root)
    sources = {file: tree.sources_of(file) for file in {f.file for f in faults if f.form != "text"}}
    targets, missing = objects(build, {s for s in sources.values() if s})
    missing += sorted(file for file, source in sources.items() if not source)
    if not targets:
        return [], missing
    ended = subprocess.run(["ninja", "-C", build, "-k", "0", "-j", str(jobs), *targets], check=False, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, errors="replace")
    found = []
    for file, line, what in ERROR.findall(ended.stdout):
        name = (build / file).resolve() if not file.startswith("/") else type(root)(file)
        shown = name.relative_to(root.resolve()) if name.is_relative_to(root.resolve()) else name
        found.append((fault_at(root, shown, int(line)), f"{shown}:{line}: {what}"))
    if ended.returncode and not found:
        found.append(("", "the build failed:\n" + ended.stdout[-2000:]))
    return found, missing
