"""Connections to stores, which make locks and the other primitives."""
from __future__ import annotations

import ctypes
import dataclasses
import types

from . import _abi, _waits, limits, locks, meeting
from ._abi import call, functions
from .locks import LockOptions

_PREFERENCES = {"fifo": 0, "readers": 1, "writers": 2}


@dataclasses.dataclass(frozen=True)
class NameInfo:
    """What the store knows about one name at this moment."""
    #: "mutex", "shared_mutex", "semaphore" and so on. Empty: the name is not in use.
    kind: str
    #: All permits; of a latch the count at its start.
    capacity: int
    #: Free permits; of a latch the count now.
    remaining: int
    holders: int
    waiters: int
    last_fence: int
    #: The short id of the first holder. Empty if nobody holds it, and perhaps if another program does.
    holder: str


class Session(_waits.Handle):
    """A connection to a store. Thread-safe. Locks and leases that were made with it outlive this object. Making a lock costs no round
    trip."""

    def mutex(self, name: str, timeout: float | None = None, options: LockOptions | None = None) -> locks.Lock:
        """Mutual exclusion by name, between all programs that open the same store."""
        return locks.Lock(self._made(functions.mutex, name, self._lock(options)), timeout)

    def fair_mutex(self, name: str, timeout: float | None = None, options: LockOptions | None = None) -> locks.Lock:
        """As mutex(), on the same names, but strictly in order of arrival across processes."""
        return locks.Lock(self._made(functions.fair_mutex, name, self._lock(options)), timeout)

    def shared_mutex(self, name: str, timeout: float | None = None, options: LockOptions | None = None,
                     preference: str = "fifo") -> locks.SharedMutex:
        """Many readers or one writer. `preference`: "fifo" (order of arrival), "readers" or "writers" (they pass the others)."""
        made = self._made(functions.shared_mutex, name, _PREFERENCES.get(preference, -1), self._lock(options))
        return locks.SharedMutex(made, timeout)

    def semaphore(self, name: str, capacity: int, timeout: float | None = None, options: LockOptions | None = None) -> locks.Semaphore:
        """A semaphore with `capacity` permits. All programs state the same capacity; otherwise acquiring raises CapacityMismatch."""
        return locks.Semaphore(self._made(functions.semaphore, name, capacity, self._lock(options)), timeout)

    def election(self, name: str, note: str | None = None, priority: int = 0, lease: float | None = None,
                 timeout: float | None = None) -> locks.Election:
        """One of many candidates leads. Every program can read the note. The waiting candidate with the greatest `priority` (any
        32-bit number) leads next."""
        options = _abi.ElectionOptions(priority=priority, lease_ms=_abi.duration(lease, "lease"),
                                        note=_abi.text_or_none(note, "note"))
        return locks.Election(self._made(functions.election, name, ctypes.byref(options)), timeout)

    def latch(self, name: str, count: int, keep: float | None = None) -> meeting.Latch:
        """A latch, whose waiters continue when the count has reached zero. The store forgets it `keep` seconds after its last use (None: a
        day)."""
        return meeting.Latch(self._made(functions.latch_open, name, count, _abi.duration(keep, "keep", 1)))

    def barrier(self, name: str, count: int, lease: float | None = None) -> meeting.Barrier:
        """A barrier of `count` participants. `lease`: how many seconds the others wait for a participant whose death the store cannot see
        (None: as the session says)."""
        return meeting.Barrier(self._made(functions.barrier_open, name, count, _abi.duration(lease, "lease")))

    def condition(self, name: str) -> meeting.Condition:
        """A condition variable. Its name must differ from that of its mutex."""
        return meeting.Condition(self._made(functions.condition_open, name))

    def limiter(self, name: str, *rules: limits.Rule, local_tokens: int = 0) -> limits.Limiter:
        """A rate limiter with 1 to 16 rules. All programs state the same rules; otherwise taking tokens raises CapacityMismatch.
        `local_tokens`: from 2 on, the process takes this many tokens at once, and gives them out without a round trip (0: off)."""
        there = (_abi.RuleText * len(rules))(*(_abi.one_of(rule, limits.Rule, "a rule")._in_c() for rule in rules))
        return limits.Limiter(self._made(functions.limiter_open, name, there, len(rules), local_tokens))

    @property
    def url(self) -> str:
        """The URL of the store, without passwords."""
        text = ctypes.create_string_buffer(4096)
        call(functions.session_url, self._handle, text, len(text))
        return text.value.decode()

    def show(self, name: str) -> NameInfo:
        """Returns what the store knows about a name. One round trip; two for a latch and for a free name; up to 11 on memcached."""
        found = _abi.NameInfo()
        call(functions.show, self._handle, _abi.text(name, "name"), ctypes.byref(found))
        return NameInfo(found.kind.decode(), found.capacity, found.remaining, found.holders, found.waiters, found.last_fence,
                        found.holder.decode())

    def force_release(self, name: str, short_id: str | None = None) -> int:
        """Takes the lock away from its holders (None), or from the holder with this short id. An empty short id raises InvalidArgument.
        Returns how many holders were removed. A former holder learns of it at its next renewal; until then the fence protects the
        resource."""
        removed = ctypes.c_uint64()
        call(functions.force_release, self._handle, _abi.text(name, "name"), _abi.text_or_none(short_id, "short_id"), ctypes.byref(removed))
        return removed.value

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, trace: types.TracebackType | None) -> None:
        self.close()

    @staticmethod
    def _lock(options: LockOptions | None) -> object:
        return None if options is None else ctypes.byref(_abi.one_of(options, LockOptions, "options")._in_c())

    def _made(self, function: _abi.Function, name: str, *more: object) -> int:
        return _abi.made(function, self._handle, _abi.text(name, "name"), *more)


def open(url: str, *, lease: float | None = None, name_prefix: str | None = None, store_timeout: float | None = None) -> Session:
    """Opens the store that the URL names: memory:, sqlite:PATH, redis://…, and the others of docs/stores; file:PATH for a file whose
    first line is the URL. Waits store_timeout (10 s) for a store that is away, and then raises Unavailable; a signal in the
    main thread (Ctrl-C) has no effect until open() returns."""
    options = _abi.SessionOptions(lease_ms=_abi.duration(lease, "lease"), store_timeout_ms=_abi.duration(store_timeout, "store_timeout"),
                                  name_prefix=_abi.text_or_none(name_prefix, "name_prefix"))
    return Session(_abi.made(functions.open, _abi.text(url, "url"), ctypes.byref(options)))
