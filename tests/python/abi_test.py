"""The package matches the C header."""
import asyncio
import contextlib
import ctypes
import inspect
import os
import re
import subprocess
import sys
import unittest.mock

import holdfast
from holdfast import _abi, _waits
from helpers import on_another_thread
from stores import REPOSITORY, URLS, OnAStore

sys.path.insert(0, str(REPOSITORY / "packaging/abi"))
import abi  # noqa: E402

#: C functions that the package does not call, with the reason.
WITHOUT = {
    "barrier_arrive": "barrier_arrive_within has a limit, too", "barrier_arrive_and_drop": "so has barrier_arrive_and_drop_within",
    "queue_next": "queue_next_decision also returns the decision", "words": "the class of the exception names the code"}
NUMBERS = {"int": ctypes.c_int, "int64_t": ctypes.c_int64, "uint32_t": ctypes.c_uint32, "uint64_t": ctypes.c_uint64}


def functions_of_the_header():
    """{name without prefix: the types of its parameters}"""
    return {name.removeprefix("holdfast_"): takes for name, (_, takes) in abi.functions().items()}


class Layout(OnAStore):
    def test_structs_match_the_layout_of_the_c_header(self):
        told = subprocess.run([os.environ["HOLDFAST_C_RULES"], "--layout"], check=True, capture_output=True, text=True).stdout
        seen = set()
        for line in told.splitlines():
            struct, field, offset, size = line.split()
            ours = _abi.IN_C[struct.removeprefix("holdfast_")]
            seen.add(ours)
            if field == ".":
                self.assertEqual(ctypes.sizeof(ours), int(size), line)
            else:
                there = getattr(ours, field)
                self.assertEqual((there.offset, there.size), (int(offset), int(size)), line)
        self.assertEqual(seen, set(_abi.IN_C.values()))

    def test_the_tested_stores_are_memory_sqlite_and_redis(self):
        self.assertEqual(set(URLS), {"memory", "sqlite", "redis"})

    def test_each_function_of_the_c_header_is_called_or_listed_with_a_reason(self):
        source = "".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / "bindings/python/holdfast").glob("*.py"))
        called = set(re.findall(r"\bfunctions\.(\w+)|\b(?:_library|found)\.holdfast_(\w+)", source))
        called = {name for pair in called for name in pair if name}
        there = functions_of_the_header()
        self.assertGreater(len(there), 50)
        self.assertEqual(set(there) - called, set(WITHOUT))
        self.assertEqual(set(_abi._FUNCTIONS) - called, set(), "listed, and never called")

    def test_parameters_match_the_c_header(self):
        there = functions_of_the_header()
        for name, ours in _abi._FUNCTIONS.items():
            *takes, why = there[name]
            self.assertEqual(why, "holdfast_error*", name)
            theirs = [NUMBERS.get(one, ctypes.c_char_p if one == "const char*" else ctypes.c_void_p) for one in takes]
            self.assertEqual(ours, theirs, name)

    def test_functions_that_convert_no_argument_are_given_no_int(self):
        mutex, given = self.here.mutex("m"), []

        def recorded(name):
            function = getattr(_abi.functions, name)

            def and_call(*arguments):
                given.extend((name, type(one)) for one in arguments)
                return function(*arguments)
            return unittest.mock.patch.object(_abi.functions, name, and_call)

        async def on_a_loop():
            async with mutex:
                pass
            _waits.Loop.running().give_back((await mutex.acquire_async())._number)
        with contextlib.ExitStack() as stack:
            for name in _abi._UNCONVERTED:
                self.assertIsNone(getattr(_abi.functions, name).argtypes)
                stack.enter_context(recorded(name))
            with mutex:
                pass
            for timeout in (0, 30):
                mutex.acquire(timeout).release()
            on_another_thread(lambda: mutex.acquire().release())
            asyncio.run(on_a_loop())
        self.assertEqual({name for name, _ in given}, set(_abi._UNCONVERTED))
        self.assertEqual([one for one in given if issubclass(one[1], int)], [])

    def test_async_methods_have_the_parameters_of_the_blocking_methods(self):
        seen = 0
        for kind in vars(holdfast).values():
            for name, form in vars(kind).items() if inspect.isclass(kind) else ():
                if name.endswith("_async") and not name.startswith("_"):
                    seen += 1
                    other = getattr(kind, name.removesuffix("_async"))
                    self.assertEqual(list(inspect.signature(form).parameters), list(inspect.signature(other).parameters), form.__qualname__)
        self.assertGreater(seen, 9)
