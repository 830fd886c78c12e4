"""Where processes wait for each other: latches, barriers, conditions."""
from __future__ import annotations

import ctypes

from . import _abi, _waits, errors
from ._abi import call, functions
from .lease import Lease


class Latch(_waits.Handle):
    """Waiters continue when the count has reached zero."""

    def count_down(self, n: int = 1) -> None:
        """Counts down by n. Raises InvalidArgument for 0, and for more than remains. One round trip; on ZooKeeper and etcd two or more."""
        call(functions.latch_count_down, self._handle, n, None)

    def wait(self, timeout: float | None = None, stop: _waits.Stop | None = None) -> None:
        """Waits until the latch is open. Raises TimedOut (Busy for one try), Cancelled. One round trip if it is open."""
        _waits.wait(lambda how: call(functions.latch_wait, self._handle, how), timeout, stop)

    async def count_down_async(self, n: int = 1) -> None:
        """count_down() for an event loop."""
        await _waits.Loop.running().outcome(lambda how: call(functions.latch_count_down, self._handle, n, how), None)

    async def wait_async(self, timeout: float | None = None, stop: _waits.Stop | None = None) -> None:
        """wait() for an event loop."""
        await _waits.Loop.running().outcome(lambda how: call(functions.latch_wait, self._handle, how), timeout, stop)

    def remaining(self) -> int:
        """Returns the present count. One round trip; on ZooKeeper and etcd two if there is no latch."""
        found = ctypes.c_uint32()
        call(functions.latch_remaining, self._handle, ctypes.byref(found))
        return found.value

    def remove(self) -> None:
        """Removes the latch, and frees its name. Costs as remaining()."""
        call(functions.latch_remove, self._handle)


class Arrival(_waits.Handle):
    """The arrival of one participant in a phase of a barrier. It still counts if this object is closed or collected."""

    def __init__(self, there: ctypes.c_void_p) -> None:
        super().__init__(there.value or 0)


class Barrier(_waits.Handle):
    """`count` participants wait for each other, in one phase after the other. Raises Lost if one of them died. Make one Barrier for each
    participant, which may be a thread or a task. If threads share one, each is a participant; tasks of one event loop that share one are a
    single participant, unless they call at the same time. If the last arrival of a participant still counts, and the program has no
    Arrival for it, its next arrival first waits for the end of that phase. After close(), waits of the main thread and of event loops
    raise Cancelled."""

    def arrive(self, timeout: float | None = None, stop: _waits.Stop | None = None) -> Arrival:
        """Arrives, and does not wait for the others. One round trip. After TimedOut (Busy for one try) and Cancelled the arrival may
        count nevertheless: arrive again."""
        return _waits.granted(Arrival, self._begin, timeout, stop, to_its_end=True)

    async def arrive_async(self, timeout: float | None = None, stop: _waits.Stop | None = None) -> Arrival:
        """arrive() for an event loop."""
        return await _waits.Loop.running().granted(Arrival, lambda how: self._begin(how, None), timeout, stop, to_its_end=True)

    def wait(self, arrival: Arrival, timeout: float | None = None, stop: _waits.Stop | None = None) -> None:
        """Waits until all have arrived. After TimedOut and Cancelled the arrival still counts, and can be waited for again."""
        mine = _abi.one_of(arrival, Arrival, "arrival")
        self._wait(lambda how: call(functions.barrier_wait, self._handle, mine._handle, how), timeout, stop)

    async def wait_async(self, arrival: Arrival, timeout: float | None = None, stop: _waits.Stop | None = None) -> None:
        """wait() for an event loop."""
        mine = _abi.one_of(arrival, Arrival, "arrival")
        await self._outcome(lambda how: call(functions.barrier_wait, self._handle, mine._handle, how), timeout, stop)

    def arrive_and_wait(self, timeout: float | None = None, stop: _waits.Stop | None = None) -> None:
        """Arrives, and waits until all have arrived. After TimedOut and Cancelled the arrival cannot be waited for. It counts if the
        store had answered; otherwise it may count."""
        self._wait(lambda how: call(functions.barrier_arrive_and_wait, self._handle, how), timeout, stop)

    async def arrive_and_wait_async(self, timeout: float | None = None, stop: _waits.Stop | None = None) -> None:
        """arrive_and_wait() for an event loop."""
        await self._outcome(lambda how: call(functions.barrier_arrive_and_wait, self._handle, how), timeout, stop)

    def arrive_and_drop(self, timeout: float | None = None, stop: _waits.Stop | None = None) -> None:
        """Arrives, and drops out: each later phase needs one participant fewer. Does not wait for the others. One round trip. After
        TimedOut (Busy for one try) and Cancelled the participant may not have dropped out: call it again."""
        self._wait(self._drop, timeout, stop)

    async def arrive_and_drop_async(self, timeout: float | None = None, stop: _waits.Stop | None = None) -> None:
        """arrive_and_drop() for an event loop."""
        await self._outcome(self._drop, timeout, stop)

    def _begin(self, how: object, there: object) -> None:
        call(functions.barrier_arrive_within, self._handle, how, there)

    def _drop(self, how: object) -> None:
        call(functions.barrier_arrive_and_drop_within, self._handle, how)

    # An interrupted call is also waited for to its end. Until then the participant of the thread is in that call, and a next call would
    # belong to another participant.

    @staticmethod
    def _wait(start: _waits.Starts, timeout: float | None, stop: _waits.Stop | None) -> None:
        _waits.wait(start, timeout, stop, to_its_end=True)

    @staticmethod
    async def _outcome(start: _waits.Starts, timeout: float | None, stop: _waits.Stop | None) -> _abi.Event:
        """Waits for the call. A cancelled task ends only when its call has ended."""
        return await _waits.Loop.running().outcome(start, timeout, stop, to_its_end=True)


class Condition(_waits.Handle):
    """Releases a mutex, waits until any process notifies, and acquires the mutex again."""

    def wait(self, lease: Lease, timeout: float | None = None, stop: _waits.Stop | None = None) -> bool:
        """Returns whether a notification came in time. The mutex is then held again by the same lease, with a new fence: check the
        condition, and wait again if it is false. The mutex is not held after an error other than NotOwner, InvalidArgument and
        Unsupported, and after an exception of a signal handler during the wait: the lease is released, and its loss is reported.
        Cancelled is also raised if another thread closed the lease meanwhile."""
        notified, use = ctypes.c_uint32(), _Use(lease)

        def start(how: object) -> None:
            call(functions.condition_wait, self._handle, lease._known, how, ctypes.byref(notified))
        try:
            if _waits.is_main_thread():
                return bool(_waits.wait_seeing_signals(start, timeout, stop).number)
            start(_waits.blocking(timeout, stop))
            return bool(notified.value)
        except BaseException as why:
            use.failed(why)
            raise
        finally:
            use.end()

    async def wait_async(self, lease: Lease, timeout: float | None = None, stop: _waits.Stop | None = None) -> bool:
        """wait() for an event loop. A cancelled task does not hold the mutex, either."""
        use = _Use(lease)
        try:
            return bool((await _waits.Loop.running().outcome(
                lambda how: call(functions.condition_wait, self._handle, lease._known, how, None), timeout, stop)).number)
        except BaseException as why:
            use.failed(why)
            raise
        finally:
            use.end()

    def notify_one(self) -> int:
        """Wakes the first waiter. Returns how many waiters were woken. You may hold the mutex or not. One round trip."""
        return self._notify(functions.condition_notify_one)

    def notify_all(self) -> int:
        """Wakes all waiters. Returns how many were woken. One round trip."""
        return self._notify(functions.condition_notify_all)

    def _notify(self, function: _abi.Function) -> int:
        woken = ctypes.c_uint32()
        call(function, self._handle, ctypes.byref(woken))
        return woken.value


class _Use:
    """The use of a lease by a wait for a condition."""

    def __init__(self, lease: Lease) -> None:
        self._lease = _abi.one_of(lease, Lease, "lease")
        self._uses: list[object] = self._lease.__dict__.setdefault("_uses", [])  # another wait may do so at the same time
        self._uses.append(self)

    def end(self) -> None:
        self._uses.remove(self)

    def failed(self, why: BaseException) -> None:
        if self._has_it() or not isinstance(why, _NOT_BEGUN):
            self._lease._end_in_vain()

    def _has_it(self) -> bool:
        """Whether the library has given the lease to this wait. It never gives a lease to two waits, but does not tell which wait has it.
        The type of an exception does not tell either, because a signal handler may raise any type."""
        lease = self._lease
        if not lease._handle or len(lease._uses) > 1:  # it is being released, or another wait uses it
            return False
        return functions.lease_info_of(lease._known, ctypes.byref(_abi.LeaseInfo()), None) == errors.NotOwner.code


_NOT_BEGUN = (errors.NotOwner, errors.InvalidArgument, errors.Unsupported, TypeError)
