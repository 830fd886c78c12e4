"""Locks. The acquisition of a lock returns a lease."""
from __future__ import annotations

import asyncio
import ctypes
import dataclasses
import itertools
import operator
import sys
import threading
import types
import typing
import weakref

from . import _abi, _waits, errors
from ._abi import call, functions
from .lease import Lease

if typing.TYPE_CHECKING:
    from .session import Session

if sys.version_info >= (3, 10):
    from types import EllipsisType
elif typing.TYPE_CHECKING:
    from builtins import ellipsis as EllipsisType
else:
    EllipsisType = type(...)


@dataclasses.dataclass(frozen=True)
class LockOptions:
    """Options of one lock. Durations are seconds. None is the library's default (docs/tuning.md)."""
    #: How long the lock outlives a crash. None: as the session says.
    lease: float | None = None
    #: False: the lock ends by itself when the lease is over.
    renew: bool = True
    #: The longest time for which one hold lasts. None: no limit.
    max_hold: float | None = None
    #: How long threads of this process may pass a mutex on without asking the store. None: 10 ms. 0: never.
    local_time: float | None = None
    #: How long an idle mutex may stay with this process.
    linger: float = 0.0
    #: How many threads may wait behind another one; the next one gets Overloaded. 0: no limit.
    max_waiters: int = 0
    #: The end of a lease by close() or by the collector does not wait for the answer of the store.
    unconfirmed_release: bool = False
    #: For people: shown by `holdfast list`.
    reason: str | None = None

    def _in_c(self) -> _abi.LockOptions:
        return _abi.LockOptions(
            no_renewal=not self.renew, unconfirmed_release=self.unconfirmed_release, lease_ms=_abi.duration(self.lease, "lease"),
            max_hold_ms=_abi.duration(self.max_hold, "max_hold"),
            local_time_us=_abi.duration(self.local_time, "local_time", 10**6, _abi.NEVER),
            linger_us=_abi.duration(self.linger, "linger", 10**6, 0), max_waiters=self.max_waiters,
            reason=_abi.text_or_none(self.reason, "reason"))


class _Reference(weakref.ref["_Block"]):
    """A reference that stays in its place in a set when its object is destroyed."""
    __slots__ = ()
    __hash__ = object.__hash__


class _Entered:
    """The leases of blocks whose __enter__() was not called by a `with` statement: a list for each thread or task, the innermost last.
    Blocks that a signal handler enters and leaves in between change nothing."""

    def __init__(self) -> None:
        self._mutex = threading.RLock()
        self._leases: dict[object, list[Lease]] = {}
        #: The blocks that have begun. When a block is destroyed, Python calls discard(): no signal handler can interrupt that.
        self.blocks: set[weakref.ref[_Block]] = set()

    def add(self, by: object, lease: Lease) -> None:
        with self._mutex:
            self._leases[by] = [*self._leases.get(by, ()), lease]

    def forget(self, by: object, lease: Lease) -> None:
        """Removes and closes the lease of a block that did not begin. The lease need not have been added."""
        with self._mutex:
            if rest := [entered for entered in self._leases.get(by, ()) if entered is not lease]:
                self._leases[by] = rest
            else:
                self._leases.pop(by, None)
        lease.close()

    def take(self, by: object) -> Lease:
        with self._mutex:
            if by not in self._leases:
                theirs = [block for known in self.blocks.copy() if (block := known()) and block._lease and block._by == by]
                if theirs:  # the program keeps the block's end, and calls another end
                    block = max(theirs, key=operator.attrgetter("_number"))
                    kept, block._lease = block._lease, None
                    if kept:
                        return kept
                # one thread or task entered the block, and another leaves it
                if len(self._leases) != 1:
                    raise RuntimeError("another thread or task entered this block, and not just one holds the lock: use acquire()")
                by = next(iter(self._leases))
            *rest, lease = self._leases[by]
            if rest:
                self._leases[by] = rest
            else:
                del self._leases[by]
            return lease


class _Block:
    """The object whose __exit__ a `with` statement calls. Only that statement refers to it. So it is destroyed with the block, however the
    block ends, and then closes its lease. No lease stays held if the end of the block was interrupted before its first line, or if the
    event loop has ended."""
    _lease: Lease | None = None
    _by: object = None  # the thread or task that began it
    _number: int = 0  # greater than that of each block that began before
    _begins: bool = False  # a call of __enter__() has taken it

    def __init__(self, lock: Lock) -> None:
        self._lock = lock
        self._itself = _Reference(self, lock._entered.blocks.discard)

    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, trace: types.TracebackType | None) -> None:
        lease = self._lease or self._lock._entered.take(threading.get_ident())
        try:
            if kind is None and lease._handle:
                lease.release()
            else:
                lease._leave(kind)
        except errors.Error:  # a wait for a condition may use the lease
            raise
        except BaseException:  # Ctrl-C
            lease.close()
            raise
        finally:
            self._lease = None  # another call of this end belongs to another block

    async def __aexit__(self, kind: type[BaseException] | None, why: BaseException | None,
                        trace: types.TracebackType | None) -> None:
        lease = self._lease or self._lock._entered.take(_task())
        try:
            await lease.__aexit__(kind, why, trace)
        finally:
            self._lease = None

    def __del__(self) -> None:
        if self._lease:
            self._lease.close()


_numbers: typing.Final = itertools.count(1)


class _Begun(threading.local):
    """The block that the next __enter__() of this thread begins. Python looks up __exit__ directly before it calls __enter__."""
    block: weakref.ref[_Block] | None = None

    def take(self, lock: Lock) -> _Block | None:
        known = self.block
        found = known() if known else None
        if not found or found._begins or found._lock is not lock:
            return None
        found._begins = True
        return found


_begun = _Begun()


class _End:
    """The method of a lock that ends a block. Each lookup makes a new block, and returns the method of that block."""

    def __init__(self, of_a_block: typing.Callable[..., typing.Any]) -> None:
        self._of_a_block = of_a_block

    def __get__(self, lock: Lock | None, _: type[Lock]) -> typing.Callable[..., typing.Any]:
        if lock is None:  # as contextlib.ExitStack does
            _begun.block = None
            return lambda of, *how: self._of_a_block(_Block(of), *how)
        block = _Block(lock)
        _begun.block = block._itself
        return types.MethodType(self._of_a_block, block)


def _task() -> asyncio.Task[typing.Any] | None:
    """The current task. None if there is no task, or no event loop."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


class Lock(_waits.Handle):
    """A lock: `with lock as lease`, or `async with`. Thread-safe. A lock belongs to no thread: a thread that acquires it twice
    waits for itself. `timeout`: how many seconds `with` and acquire() wait (0 or negative: one try; None: without a limit)."""
    def __init__(self, handle: int, timeout: float | None = None, keeps: object = None) -> None:
        super().__init__(handle)
        self._argument = ctypes.c_void_p(handle)
        self.timeout = timeout
        self._entered = _Entered()
        self._keeps = keeps

    def _begin(self, how: typing.Any, there: typing.Any) -> None:
        try:
            room = _abi.free.pop()
        except IndexError:
            room = _abi.Room()
        code = functions.acquire(self._argument, how, there, room.there)
        if code:
            _abi.raise_error(room, code)
        _abi.free.append(room)

    def acquire(self, timeout: float | None | EllipsisType = ..., stop: _waits.Stop | None = None) -> Lease:
        """Acquires the lock, and waits for it if necessary. Raises TimedOut (Busy for one try), Cancelled, Unavailable. In the main
        thread a signal can interrupt the wait. One round trip if the lock is free."""
        limit = self.timeout if timeout is ... else timeout
        if limit is None and stop is None and _waits.is_main_thread():  # one try may last as long as the store's time-outs
            there = ctypes.c_void_p()
            try:
                self._begin(_waits.one_try, ctypes.byref(there))
                return Lease(there)
            except (errors.Busy, errors.Unavailable):
                _abi.drop(there.value)  # a signal handler may raise these, too
            except BaseException:
                _abi.drop(there.value)
                raise
        return _waits.granted(Lease, self._begin, limit, stop)

    def try_acquire(self, timeout: float = 0, stop: _waits.Stop | None = None) -> Lease | None:
        """acquire() that returns None if the lock is not free in time. Without a timeout it is one try."""
        try:
            return self.acquire(timeout, stop)
        except (errors.Busy, errors.TimedOut):
            return None

    async def acquire_async(self, timeout: float | None | EllipsisType = ..., stop: _waits.Stop | None = None) -> Lease:
        """acquire() for an event loop: occupies no thread. The wait of a cancelled task leaves the queue."""
        limit = self.timeout if timeout is ... else timeout
        return await _waits.Loop.running().granted(Lease, lambda how: self._begin(how, None), limit, stop)

    def __enter__(self) -> Lease:
        return self._enter(_begun.take(self), threading.get_ident(), self.acquire())

    def __aenter__(self) -> typing.Coroutine[typing.Any, typing.Any, Lease]:
        return self._enter_async(_begun.take(self))

    async def _enter_async(self, block: _Block | None) -> Lease:
        return self._enter(block, _task(), await self.acquire_async())

    def _enter(self, block: _Block | None, by: object, lease: Lease) -> Lease:
        try:
            if block:
                block._number, block._by, block._lease = next(_numbers), by, lease
                self._entered.blocks.add(block._itself)
            else:
                self._entered.add(by, lease)
            return lease
        except BaseException:  # Ctrl-C: no statement will end the block
            self._entered.forget(by, lease)
            raise

    if typing.TYPE_CHECKING:
        def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, trace: types.TracebackType | None) -> None: ...

        async def __aexit__(self, kind: type[BaseException] | None, why: BaseException | None,
                            trace: types.TracebackType | None) -> None: ...
    else:
        __exit__, __aexit__ = _End(_Block.__exit__), _End(_Block.__aexit__)

    def _member(self) -> _abi.Member:
        return _abi.Member(lock=self._handle)


class Shared(Lock):
    """The lock of the readers of a SharedMutex."""

    def __init__(self, of: SharedMutex) -> None:
        super().__init__(0, of.timeout, keeps=of)
        self._of = of

    def _begin(self, how: typing.Any, there: typing.Any) -> None:
        call(functions.acquire_shared, self._of._handle, how, there)

    def _member(self) -> _abi.Member:
        return _abi.Member(lock=self._of._handle, shared=1)


class SharedMutex(Lock):
    """Many readers (`with lock.shared()`) or one writer (`with lock`)."""

    def shared(self) -> Shared:
        """Returns the lock of the readers. No round trip."""
        return Shared(self)

    def downgrade(self, lease: Lease) -> None:
        """A writer's lease becomes a reader's, with no other writer in between. One round trip; on ZooKeeper and etcd two."""
        call(functions.downgrade, self._handle, _abi.one_of(lease, Lease, "lease")._known)

    def try_upgrade(self, lease: Lease) -> bool:
        """A reader's lease becomes a writer's, with a new fence, if there is no other reader; otherwise returns False at once. Costs as
        downgrade()."""
        try:
            call(functions.upgrade, self._handle, _abi.one_of(lease, Lease, "lease")._known)
        except errors.Busy:
            return False
        return True


class Permits(Lock):
    """Several permits of a semaphore, taken together."""

    def __init__(self, of: Semaphore, count: int) -> None:
        super().__init__(0, of.timeout, keeps=of)
        self._of = of
        self._count = count

    def _begin(self, how: typing.Any, there: typing.Any) -> None:
        call(functions.acquire_permits, self._of._handle, self._count, how, there)

    def _member(self) -> _abi.Member:
        return _abi.Member(lock=self._of._handle, permits=self._count)


class Semaphore(Lock):
    """Permits: `with semaphore` takes one, `with semaphore.permits(3)` takes three or none."""

    def permits(self, count: int) -> Permits:
        """Returns a lock that takes `count` permits together. No round trip."""
        return Permits(self, count)

    def available(self) -> int:
        """Returns how many permits are free at this moment. One round trip."""
        found = ctypes.c_uint32()
        call(functions.semaphore_available, self._handle, ctypes.byref(found))
        return found.value


@dataclasses.dataclass(frozen=True)
class Leader:
    """A leader, as every program can read it. Unknown fields are 0 or empty."""
    #: Greater than the term of every earlier leader.
    term: int
    note: str
    host: str
    pid: int
    program: str
    #: Other leaders may have been missed since the previous one.
    after_gap: bool


def _leader(found: _abi.LeaderText) -> Leader:
    return Leader(found.term, found.note.decode(), found.host.decode(), found.pid, found.program.decode(), bool(found.after_gap))


class Leaders(_waits.Handle):
    """The leaders of an election, one after the other. For one thread at a time."""

    def __init__(self, handle: int) -> None:
        super().__init__(handle)
        self._told = 0  # the term of the leader that was returned last

    def next(self, timeout: float | None = None, stop: _waits.Stop | None = None) -> Leader:
        """Waits for the leader after the one that was returned last. Raises TimedOut, Cancelled. Polls about twice a second."""
        missed = self._found()
        if missed is None:
            there = _abi.LeaderText()
            _waits.wait(lambda how: self._begin(how, there), timeout, stop, to_its_end=True)
            missed = self._new(there) or self._found()
        assert missed is not None
        return missed

    def _begin(self, how: typing.Any, there: _abi.LeaderText | None = None) -> None:
        """Only a call that blocks its thread writes to `there`. Another thread may close this object meanwhile."""
        call(functions.leaders_next, self._handle, how, ctypes.byref(there or _abi.LeaderText()))

    def _found(self) -> Leader | None:
        """The leader that was found last, if it has not been returned yet. An interrupted call may have found it."""
        found = _abi.LeaderText()
        call(functions.leaders_found, self._handle, ctypes.byref(found))
        return self._new(found)

    def _new(self, found: _abi.LeaderText) -> Leader | None:
        if found.term in (0, self._told):
            return None
        self._told = found.term
        return _leader(found)

    async def next_async(self, timeout: float | None = None, stop: _waits.Stop | None = None) -> Leader:
        """next() for an event loop. A cancelled task ends when its wait has ended. If the wait had found a leader, the next call
        returns that leader."""
        missed = self._found()
        if missed is None:
            await _waits.Loop.running().outcome(self._begin, timeout, stop, to_its_end=True)
            missed = self._found()
        assert missed is not None
        return missed


class Election(Lock):
    """One of many candidates leads: `with election as leadership`. The fence of that lease is the term."""

    def leader(self) -> Leader | None:
        """Returns the present leader, or None. One round trip."""
        found = _abi.LeaderText()
        call(functions.election_leader, self._handle, ctypes.byref(found))
        return _leader(found) if found.term else None

    def observe(self) -> Leaders:
        """Returns an object that reports the leaders one after the other. No round trip."""
        return Leaders(_abi.made(functions.election_observe, self._handle))


class MultiLock(Lock):
    """All of several locks, or none."""


class Redlock(Lock):
    """A lock that a majority of independent stores grants."""


def multi_lock(*members: Lock, timeout: float | None = None) -> MultiLock:
    """Returns a lock of several mutexes, shared mutexes (or their shared()) and semaphores (or their permits()). No round trip."""
    there = (_abi.Member * len(members))(*(_abi.one_of(member, Lock, "a member")._member() for member in members))
    return MultiLock(_abi.made(functions.multi_lock, there, len(members)), timeout, keeps=members)


def redlock(nodes: typing.Sequence[Session], name: str, *, lease: float | None = None, node_timeout: float | None = None,
            trust_after: float | None = None, reason: str | None = None, timeout: float | None = None) -> Redlock:
    """Returns a lock that a majority of the nodes grants; each session is one node. `trust_after`: a node has no vote for this long after
    its start; None and 0 are "off". No round trip."""
    from .session import Session
    options = _abi.RedlockOptions(lease_ms=_abi.duration(lease, "lease"), node_timeout_ms=_abi.duration(node_timeout, "node_timeout"),
                                  trust_after_ms=_abi.duration(trust_after, "trust_after", zero=0),
                                  reason=_abi.text_or_none(reason, "reason"))
    there = (ctypes.c_void_p * len(nodes))(*(_abi.one_of(node, Session, "a node")._handle for node in nodes))
    return Redlock(_abi.made(functions.redlock, there, len(nodes), _abi.text(name, "name"), ctypes.byref(options)), timeout)
