"""The scripts that Redis runs, put together as CMake does it, and whether Lua takes them."""
import ctypes
import functools
import pathlib
import re
import subprocess

FOLDER = "src/store/redis/"
TEMPLATE = "cmake/redis-scripts.cpp.in"
# In the template: where the program stands that is made of a script.
PROGRAM = re.compile(r'  return \{R"=lua=\(@HOLDFAST_(\w+)_TEXT@\).*?\};')
SHARDED = "_sharded"


class Scripts:
    def __init__(self, root):
        self.texts = {p.stem: p.read_text(encoding="utf-8") for p in (root / FOLDER).glob("*.lua")}
        self.words = words_of_the_kernels(root)
        programs = PROGRAM.findall((root / TEMPLATE).read_text(encoding="utf-8"))
        self.right = {name: self.whole(name, self.texts) for name in programs}

    def whole(self, name, texts):
        """Some have others inside, and all say what they have in common with the kernels by its name there. Those for a
        cluster differ in how they publish."""
        if name.endswith(SHARDED):
            texts, name = {**texts, "publish": texts["publish" + SHARDED]}, name.removesuffix(SHARDED)
        text, before = texts[name], None
        while text != before:
            text, before = re.sub(r"@(\w+)\.lua@", lambda m: texts[m[1]], text), text
        return re.sub(r"@(\w+)@", lambda m: self.words.get(m[1], m[0]), text)

    def changed_by(self, fault):
        """The programs that a fault changes, as {name: text}."""
        name = pathlib.PurePath(fault.file).stem
        faulty = {**self.texts, name: fault.pattern.sub(lambda _: "\n".join(fault.replace), self.texts[name], count=1)}
        made = {program: self.whole(program, faulty) for program in self.right}
        return {program: text for program, text in made.items() if text != self.right[program]}

    def problem(self, fault):
        changed = self.changed_by(fault)
        if not changed:
            return "it changes no script"
        for program, text in changed.items():
            if why := why_no_lua(text, program):
                return f"with it, Lua does not take the script: {why}"
        return ""


def words_of_the_kernels(root):
    """Each word with its value, as holdfast_kernel_words finds them."""
    said = subprocess.run(["cmake", f"-DPROJECT_SOURCE_DIR={root}", "-P", pathlib.Path(__file__).with_name("words.cmake")],
                          check=True, stdout=subprocess.PIPE, text=True).stdout
    return dict(line.split(" ", 1) for line in said.splitlines() if line.strip())


@functools.cache
def lua():
    """The Lua that Redis has inside."""
    library = ctypes.CDLL("liblua5.1.so.0")
    library.luaL_newstate.restype = ctypes.c_void_p
    library.luaL_loadbuffer.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p]
    library.lua_tolstring.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    library.lua_tolstring.restype = ctypes.c_char_p
    library.lua_close.argtypes = [ctypes.c_void_p]
    return library


def why_no_lua(text, name):
    """What Lua says when it only reads the script; nothing if it takes it."""
    code, state = text.encode(), lua().luaL_newstate()
    try:
        failed = lua().luaL_loadbuffer(state, code, len(code), f"={name}".encode())
        return lua().lua_tolstring(state, -1, None).decode() if failed else ""
    finally:
        lua().lua_close(state)
