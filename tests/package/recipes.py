"""recipes.py INSTALLED_LIBRARIES WORK_DIR [CMAKE_OPTION...]: the Conan recipe and the vcpkg port, with stand-ins for the programs that run
them: holdfast is configured from what they copy, with the options that they set. What they name must be there. vcpkg.json has only fields
that vcpkg knows."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARIES, WORK, COMMON = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
LEFT_OUT = {"zookeeper"}  # neither has its client
STORES = {path.name for path in (ROOT / "src/store").iterdir() if (ROOT / f"src/drivers/{path.name}.cpp").exists()} - LEFT_OUT - {"memory"}


def check(holds, otherwise):
    if not holds:
        sys.exit(f"recipes: {otherwise}")


def configure(source, build, options):
    """With these options, and no store is left to chance: each is ON or OFF as the options say."""
    shutil.rmtree(build, ignore_errors=True)
    how = subprocess.run(["cmake", "-S", source, "-B", build, *COMMON, *options], capture_output=True, text=True)
    check(how.returncode == 0, f"{source} is not configured: {how.stderr}")
    check("Manually-specified variables were not used" not in how.stderr, how.stderr)
    cache = dict(re.findall(r"^(HOLDFAST_\w+):\w+=(.*)$", (build / "CMakeCache.txt").read_text(encoding="utf-8"), re.M))
    for store in STORES | LEFT_OUT:
        check(cache[f"HOLDFAST_{store.upper()}"] in ("ON", "OFF"), f"{store} is neither ON nor OFF")
    for part in ("TOOL", "TESTS", "BENCH", "EXAMPLES", "C"):
        check(cache[f"HOLDFAST_BUILD_{part}"] == "OFF", f"HOLDFAST_BUILD_{part} is not OFF")
    return {store for store in STORES if cache[f"HOLDFAST_{store.upper()}"] == "ON"}


class Anything:
    """A stand-in for what a recipe only calls."""

    def __init__(self, *_):
        self.variables = {}

    def __getattr__(self, name):
        return lambda *_: None


class Parts(dict):
    def __missing__(self, name):
        self[name] = types.SimpleNamespace(libs=[], requires=[], system_libs=[])
        return self[name]


def copy(_, pattern, source, target):
    check(pattern == "*" and source != ROOT, "Conan's copy walks through the folder that it is given: give it no more than is copied")
    shutil.copytree(source, target)


def module(name, **names):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(names)


def conan():
    made = []

    class Toolchain(Anything):
        def __init__(self, *_):
            super().__init__()
            made.append(self)
    module("conan", ConanFile=type("ConanFile", (), {}))
    module("conan.errors", ConanInvalidConfiguration=RuntimeError)
    module("conan.tools")
    module("conan.tools.build", check_min_cppstd=Anything)
    module("conan.tools.cmake", CMake=Anything, CMakeDeps=Anything, CMakeToolchain=Toolchain, cmake_layout=Anything)
    module("conan.tools.files", copy=copy, rmdir=Anything)
    module("conan.tools.gnu", PkgConfigDeps=Anything)
    file = ROOT / "packaging/conan/conanfile.py"
    recipe_module = types.ModuleType("conanfile")
    exec(compile(file.read_text(encoding="utf-8"), file, "exec"), vars(recipe_module))  # as Conan does; no folder of compiled files
    kind = recipe_module.Holdfast
    check(set(kind.options) == STORES, f"the Conan recipe has the stores {sorted(kind.options)}, and src has {sorted(STORES)}")
    clients = {client.split("/")[0] for store in recipe_module.STORES.values() for client in store}
    of_clients = {option.split("/")[0] for option in kind.default_options if ":" in option}
    check(of_clients <= clients, f"the Conan recipe sets options of {sorted(of_clients)}, and requires {sorted(clients)}")
    for chosen in (dict.fromkeys(STORES, True), kind.default_options, dict.fromkeys(STORES, False)):
        recipe, required = kind(), []
        recipe.options = types.SimpleNamespace(get_safe=chosen.get, **chosen)
        recipe.recipe_folder, recipe.export_sources_folder = str(file.parent), str(WORK / "exported")
        recipe.requires, recipe.tool_requires = required.append, lambda _: None
        recipe.cpp_info = types.SimpleNamespace(components=Parts())
        shutil.rmtree(WORK / "exported", ignore_errors=True)
        (WORK / "exported").mkdir()
        recipe.export_sources()
        recipe.requirements()
        recipe.build_requirements()
        recipe.generate()
        built = configure(WORK / "exported", WORK / "conan", [f"-D{name}={value}" for name, value in made[-1].variables.items()])
        check(built == {store for store in STORES if chosen[store]}, f"built {built}, but the options were {chosen}")
        recipe.package_info()
        parts = recipe.cpp_info.components
        used = {need for part in parts.values() for need in part.requires}
        check(used <= set(parts) | {need for need in used if "::" in need}, f"a component requires one that is not there: {used}")
        packages = {need.split("/")[0] for need in required}
        linked = {need.split("::")[0] for need in used if "::" in need}
        check(linked == packages, f"components use {used}, and the recipe requires {required}")
        libraries = {library for part in parts.values() for library in part.libs}
        expected = {"holdfast", "holdfast-core"} | {f"holdfast-{store}" for store in built}
        check(libraries == expected, f"the recipe names the libraries {libraries}")
        for library in libraries:
            check((LIBRARIES / f"lib{library}.a").exists(), f"there is no library {library}")


STAND_INS = """
cmake_minimum_required(VERSION 3.23)
set(FEATURES {features})
set(CURRENT_PORT_DIR "{port}")
set(CURRENT_PACKAGES_DIR "{work}/packages")
function(vcpkg_find_acquire_program name)
  set(${{name}} /usr/bin/pkg-config PARENT_SCOPE)
endfunction()
function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS;MAYBE_UNUSED_VARIABLES")
  list(FILTER arg_OPTIONS EXCLUDE REGEX "PKG_CONFIG_EXECUTABLE|GrpcClient_PROTOC")
  string(REPLACE ";" "\\n" options "${{arg_OPTIONS}}")
  file(WRITE "{work}/options" "${{arg_SOURCE_PATH}}\\n${{options}}")
endfunction()
function(vcpkg_cmake_install)
endfunction()
function(vcpkg_cmake_config_fixup)
endfunction()
function(vcpkg_fixup_pkgconfig)
endfunction()
function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  if(NOT EXISTS "${{arg_FILE_LIST}}")
    message(FATAL_ERROR "there is no ${{arg_FILE_LIST}}")
  endif()
endfunction()
include("{port}/portfile.cmake")
"""


# The fields that vcpkg documents for a manifest, a feature and a dependency, but for those of a project that is no port. vcpkg refuses
# any other field; one that begins with $ is a comment.
OF_A_PORT = {"name", "version", "version-semver", "version-date", "version-string", "port-version", "maintainers", "summary", "description",
             "homepage", "documentation", "license", "supports", "dependencies", "features", "default-features"}
OF_A_FEATURE = {"description", "supports", "dependencies"}
OF_A_DEPENDENCY = {"name", "features", "host", "default-features", "platform", "version>="}
IDENTIFIER = re.compile(r"(?!(prn|aux|nul|con|lpt[1-9]|com[1-9]|core|default)$)[a-z0-9]+(-[a-z0-9]+)*")


def check_fields(what, entry, known, required):
    check(isinstance(entry, dict), f"vcpkg.json: {what} is no object")
    fields = {field for field in entry if not field.startswith("$")}
    check(fields <= known, f"vcpkg.json: {what} has fields that vcpkg does not know: {sorted(fields - known)}")
    check(required <= fields, f"vcpkg.json: {what} lacks {sorted(required - fields)}")


def check_dependencies(what, entry):
    for needed in entry.get("dependencies", []):
        if isinstance(needed, dict):
            check_fields(f"a dependency of {what}", needed, OF_A_DEPENDENCY, {"name"})
            check(isinstance(needed.get("host", False), bool), f"vcpkg.json: host of a dependency of {what} is neither true nor false")
            needed = needed["name"]
        check(IDENTIFIER.fullmatch(needed), f"vcpkg.json: {what} depends on {needed}, which is no name of a port")


def check_manifest(manifest):
    check_fields("the port", manifest, OF_A_PORT, {"name", "version", "description", "license"})
    check(len([field for field in manifest if field.startswith("version")]) == 1, "vcpkg.json: a port has one version")
    check(re.fullmatch(r"\d+(\.\d+)*", manifest["version"]), f"vcpkg.json: {manifest['version']} is no version")
    check(IDENTIFIER.fullmatch(manifest["name"]), f"vcpkg.json: {manifest['name']} is no name of a port")
    check_dependencies("the port", manifest)
    for name, feature in manifest["features"].items():
        check(IDENTIFIER.fullmatch(name), f"vcpkg.json: {name} is no name of a feature")
        check_fields(name, feature, OF_A_FEATURE, {"description"})
        check_dependencies(name, feature)
    check(set(manifest["default-features"]) <= set(manifest["features"]), "vcpkg.json: a default feature is none of the features")


def vcpkg():
    port = ROOT / "packaging/vcpkg"
    manifest = json.loads((port / "vcpkg.json").read_text(encoding="utf-8"))
    check_manifest(manifest)
    features = set(manifest["features"])
    check(features == STORES, f"the port has the features {sorted(features)}, and src has {sorted(STORES)}")
    for chosen in (features, set(manifest["default-features"])):
        (WORK / "port.cmake").write_text(STAND_INS.format(features=" ".join(sorted(chosen)), port=port, work=WORK), encoding="utf-8")
        subprocess.run(["cmake", "-P", WORK / "port.cmake"], check=True)
        source, *options = (WORK / "options").read_text(encoding="utf-8").splitlines()
        check(configure(source, WORK / "vcpkg", options) == chosen, f"another choice of stores than {chosen}")


WORK.mkdir(parents=True, exist_ok=True)
conan()
vcpkg()
