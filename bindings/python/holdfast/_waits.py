"""Waiting: in the calling thread, where signal handlers run meanwhile, or for an event loop."""
from __future__ import annotations

import asyncio
import contextlib
import ctypes
import itertools
import os
import select
import threading
import time
import typing
import weakref

from . import _abi, errors
from ._abi import call, functions

#: Called with a pointer to a holdfast_wait.
Starts = typing.Callable[[typing.Any], None]
#: The same, with a second argument: where a blocking call writes the new handle.
Begins = typing.Callable[[typing.Any, typing.Any], None]
_T = typing.TypeVar("_T")


class Handle:
    """Owns a handle of the library. Closes the handle when this object is destroyed."""
    _handle: int = 0
    _close: typing.ClassVar[_abi.Function] = functions.close  # a reference, because Python clears modules at its end

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def close(self) -> None:
        """Closes the handle. Calls that use it now continue to their end. A second call does nothing. When a session and all that was made
        on it are closed, waits of the main thread and of event loops raise Cancelled."""
        handle = self._handle
        try:
            self._handle = 0
        finally:  # also after Ctrl-C
            if handle:
                self._close(handle, None)

    def __del__(self) -> None:
        self.close()

    def __reduce_ex__(self, _: typing.SupportsIndex) -> typing.NoReturn:
        """A copy would close the handle a second time. In another process its number is that of another object."""
        raise TypeError(f"{type(self).__name__}: its handle belongs to one object of one process: threads share the object, and another "
                        "process opens a session of its own")


class Stop(Handle):
    """Cancels all waits that were given this object. Any thread may request it."""

    def __init__(self) -> None:
        super().__init__(_abi.made(functions.stop_open))
        self._mutex = threading.RLock()  # reentrant: a signal handler may call request() inside request()
        self._requested = False
        self._parts: weakref.WeakSet[Stop] = weakref.WeakSet()

    def request(self) -> None:
        """Cancels the waits. A wait that is given this object later ends at once, too."""
        with self._mutex:
            self._requested = True
            parts = list(self._parts)
        for part in parts:  # also if this object is closed
            part.request()
        try:
            call(functions.stop_request, self._handle)
        except errors.InvalidArgument:
            if not _abi.program_ends:  # which has ended the waits and closed the handles
                raise

    def opened(self) -> int:
        """The handle. Raises if it is closed, because 0 would mean that the wait has no stop."""
        if not self._handle:
            raise errors.InvalidArgument("the stop is closed already")
        return self._handle

    def part(self) -> Stop:
        """A new Stop. A request to this object also requests the new one, but not the other way round."""
        self.opened()
        made = Stop()
        with self._mutex:
            self._parts.add(made)
            requested = self._requested
        if requested:
            made.request()
        return made


class Came:
    """Receives an event of a queue, and keeps it also if a signal interrupts the call. False if there was no event."""

    def __init__(self, event: _abi.Event | None = None) -> None:
        self.event = event or _abi.Event()
        self._why = _abi.ErrorText()

    def __bool__(self) -> bool:
        return bool(self.event.kind)

    def failure(self) -> errors.Error | None:
        """The error of the event's call."""
        return _abi.error_of(self._why, self.event.code) if self.event.code else None

    def check(self) -> None:
        """Raises that error. No local variable holds the exception, because that would make a reference cycle."""
        if self.event.code:
            raise _abi.error_of(self._why, self.event.code)

    def take(self, queue: int) -> None:
        """Takes an event out of the queue, if there is one now."""
        code = functions.queue_next_decision(queue, 0, ctypes.byref(self.event), ctypes.byref(self.event.decision), ctypes.byref(self._why))
        if code not in (0, _abi.NO_EVENT):
            raise _abi.error_of(self._why, code)


class Queue(Handle):
    """A queue of the library, with the file descriptor that is readable while there are events."""

    def __init__(self) -> None:
        handle, fd = ctypes.c_void_p(), ctypes.c_int(-1)
        call(functions.queue_open, ctypes.byref(handle), ctypes.byref(fd))
        super().__init__(handle.value or 0)
        self.fd = fd.value

    def next(self, came: Came | None = None) -> Came:
        """The next event, if there is one now."""
        came = Came() if came is None else came
        came.take(self._handle)
        return came


one_try: typing.Final = ctypes.byref(_abi.Wait(timeout_ns=_abi.ONE_TRY))


def blocking(timeout: float | None, stop: Stop | None) -> typing.Any:
    """A pointer to a holdfast_wait that blocks the calling thread."""
    if stop is None and (timeout is None or timeout == 0 and not isinstance(timeout, bool)):
        return None if timeout is None else one_try
    return ctypes.byref(_abi.Wait(timeout_ns=_abi.nanoseconds(timeout),
                                  stop=None if stop is None else _abi.one_of(stop, Stop, "stop").opened()))


def part_of(stop: Stop | None) -> Stop:
    return Stop() if stop is None else _abi.one_of(stop, Stop, "stop").part()


# If a signal arrives after Python has checked for signals, and before the poll begins, it does not interrupt the poll.
_a_signal_is_seen_within_ms: typing.Final = 500


def _take_the_end(queue: Queue, poll: select.poll, came: Came) -> None:
    """Waits for the event of a call that is being stopped, which takes a moment. If a signal interrupted the call before it began, no
    event comes."""
    for _ in range(10):
        try:
            if came:
                return
            poll.poll(_a_signal_is_seen_within_ms)
            queue.next(came)
        except BaseException:  # of a signal handler: the caller already raises the first exception
            pass


class _Means:
    """The queue and the stop of a wait in the main thread. A wait that was not interrupted leaves them ready for the next wait."""

    def __init__(self) -> None:
        self.queue, self.stop, self.poll = Queue(), Stop(), select.poll()
        self.poll.register(self.queue.fd, select.POLLIN)


#: A call takes the last element out, and puts it back afterwards, because a signal handler or a finalizer that interrupts the call may
#: wait, too. An interrupted call does not put the element back, because its event may still come.
_idle: typing.Final[list[_Means]] = []


def _means() -> _Means:
    try:
        return _idle.pop()
    except IndexError:
        return _Means()


def forget_idle() -> None:
    """Called when the library has closed all handles, and in a forked child, where the handles are not valid."""
    _idle.clear()


def wait_seeing_signals(start: Starts, timeout: float | None, stop: Stop | None, event: _abi.Event | None = None,
                        to_its_end: bool = False) -> _abi.Event:
    """Waits in the main thread. A wait inside the library would delay signal handlers (Ctrl-C) until its end. `event`: an event of the
    caller, which receives a grant even if a signal interrupts this function. `to_its_end`: for an object on which only one call at a
    time may wait."""
    means, came = _means(), Came(event)
    queue, poll, own = means.queue, means.poll, means.stop if stop is None else part_of(stop)
    begun = False
    try:
        start(ctypes.byref(_abi.Wait(timeout_ns=_abi.nanoseconds(timeout), stop=own._handle, queue=queue._handle)))
        begun = True
        while not came:
            poll.poll(_a_signal_is_seen_within_ms)
            queue.next(came)
    except BaseException as why:  # a signal handler may raise any exception
        own.request()
        if to_its_end and (begun or not isinstance(why, (errors.Error, TypeError))):
            _take_the_end(queue, poll, came)
        raise
    else:
        if not _idle:
            _idle.append(means)
    finally:
        if means not in _idle:
            queue.close()  # releases a lock that is granted now; the frame lives as long as the traceback
    came.check()
    return came.event


def wait(start: Starts, timeout: float | None, stop: Stop | None, to_its_end: bool = False) -> None:
    """Waits in the calling thread, which may be the main thread or another one."""
    if is_main_thread() and timeout != 0:
        wait_seeing_signals(start, timeout, stop, to_its_end=to_its_end)
        return
    start(blocking(timeout, stop))


def granted(kind: typing.Callable[[ctypes.c_void_p], _T], begin: Begins, timeout: float | None, stop: Stop | None,
            to_its_end: bool = False) -> _T:
    """Waits in the calling thread, and returns what was granted. If a signal interrupts the call, the grant is dropped."""
    if timeout == 0 or not is_main_thread():
        there = ctypes.c_void_p()
        try:
            begin(blocking(timeout, stop), ctypes.byref(there))
            return kind(there)
        except BaseException:
            _abi.drop(there.value)
            raise
    event = _abi.Event()
    try:
        wait_seeing_signals(lambda how: begin(how, None), timeout, stop, event, to_its_end)
        return kind(ctypes.c_void_p(event.lease))
    except BaseException:
        _abi.drop(event.lease)
        raise


async def _until_ended(call_under_way: asyncio.Future[_abi.Event]) -> None:
    """Waits for the end of the call, even if the task is cancelled again meanwhile."""
    while not call_under_way.done():
        try:
            await asyncio.wait({call_under_way})
        except asyncio.CancelledError:
            pass
    if not call_under_way.cancelled():
        call_under_way.exception()  # marks the exception as retrieved: no other code reads it


_main_thread = threading.main_thread().ident  # a forked child may have another one


def is_main_thread() -> bool:
    return threading.get_ident() == _main_thread


class _Loss:
    """The loss of one lease, for all tasks of one event loop that wait for it."""

    def __init__(self, tag: int, told: asyncio.Future[_abi.Event]) -> None:
        self.tag = tag
        self.told = told
        self.waiters = 0

    def tell(self) -> None:
        """May be called by any thread."""
        def tell() -> None:
            if not self.told.done():
                self.told.set_result(_abi.Event())
        try:
            self.told.get_loop().call_soon_threadsafe(tell)
        except RuntimeError:  # that loop has ended
            pass


class Loop:
    """The queue of one event loop, which watches its file descriptor. Only the loop refers to this object (as the reader of the
    descriptor), so both are destroyed together."""
    _all: typing.ClassVar[weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.ref[Loop]]] = weakref.WeakKeyDictionary()

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._queue = Queue()
        self._waiting: dict[int, asyncio.Future[_abi.Event]] = {}
        self._losses: dict[int, _Loss] = {}
        self._losing = threading.RLock()  # reentrant: any thread, a signal handler and the collector may release a lease
        self._tags = itertools.count(1)
        loop.add_reader(self._queue.fd, self._tell)

    @classmethod
    def running(cls) -> Loop:
        loop = asyncio.get_running_loop()
        known = cls._all.get(loop)
        found = known() if known else None
        if found is None:
            found = cls(loop)
            cls._all[loop] = weakref.ref(found)
        return found

    @classmethod
    def forget_all(cls) -> None:
        """Called in a forked child. A thread of the parent may have held a mutex during the fork, and the child lacks that thread: so each
        mutex is made anew."""
        for known in list(cls._all.values()):
            if found := known():
                found._losing = threading.RLock()
        cls._all = weakref.WeakKeyDictionary()

    def _tell(self) -> None:
        while True:
            came = Came()
            try:
                if not self._queue.next(came):
                    return
                self._pass_on(came)
            except BaseException:  # of a signal handler: the library does not report the event again
                self._pass_on(came)
                raise
            finally:
                self._waiting.pop(came.event.tag, None)

    def _pass_on(self, came: Came) -> None:
        """Passes the event to its waiter. A second call for the same event changes nothing."""
        event, waiting = came.event, self._waiting.get(came.event.tag)
        if waiting is not None and not waiting.done():
            failed = came.failure() if event.kind != _abi.LEASE_LOST else None
            if failed:
                waiting.set_exception(failed)
            else:
                waiting.set_result(event)
        elif event.kind != _abi.LEASE_LOST and event.lease:
            if waiting is None or waiting.cancelled() or waiting.result() is not event:
                self.give_back(event.lease)  # no task waits for it any more

    def _expected(self) -> tuple[int, asyncio.Future[_abi.Event]]:
        tag = next(self._tags)
        future: asyncio.Future[_abi.Event] = asyncio.get_running_loop().create_future()
        self._waiting[tag] = future
        return tag, future

    def give_back(self, granted: int | None) -> None:
        """Releases a grant that no caller receives. Does not wait for the store, because the loop has other tasks."""
        if granted and functions.release(ctypes.c_void_p(granted), ctypes.byref(_abi.Wait(queue=self._queue._handle)), None):
            functions.close(granted, None)  # for an arrival, and if the release could not begin

    async def outcome(self, start: Starts, timeout: float | None, stop: Stop | None = None, to_its_end: bool = False,
                      undo: typing.Callable[[_abi.Event], None] | None = None) -> _abi.Event:
        """Starts a call, and waits for its event. If the task is cancelled, the call is stopped, and the task may have to wait for its end.
        If the lock was granted at that moment, the grant is undone."""
        own = part_of(stop)
        tag, future = self._expected()
        begun = False
        try:
            start(ctypes.byref(_abi.Wait(timeout_ns=_abi.nanoseconds(timeout), stop=own._handle, queue=self._queue._handle, tag=tag)))
            begun = True
            return await (asyncio.shield(future) if to_its_end else future)
        except BaseException as why:  # also GeneratorExit in a task that outlived its loop, and any exception of a signal handler
            own.request()
            if begun and to_its_end and isinstance(why, asyncio.CancelledError):
                await _until_ended(future)
            self._waiting.pop(tag, None)
            if future.done() and not future.cancelled() and not future.exception():
                if undo:
                    undo(future.result())
                else:
                    self.give_back(future.result().lease)
            raise

    async def granted(self, kind: typing.Callable[[ctypes.c_void_p], _T], start: Starts, timeout: float | None, stop: Stop | None = None,
                      to_its_end: bool = False) -> _T:
        """Waits, and returns what was granted. If the task is interrupted, the grant is released."""
        event: _abi.Event | None = None
        try:
            event = await self.outcome(start, timeout, stop, to_its_end)
            return kind(ctypes.c_void_p(event.lease))
        except BaseException:
            if event:
                self.give_back(event.lease)
            raise

    async def loss_of(self, lease: int) -> None:
        """Waits for the loss of a lease. The library watches the lease once for all tasks of this loop. When the lease is released, call
        forget()."""
        with self._losing:
            loss = self._losses.get(lease) or self._watch(lease)
            loss.waiters += 1
        try:
            await asyncio.shield(loss.told)
        finally:
            with self._losing:
                loss.waiters -= 1
                if not loss.waiters and self._losses.get(lease) is not loss:
                    self._waiting.pop(loss.tag, None)

    def _watch(self, lease: int) -> _Loss:
        loss = _Loss(*self._expected())
        try:
            call(functions.lease_watch, lease, self._queue._handle, loss.tag)
        except BaseException:
            del self._waiting[loss.tag]
            raise
        self._losses[lease] = loss
        return loss

    def forget(self, lease: int, lost: bool) -> None:
        """Called by any thread when a lease has ended. If the lease was released, tasks that wait for its loss continue to wait, and stay
        referenced."""
        with self._losing:
            loss = self._losses.pop(lease, None)
            if loss and (lost or not loss.waiters):
                self._waiting.pop(loss.tag, None)
        if loss and lost:
            loss.tell()


_again_after: typing.Final = 0.1  # seconds


class Watcher:
    """One thread that calls back when leases are lost."""

    def __init__(self) -> None:
        self._mutex = threading.RLock()  # as Loop._losing
        self._queue: Queue | None = None
        self._callbacks: dict[int, typing.Callable[[], None]] = {}
        self._tags = itertools.count(1)

    def watch(self, lease: int, callback: typing.Callable[[], None]) -> int:
        """Returns the tag with which forget() ends the watch."""
        with self._mutex:
            if self._queue is None:
                queue = Queue()
                threading.Thread(target=self._serve, args=(queue,), name="holdfast-losses", daemon=True).start()
                self._queue = queue
            tag = next(self._tags)
            self._callbacks[tag] = callback
        try:
            call(functions.lease_watch, lease, self._queue._handle, tag)
        except BaseException:
            self.forget(tag, lost=False)
            raise
        return tag

    def forget(self, tag: int, lost: bool) -> None:
        """Ends the watch of a lease that has ended."""
        callback = self._callbacks.pop(tag, None)
        if callback and lost:
            threading.Thread(target=callback, name="holdfast-losses", daemon=True).start()

    def _serve(self, queue: Queue) -> None:
        with contextlib.suppress(errors.InvalidArgument, errors.Cancelled):  # the queue is closed, because the program ends
            self._tell(queue)

    def _tell(self, queue: Queue) -> None:
        poll = select.poll()
        poll.register(queue.fd, select.POLLIN)
        while True:
            poll.poll()
            while came := self._next(queue):
                callback = self._callbacks.pop(came.event.tag, None)
                if callback:
                    try:
                        callback()
                    except BaseException as why:  # reported like an uncaught exception of a thread
                        threading.excepthook(threading.ExceptHookArgs((type(why), why, why.__traceback__, threading.current_thread())))

    @staticmethod
    def _next(queue: Queue) -> Came:
        """The next event. If memory runs out for a moment, tries again: the event is still there, and no other thread reports losses."""
        came = Came()
        try:
            queue.next(came)
        except (errors.Overloaded, MemoryError):
            if not came:
                time.sleep(_again_after)
        return came


watcher = Watcher()


def _in_a_forked_child() -> None:
    # The queues and threads belong to the parent, and the library refuses the parent's handles here.
    global watcher, _main_thread
    watcher, _main_thread = Watcher(), threading.get_ident()
    forget_idle()
    Loop.forget_all()


os.register_at_fork(after_in_child=_in_a_forked_child)
