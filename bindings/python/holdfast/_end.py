"""A program that ends with a lease in its hands gives it back."""
from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading

from . import _waits
from ._abi import functions


def _close_all() -> None:
    _waits.forget_idle()  # what begins anew after this, in another handler of atexit, needs new ones
    functions.close_all()


def _is_main_interpreter() -> bool:
    here, main = ctypes.pythonapi.PyInterpreterState_Get, ctypes.pythonapi.PyInterpreterState_Main
    here.restype = main.restype = ctypes.c_void_p
    return bool(here() == main())


def _close_all_in_a_child_of_multiprocessing() -> None:
    """It ends with os._exit(), and so without atexit. What is registered there before it begins is forgotten."""
    util = sys.modules.get("multiprocessing.util")
    if util is None:
        return
    finalize = util.Finalize

    def end() -> None:
        getattr(threading, "_shutdown")()  # as multiprocessing does next: threads still work under their leases
        _close_all()

    def register(_: object) -> None:
        finalize(None, end, exitpriority=-100)
    util.register_after_fork(functions, register)
    register(None)


# The library's handles are those of the process: a subinterpreter that ends leaves those of the others alone.
if _is_main_interpreter():
    atexit.register(_close_all)
    _close_all_in_a_child_of_multiprocessing()
    os.register_at_fork(after_in_child=_close_all_in_a_child_of_multiprocessing)
