"""installed_targets.py WORK_DIR [CMAKE_OPTION...]: after `make demo`, `make install` or `make package`, `cmake --install` finds all that
it installs. Their presets are configured, and nothing is built: the targets that the Makefile names must include each installed one."""
import json
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK, OPTIONS = pathlib.Path(sys.argv[1]), sys.argv[2:]
COMMANDS = ["demo", "install", "package"]


def read(reply, pattern):
    return json.loads(next(reply.glob(pattern)).read_text(encoding="utf-8"))


def configured(preset):
    """The first configuration of CMake's code model, and the folder with its parts."""
    build = WORK / preset
    shutil.rmtree(build, ignore_errors=True)
    query = build / ".cmake/api/v1/query/codemodel-v2"
    query.parent.mkdir(parents=True)
    query.touch()
    how = subprocess.run(["cmake", "--preset", preset, "-S", ROOT, "-B", build, *OPTIONS], cwd=ROOT, capture_output=True, text=True)
    if how.returncode:
        sys.exit(how.stdout + how.stderr)
    reply = build / ".cmake/api/v1/reply"
    return read(reply, "codemodel-v2-*.json")["configurations"][0], reply


def not_built(preset, names):
    """The installed targets that are not built with those of these names."""
    model, reply = configured(preset)
    targets = {target["id"]: read(reply, target["jsonFile"]) for target in model["targets"]}
    folders = [read(reply, folder["jsonFile"]) for folder in model["directories"]]
    installed = {one["targetId"] for folder in folders for one in folder["installers"] if one["type"] == "target"}
    built, todo = set(), [id for id, target in targets.items() if target["name"] in names]
    while todo:
        if (id := todo.pop()) not in built:
            built.add(id)
            todo += [needed["id"] for needed in targets[id].get("dependencies", [])]
    if not installed or not built:
        sys.exit(f"{preset}: {len(installed)} targets are installed, {len(built)} built")
    return sorted(targets[id]["name"] for id in installed - built)


typed = subprocess.run(["make", "-n", "-C", ROOT, *COMMANDS], capture_output=True, text=True, check=True).stdout
builds = set(re.findall(r"^scripts/build\.sh (\S+) (.+)$", typed, re.M))
if {preset for preset, _ in builds} != {"release", "package"}:
    sys.exit(f"make {' '.join(COMMANDS)} does not build the presets that are looked at here:\n{typed}")
wrong = [f"{preset}: building {names} does not build {target}"
         for preset, names in sorted(builds) for target in not_built(preset, names.split())]
sys.exit("\n".join(wrong) or None)
