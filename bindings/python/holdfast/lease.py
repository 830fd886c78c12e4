"""Leases, which the acquisition of a lock returns."""
from __future__ import annotations

import ctypes
import enum
import types
import typing
import weakref

from . import _abi, _waits, errors
from ._abi import call, functions


class State(enum.Enum):
    """The state of a lease."""
    HELD = _abi.HELD
    #: A renewal failed or hangs; the lock is still held.
    SUSPECT = _abi.SUSPECT
    #: The lease is lost and protects nothing any more.
    LOST = _abi.GONE
    RELEASED = 0


def _forget(loops: typing.Iterable[_waits.Loop], lease: int, lost: bool) -> None:
    for loop in loops:
        loop.forget(lease, lost)


class Lease(_waits.Handle):
    """Proves that the lock is held. A lease belongs to no thread: any thread may check, extend and release it. The end of `with`
    releases the lease, and so does the end of the last reference to it."""

    # Class attributes, because close() also runs if __init__ was interrupted, and because most leases need no lists of their own.
    _watches: list[tuple[_waits.Watcher, int]] | tuple[()] = ()
    _uses: typing.Sequence[object] = ()  # the waits for conditions that use this lease
    _loops: weakref.WeakSet[_waits.Loop] | None = None  # where tasks wait for its loss
    _known = ctypes.c_void_p()
    _over: bool = False  # released or closed; a release by another thread may still be refused

    def __init__(self, there: ctypes.c_void_p) -> None:
        self._known = there  # kept after the release: the library then reports NotOwner
        self._handle = there.value or 0

    @property
    def _number(self) -> int:
        return self._known.value or 0

    def _info(self) -> _abi.LeaseInfo:
        info = _abi.LeaseInfo()
        call(functions.lease_info_of, self._known, ctypes.byref(info))
        return info

    @property
    def fence(self) -> int:
        """A number greater than that of every earlier holder; 0 where the store has none (docs/guarantees.md). Pass it to the resource,
        which refuses smaller ones. No round trip."""
        return int(self._info().fence)

    @property
    def fences(self) -> list[int]:
        """The fence of each member of a multi_lock; of another lock its one fence. No round trip."""
        count = ctypes.c_uint32(64)
        while True:
            there = (ctypes.c_uint64 * count.value)()
            room = count.value
            try:
                call(functions.lease_fences, self._known, there, ctypes.byref(count))
            except errors.InvalidArgument:
                if count.value <= room:
                    raise
                continue
            return list(there[:count.value])

    @property
    def state(self) -> State:
        """The state by the clock at this moment. No round trip."""
        return State(self._info().state) if self._handle else State.RELEASED

    @property
    def lost(self) -> bool:
        """Whether the lock was lost. No round trip."""
        return self.state is State.LOST

    @property
    def remaining(self) -> float:
        """How many seconds the lock is certain to be held without another renewal. No round trip."""
        return float(self._info().remaining_ns) / 1e9

    @property
    def name(self) -> str:
        """The name as the store knows it; empty for a multi_lock and a redlock."""
        return bytes(self._info().name).decode()

    @property
    def short_id(self) -> str:
        """Names this acquisition in logs, and for Session.force_release()."""
        return bytes(self._info().short_id).decode()

    def check(self) -> None:
        """Raises Lost unless the lock is held. No round trip: cheap enough for inner loops."""
        call(functions.lease_check, self._known)

    def extend(self, lease: float | None = None) -> None:
        """Renews the lease now, for `lease` seconds from now on, or for its old length (None). One round trip for each name."""
        call(functions.lease_extend, self._known, _abi.duration(lease, "lease"))

    def release(self) -> None:
        """Releases the lock. Raises Lost if the lease had ended before. Raises NotOwner if it was released already, or while a wait
        for a condition uses it. One round trip."""
        handle = self._handle
        try:
            room = _abi.free.pop()
        except IndexError:
            room = _abi.Room()
        try:
            self._handle = 0
            code = functions.release(self._known, None, room.there)
            if code:
                _abi.raise_error(room, code)
            _abi.free.append(room)
        except errors.NotOwner:  # nothing has changed, unless another thread released it first
            self._handle = handle
            if self._over:
                self._handle = 0
            raise
        except errors.Error:
            self._end()
            raise
        except BaseException:  # Ctrl-C, perhaps before anything was sent
            self._handle = handle
            self._forget_watches()
            raise
        self._end()

    def _end(self) -> None:
        self._over = True
        self._handle = 0
        if self._watches or self._loops is not None:
            self._forget_watches()

    async def release_async(self) -> None:
        """release() for an event loop."""
        await _waits.Loop.running().outcome(self._begin_release, None)

    def _begin_release(self, how: typing.Any) -> None:
        call(functions.release, self._known, how)
        self._end()

    def close(self) -> None:
        """Releases the lock without reporting failures. A second call does nothing. One round trip."""
        self._over = True
        try:
            self._forget_watches()
        finally:  # also after Ctrl-C
            super().close()

    def __del__(self) -> None:
        if self._handle or self._watches or self._loops is not None:
            self.close()

    def _end_in_vain(self) -> None:
        """Ends the lease after a failed wait for a condition. The library has already closed it if the wait had begun."""
        try:
            self._forget_watches(lost=True)
        finally:
            self.close()

    def _forget_watches(self, lost: bool = False) -> None:
        while self._watches:
            watcher, tag = self._watches.pop()
            watcher.forget(tag, lost)
        loops, self._loops = self._loops, None
        _forget(loops or (), self._number, lost)

    def on_loss(self, callback: typing.Callable[[], None]) -> None:
        """Calls `callback` once, on a thread of this module, when the lock is lost, before another holder can get the lock
        (docs/guarantees.md has the exceptions). A failed Condition.wait() also calls it. One thread calls all callbacks, one after the
        other. A long callback delays the reports for all other leases, so keep it short: for example, set an event."""
        watcher = _waits.watcher
        watches: list[tuple[_waits.Watcher, int]] = self.__dict__.setdefault("_watches", [])
        watches.append((watcher, watcher.watch(self._number, callback)))

    async def until_lost(self) -> None:
        """Waits in an event loop until the lock is lost. A release does not end this wait: cancel the task."""
        loop = _waits.Loop.running()
        loops = self._loops  # another thread may release it meanwhile
        if loops is None:
            loops = self._loops = weakref.WeakSet()
            # The collector clears the weak references of a cycle before it calls __del__, except those that are referenced elsewhere.
            weakref.finalize(self, _forget, loops, self._number, False).atexit = False
        loops.add(loop)
        await loop.loss_of(self._number)

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, trace: types.TracebackType | None) -> None:
        self._leave(kind)

    async def __aenter__(self) -> Lease:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, why: BaseException | None,
                        trace: types.TracebackType | None) -> None:
        if not self._handle:
            return
        stays = False
        try:
            await self.release_async()
        except errors.NotOwner:  # a wait for a condition may use the lease, and goes on with it
            stays = kind is None
            if stays:
                raise
        except (errors.Error, RuntimeError):  # RuntimeError: no event loop runs any more
            if kind is None:
                raise
        finally:
            if not stays:
                self.close()  # if the release could not begin

    def _leave(self, kind: type[BaseException] | None) -> None:
        """Releases the lease. An exception of the block takes precedence over an error of the release."""
        if not self._handle:
            return
        if kind is None:
            self.release()
        else:
            self.close()
