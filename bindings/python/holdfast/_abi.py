"""The structs and functions of holdfast/holdfast.h for ctypes, and nothing else."""
from __future__ import annotations

import collections
import ctypes
import functools
import math
import numbers
import operator
import os
import pathlib
import threading
import typing
from ctypes import POINTER, c_char, c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint32, c_uint64, c_void_p

from . import errors

ABI = 0
NO_LIMIT = -1
ONE_TRY = 0
NEVER = -1
NO_EVENT = errors.TimedOut.code
LEASE_LOST = 2
HELD, SUSPECT, GONE = 1, 2, 3


_NUMBERS: typing.Final = (c_int, c_int32, c_int64, c_uint8, c_uint32, c_uint64)
_T = typing.TypeVar("_T")


def wrong(what: str, wanted: str, given: object) -> TypeError:
    """The text does not quote the argument, which may be a secret."""
    return TypeError(f"{what} must be {wanted}, and is of the type {type(given).__name__}")


def one_of(given: object, kind: type[_T], what: str) -> _T:
    """Returns the argument if it has that type, else raises TypeError."""
    if not isinstance(given, kind):
        raise wrong(what, f"of the type {kind.__name__}", given)
    return given


def _fitting(given: typing.Any, kind: typing.Any, what: str) -> int:
    """Raises if the number does not fit into the C type. ctypes would truncate it silently."""
    try:
        number = operator.index(given)
    except TypeError:
        raise wrong(what, "a whole number", given) from None
    if kind(number).value != number:
        raise errors.InvalidArgument(f"{what}: {number} is too large, or too small, to be passed on")
    return number


@functools.lru_cache(None)
def _kinds_of(struct: type[ctypes.Structure]) -> dict[str, typing.Any]:
    return {field[0]: field[1] for field in struct._fields_}


class Whole(ctypes.Structure):
    """A struct that checks its fields: numbers must fit, and a text must be bytes. ctypes would take a number for an address."""

    def __init__(self, **fields: typing.Any) -> None:
        kinds = _kinds_of(type(self))
        for name, given in fields.items():
            kind = kinds[name]
            if kind in _NUMBERS:
                fields[name] = _fitting(given, kind, name)
            elif kind is c_char_p and given is not None:
                one_of(given, bytes, name)
            elif getattr(kind, "_type_", None) in _NUMBERS:
                if len(given) > kind._length_:
                    raise errors.InvalidArgument(f"{name}: {len(given)} numbers are more than {kind._length_}")
                fields[name] = tuple(_fitting(one, kind._type_, f"{name}[{at}]") for at, one in enumerate(given))
        super().__init__(**fields)


class Sized(Whole):
    """A struct whose first field is its size."""
    size: int

    def __init__(self, **fields: typing.Any) -> None:
        if fields:
            super().__init__(**fields)
        self.size = ctypes.sizeof(self)


class ErrorText(Sized):
    _fields_ = [("size", c_uint32), ("code", c_int32), ("retryable", c_uint8), ("outcome_unknown", c_uint8), ("lease_gone", c_uint8),
                ("unused", c_uint8 * 5), ("operation", c_char * 64), ("name", c_char * 512), ("store", c_char * 1024),
                ("message", c_char * 4096)]


class Wait(Sized):
    _fields_ = [("size", c_uint32), ("unused", c_uint32), ("timeout_ns", c_int64), ("stop", c_void_p), ("queue", c_void_p),
                ("tag", c_uint64)]


class DecisionText(Sized):
    _fields_ = [("size", c_uint32), ("taken", c_uint32), ("wait_us", c_int64), ("limit", c_uint64), ("remaining", c_uint64),
                ("reset_us", c_int64), ("rule", c_char * 256), ("tokens", c_uint64), ("due_us", c_int64 * 16)]


class Event(Sized):
    _fields_ = [("size", c_uint32), ("kind", c_int32), ("tag", c_uint64), ("code", c_int32), ("unused", c_uint32), ("lease", c_void_p),
                ("number", c_uint64), ("wait_us", c_int64)]

    def __init__(self) -> None:
        super().__init__()
        self.decision = DecisionText()  # all zero except for a limiter's take


class SessionOptions(Sized):
    _fields_ = [("size", c_uint32), ("lock_order", c_uint8), ("find_deadlocks", c_uint8), ("unused", c_uint8 * 2),
                ("lease_ms", c_int64), ("store_timeout_ms", c_int64), ("name_prefix", c_char_p)]


class NameInfo(Sized):
    _fields_ = [("size", c_uint32), ("capacity", c_uint32), ("remaining", c_uint32), ("holders", c_uint32), ("waiters", c_uint32),
                ("unused", c_uint32), ("last_fence", c_uint64), ("kind", c_char * 32), ("holder", c_char * 16)]


class LeaseInfo(Sized):
    _fields_ = [("size", c_uint32), ("state", c_int32), ("fence", c_uint64), ("remaining_ns", c_int64), ("name", c_char * 512),
                ("short_id", c_char * 16)]


class LockOptions(Sized):
    _fields_ = [("size", c_uint32), ("no_renewal", c_uint8), ("unconfirmed_release", c_uint8), ("unused", c_uint8 * 2),
                ("lease_ms", c_int64), ("max_hold_ms", c_int64), ("local_time_us", c_int64), ("linger_us", c_int64),
                ("max_waiters", c_uint64), ("reason", c_char_p)]


class ElectionOptions(Sized):
    _fields_ = [("size", c_uint32), ("priority", c_int32), ("lease_ms", c_int64), ("note", c_char_p)]


class LeaderText(Sized):
    _fields_ = [("size", c_uint32), ("pid", c_uint32), ("term", c_uint64), ("after_gap", c_uint8), ("unused", c_uint8 * 7),
                ("note", c_char * 256), ("host", c_char * 256), ("program", c_char * 256)]


class RedlockOptions(Sized):
    _fields_ = [("size", c_uint32), ("unused", c_uint32), ("lease_ms", c_int64), ("node_timeout_ms", c_int64),
                ("trust_after_ms", c_int64), ("reason", c_char_p)]


class Member(Whole):
    _fields_ = [("lock", c_void_p), ("shared", c_uint32), ("permits", c_uint32)]


class RuleText(Whole):
    _fields_ = [("tokens", c_uint64), ("per_us", c_int64), ("burst", c_uint64), ("name", c_char_p), ("by", POINTER(c_char_p)),
                ("by_count", c_uint32), ("interval", c_uint32)]


class Part(Whole):
    _fields_ = [("part", c_char_p), ("value", c_char_p)]


#: The C name of each struct, for the test that compares the two.
IN_C: typing.Final[dict[str, type[ctypes.Structure]]] = {
    "error": ErrorText, "wait": Wait, "event": Event, "session_options": SessionOptions, "name_info": NameInfo,
    "lease_info": LeaseInfo, "lock_options": LockOptions, "election_options": ElectionOptions, "leader": LeaderText,
    "redlock_options": RedlockOptions, "member": Member, "rule": RuleText, "part": Part, "decision": DecisionText}

_h = c_void_p  # a handle, or the place for one
_s = c_char_p
_p = c_void_p  # by reference
# Without the last parameter, which is holdfast_error* everywhere.
_FUNCTIONS: typing.Final[dict[str, list[typing.Any]]] = {
    "close": [_h], "stop_open": [_p], "stop_request": [_h], "queue_open": [_p, _p],
    "queue_next_decision": [_h, c_int64, _p, _p],
    "open": [_s, _p, _p], "session_url": [_h, _p, c_uint64], "show": [_h, _s, _p], "force_release": [_h, _s, _s, _p],
    "lease_info_of": [_h, _p], "lease_fences": [_h, _p, _p], "lease_check": [_h], "lease_extend": [_h, c_int64],
    "lease_watch": [_h, _h, c_uint64], "release": [_h, _p],
    "mutex": [_h, _s, _p, _p], "fair_mutex": [_h, _s, _p, _p], "shared_mutex": [_h, _s, c_int, _p, _p],
    "semaphore": [_h, _s, c_uint32, _p, _p], "semaphore_available": [_h, _p], "election": [_h, _s, _p, _p],
    "election_leader": [_h, _p], "election_observe": [_h, _p], "leaders_next": [_h, _p, _p], "leaders_found": [_h, _p],
    "multi_lock": [_p, c_uint32, _p], "redlock": [_p, c_uint32, _s, _p, _p],
    "acquire": [_h, _p, _p], "acquire_shared": [_h, _p, _p], "acquire_permits": [_h, c_uint32, _p, _p],
    "downgrade": [_h, _h], "upgrade": [_h, _h],
    "latch_open": [_h, _s, c_uint32, c_int64, _p], "latch_count_down": [_h, c_uint32, _p], "latch_wait": [_h, _p],
    "latch_remaining": [_h, _p], "latch_remove": [_h],
    "barrier_open": [_h, _s, c_uint32, c_int64, _p], "barrier_arrive_within": [_h, _p, _p], "barrier_wait": [_h, _h, _p],
    "barrier_arrive_and_wait": [_h, _p], "barrier_arrive_and_drop_within": [_h, _p],
    "condition_open": [_h, _s, _p], "condition_wait": [_h, _h, _p, _p], "condition_notify_one": [_h, _p],
    "condition_notify_all": [_h, _p],
    "limiter_open": [_h, _s, _p, c_uint32, c_uint64, _p], "limiter_take": [_h, c_uint64, _p, c_uint32, _p, _p],
    "limiter_reserve": [_h, c_uint64, c_int64, _p, c_uint32, _p], "limiter_peek": [_h, c_uint64, _p, c_uint32, _p],
    "limiter_refund": [_h, c_uint64, _p, c_uint32], "limiter_give_back": [_h, _p, _p, c_uint32],
}

# ctypes takes longer to convert arguments than to pass them on. It converts none for these two functions, which each use of a lock calls:
# a handle must be a c_void_p there, because an int would be cut to 32 bits.
_UNCONVERTED: typing.Final = ("acquire", "release")

Function = typing.Callable[..., int]


def _load() -> ctypes.CDLL:
    name = f"libholdfast-c.so.{ABI}"
    named = os.environ.get("HOLDFAST_LIBRARY")
    beside = pathlib.Path(__file__).resolve().parent / name
    path = named or (str(beside) if beside.exists() else name)
    try:
        found = ctypes.CDLL(path)
    except OSError as why:
        raise ImportError(f"holdfast needs {name}: install it, or set HOLDFAST_LIBRARY to its path ({why})") from why
    found.holdfast_abi.restype = c_uint32
    if found.holdfast_abi() != ABI:
        raise ImportError(f"{path} has the interface {found.holdfast_abi()}, and this package needs {ABI}")
    return found


_library = _load()


def _checked(name: str, function: Function, takes: list[typing.Any]) -> Function:
    """The same function, which raises if a number does not fit."""
    places = [(at, kind) for at, kind in enumerate(takes) if kind in _NUMBERS]
    if not places:
        return function

    def checked(*arguments: typing.Any) -> int:
        for at, kind in places:
            _fitting(arguments[at], kind, f"{name}: argument {at}")
        return function(*arguments)
    return checked


class Functions:
    """The functions of the library, named without their prefix."""

    def __init__(self) -> None:
        for name, takes in _FUNCTIONS.items():
            function = getattr(_library, f"holdfast_{name}")
            if name not in _UNCONVERTED:
                function.argtypes = [*takes, _p]
            function.restype = c_int
            setattr(self, name, _checked(name, function, takes))
        self.close_all: typing.Callable[[], None] = _library.holdfast_close_all
        _library.holdfast_close_all.restype = None
        _library.holdfast_version.restype = c_char_p
        self.version: str = _library.holdfast_version().decode()

    if typing.TYPE_CHECKING:
        def __getattr__(self, name: str) -> Function: ...


functions: typing.Final = Functions()


class Room:
    """Room for the text of an error."""

    def __init__(self) -> None:
        self.why = ErrorText()
        self.there = ctypes.byref(self.why)


#: Rooms that no call uses. A call takes one out, and puts it back: other threads make calls meanwhile, and so may a signal handler that
#: interrupts the call. When more calls than these end at once, the oldest rooms are given back to the system.
free: typing.Final[collections.deque[Room]] = collections.deque(maxlen=16)
program_ends = False  # set when close_all() ends the waits of daemon threads


def error_of(why: ErrorText, code: int) -> errors.Error:
    def text(field: bytes) -> str:
        return field.decode("utf-8", "replace")
    kind = errors.BY_CODE.get(code, errors.Internal)
    return kind(text(why.message), operation=text(why.operation), name=text(why.name), store=text(why.store),
                retryable=bool(why.retryable), outcome_unknown=bool(why.outcome_unknown), lease_gone=bool(why.lease_gone))


def raise_error(room: Room, code: int) -> typing.NoReturn:
    if program_ends and code == errors.Cancelled.code and threading.current_thread().daemon:
        raise SystemExit  # ends the thread, and prints nothing
    raise error_of(room.why, code)


def call(function: Function, *arguments: typing.Any) -> None:
    """Calls the function without the interpreter lock, and raises its error. Lock._begin() and Lease.release() do the same without
    this function, because each use of a lock calls both."""
    try:
        room = free.pop()
    except IndexError:  # not checked before: another thread may take the last one in between
        room = Room()
    code = function(*arguments, room.there)
    if code:
        raise_error(room, code)
    free.append(room)


def made(function: Function, *arguments: typing.Any) -> int:
    """As call(), for a function whose second-to-last parameter receives a new handle. Returns that handle."""
    there = c_void_p()
    try:
        call(function, *arguments, ctypes.byref(there))
        return there.value or 0
    except BaseException:  # Ctrl-C, after the handle was made
        drop(there.value)
        raise


def drop(handle: int | None) -> None:
    """Closes a handle that no caller receives. A second call does nothing."""
    if handle:
        functions.close(handle, None)


def text(words: object, what: str) -> bytes:
    words = one_of(words, str, what)
    if "\0" in words:
        raise errors.InvalidName(f"{what}: a text with a zero byte in it cannot be passed on")
    try:
        return words.encode()
    except UnicodeEncodeError:
        raise errors.InvalidName(f"{what}: a text that is not Unicode cannot be passed on") from None


def text_or_none(words: object, what: str) -> bytes | None:
    return None if words is None else text(words, what)


def seconds_of(given: typing.Any, what: str) -> float:
    if isinstance(given, bool) or not isinstance(given, numbers.Real):  # acquire(True) of another library waits without a limit
        raise wrong(what, "a number of seconds", given)
    try:
        return float(given)
    except OverflowError:
        return math.inf if operator.gt(given, 0) else -math.inf


def duration(seconds: object, what: str, per_second: int = 1000, zero: int | None = None) -> int:
    """Converts seconds to a number of units, `per_second` of which are a second. None becomes 0, which means the default. 0 becomes
    `zero`; without `zero`, 0 is refused like every duration shorter than a unit."""
    if seconds is None:
        return 0
    counted = seconds_of(seconds, what) * per_second
    if counted == 0 and zero is not None:
        return zero
    if not math.isfinite(counted):
        raise errors.InvalidArgument(f"{what}: {seconds} s is no duration")
    if abs(counted) < 1:
        raise errors.InvalidArgument(f"{what}: {seconds} s is too short: the least is {1 / per_second:g} s")
    if abs(counted) >= 2**63:
        raise errors.InvalidArgument(f"{what}: {seconds} s is too long")
    return round(counted)


def nanoseconds(timeout: object) -> int:
    if timeout is None:
        return NO_LIMIT
    limit = seconds_of(timeout, "timeout")
    if math.isnan(limit):
        raise errors.InvalidArgument("timeout: nan is no time")
    return int(min(max(limit, 0.0) * 1e9, 2**63 - 1))
