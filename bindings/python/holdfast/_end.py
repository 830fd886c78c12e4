"""Releases all leases when the program ends."""
from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading

from . import _abi, _waits
from ._abi import functions


def _close_all() -> None:
    _abi.program_ends = True
    _waits.forget_idle()  # a wait that another atexit handler begins after this needs a new queue
    functions.close_all()


def _is_main_interpreter() -> bool:
    here, main = ctypes.pythonapi.PyInterpreterState_Get, ctypes.pythonapi.PyInterpreterState_Main
    here.restype = main.restype = ctypes.c_void_p
    return bool(here() == main())


def _close_all_in_a_child_of_multiprocessing() -> None:
    """Such a child ends with os._exit(), which runs no atexit handlers. multiprocessing drops finalizers that were registered before
    the child began, so each child registers its own."""
    util = sys.modules.get("multiprocessing.util")
    if util is None:
        return
    finalize = util.Finalize

    def end() -> None:
        getattr(threading, "_shutdown")()  # multiprocessing does this next; until then, threads may still work under their leases
        _close_all()

    def register(_: object) -> None:
        finalize(None, end, exitpriority=-100)
    util.register_after_fork(functions, register)
    register(None)


# The handles belong to the whole process, so only the main interpreter closes them at its end.
if _is_main_interpreter():
    atexit.register(_close_all)
    _close_all_in_a_child_of_multiprocessing()
    os.register_at_fork(after_in_child=_close_all_in_a_child_of_multiprocessing)
