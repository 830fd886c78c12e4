"""What the package promises, on each store."""
import asyncio
import concurrent.futures
import contextlib
import ctypes
import gc
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import unittest.mock

import holdfast
from holdfast import _abi, _waits, errors
from stores import REPOSITORY, URLS, OnAStore, Redis, on_each_store

FUTEX = "98" if os.uname().machine == "aarch64" else "202"


def await_waiters(session, name, count, goes_on):
    while session.show(name).waiters < count:
        if not goes_on():
            raise AssertionError("it ended without waiting")


def interrupted(function):
    """Ctrl-C in the moment in which the library returns."""
    def and_then(*arguments):
        function(*arguments)
        raise KeyboardInterrupt
    return and_then


def on_another_thread(work):
    """What it raises is raised here."""
    with concurrent.futures.ThreadPoolExecutor(1) as other:
        return other.submit(work).result()


@on_each_store
class Locks:
    def test_a_with_statement_holds_and_releases(self):
        with self.here.mutex("m", timeout=30) as lease:
            self.assertFalse(lease.lost)
            self.assertIs(lease.state, holdfast.State.HELD)
            self.assertGreater(lease.remaining, 0)
            self.assertTrue(lease.name.endswith("m"))
            self.assertIsNone(self.there.mutex("m").try_acquire())
            first = lease.fence
        self.assertIs(lease.state, holdfast.State.RELEASED)
        with self.there.mutex("m", timeout=30) as lease:
            self.assertGreater(lease.fence, first)

    def test_a_lock_outlives_its_session(self):
        with self.open().mutex("m", timeout=30) as lease:
            lease.check()

    def test_one_try_is_busy_and_a_wait_times_out(self):
        with self.here.fair_mutex("m"):
            with self.assertRaises(holdfast.Busy):
                self.there.mutex("m", timeout=0).acquire()
            with self.assertRaises(TimeoutError) as raised:
                self.there.mutex("m", timeout=0.05).acquire()
            self.assertIsInstance(raised.exception, holdfast.TimedOut)
            self.assertIsNone(self.there.mutex("m").try_acquire(0.01))

    def test_a_lock_can_be_entered_by_many_threads(self):
        lock, inside, most, guard = self.here.mutex("m"), [], [], threading.Lock()

        def work():
            for _ in range(20):
                with lock as lease:
                    with guard:
                        inside.append(lease.fence)
                        most.append(len(inside))
                    with guard:
                        inside.pop()
        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(len(most), 160)
        self.assertEqual(max(most), 1)

    def test_a_stop_ends_waits_of_this_and_other_threads(self):
        stop, ended = holdfast.Stop(), []

        def wait():
            try:
                self.there.mutex("m").acquire(stop=stop)
            except holdfast.Error as why:
                ended.append(type(why))
        with self.here.mutex("m"):
            waiting = threading.Thread(target=wait)
            waiting.start()
            await_waiters(self.here, "m", 1, waiting.is_alive)
            stop.request()
            waiting.join()
            with self.assertRaises(holdfast.Cancelled):
                self.there.mutex("m").acquire(stop=stop)
            with self.assertRaises(holdfast.Cancelled):
                self.there.limiter("r", holdfast.Rule(1, per=3600)).take(stop=stop)
        self.assertEqual(ended, [holdfast.Cancelled])

    def test_a_second_release_is_not_owner(self):
        lease = self.here.mutex("m").acquire()
        lease.release()
        with self.assertRaises(holdfast.NotOwner):
            lease.release()
        with self.assertRaises(holdfast.NotOwner):
            lease.check()

    def test_a_lease_that_nobody_keeps_is_released(self):
        self.here.mutex("m").acquire()
        self.assertIsNotNone(self.there.mutex("m").try_acquire(30))

    def test_an_interrupt_in_the_moment_of_a_grant_leaves_nothing_taken(self):
        for function, timeout in (("acquire", None), ("acquire", 0), ("queue_next_decision", 30)):
            with self.subTest(function=function, timeout=timeout):
                with unittest.mock.patch.object(_abi.functions, function, interrupted(getattr(_abi.functions, function))):
                    with self.assertRaises(KeyboardInterrupt):
                        self.here.mutex("m").acquire(timeout)
                self.assertIsNotNone(self.there.mutex("m").try_acquire(5))

    def test_an_interrupt_anywhere_at_the_beginning_of_a_with_block_leaves_nothing_taken(self):
        ours = str(REPOSITORY / "bindings/python")
        mutex, other = self.here.mutex("m"), self.there.mutex("m")
        unheard, steps, left = unittest.mock.Mock(), 0, 0

        def interrupt(frame, event, _):
            nonlocal left
            if not frame.f_code.co_filename.startswith(ours) or frame.f_code.co_name == "__del__":  # nobody would hear of it there
                return None
            if event == "line":
                left -= 1
                if left == 0:
                    raise KeyboardInterrupt
            return interrupt
        with unittest.mock.patch("sys.unraisablehook", unheard):
            while left == 0:  # at the first line, at the second, ... until the block has begun before that
                steps += 1
                left = steps
                try:
                    sys.settrace(interrupt)
                    with mutex:
                        sys.settrace(None)
                except KeyboardInterrupt:
                    sys.settrace(None)
                self.assertEqual(mutex._entered._leases, {}, steps)
                self.assertIsNotNone(other.try_acquire(5), steps)
        self.assertGreater(steps, 10)
        unheard.assert_not_called()

    def test_an_interrupt_anywhere_at_the_end_of_a_with_block_leaves_nothing_taken(self):
        ours = str(REPOSITORY / "bindings/python")
        mutex, other = self.here.mutex("m"), self.there.mutex("m")
        steps, left = 0, 0

        def interrupt(frame, event, _):
            nonlocal left
            if frame.f_code.co_name == "__del__":  # the block has ended, and nobody would hear of it there
                sys.settrace(None)
            if not frame.f_code.co_filename.startswith(ours) or sys.gettrace() is None:
                return None
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
            return interrupt
        while left == 0:  # at the call, at the first line, ... until the block has ended before that
            steps += 1
            left = steps
            try:
                with mutex as lease:
                    sys.settrace(interrupt)
                sys.settrace(None)
            except KeyboardInterrupt:
                sys.settrace(None)
            self.assertIs(lease.state, holdfast.State.RELEASED, steps)
            self.assertIsNotNone(other.try_acquire(5), steps)
        self.assertGreater(steps, 10)

    def test_an_interrupt_on_the_way_to_the_end_of_a_block_that_names_no_lease_leaves_nothing_taken(self):
        mutex = self.here.mutex("m")

        def interrupt(frame, event, _):
            if frame.f_code.co_name == "__exit__":
                raise KeyboardInterrupt
        with self.assertRaises(KeyboardInterrupt):
            try:
                with mutex:
                    sys.settrace(interrupt)
            finally:
                sys.settrace(None)
        self.assertIsNotNone(self.there.mutex("m").try_acquire(5))

    def test_blocks_of_one_thread_that_overlap_end_their_own_leases(self):
        both, leases = self.here.semaphore("s", 2), []

        def block():
            with both as lease:
                leases.append(lease)
                yield
        first, second = block(), block()
        next(first), next(second)
        first.close()
        self.assertEqual([lease.state for lease in leases], [holdfast.State.RELEASED, holdfast.State.HELD])
        second.close()
        self.assertIs(leases[1].state, holdfast.State.RELEASED)

    def test_an_end_that_is_kept_ends_each_block_that_it_is_called_for(self):
        mutex = self.here.mutex("m")
        enter, end = mutex.__enter__, mutex.__exit__
        for _ in range(3):
            lease = enter()
            end(None, None, None)
            self.assertIs(lease.state, holdfast.State.RELEASED)

    def test_an_end_that_is_kept_and_not_called_leaves_the_block_to_the_one_that_is_called(self):
        mutex = self.here.mutex("m")
        kept = mutex.__exit__
        lease = mutex.__enter__()
        with self.assertRaises(RuntimeError):
            on_another_thread(lambda: mutex.__exit__(None, None, None))
        mutex.__exit__(None, None, None)
        self.assertIs(lease.state, holdfast.State.RELEASED)
        with self.assertRaises(RuntimeError):
            kept(None, None, None)

        async def enter_and_leave():
            kept = mutex.__aexit__
            lease = await mutex.__aenter__()
            await mutex.__aexit__(None, None, None)
            self.assertIs(lease.state, holdfast.State.RELEASED)
            del kept
        asyncio.run(enter_and_leave())

    def test_of_two_ends_that_are_kept_the_inner_block_ends_first(self):
        both = self.here.semaphore("s", 2)
        kept, leases = [], []
        for _ in range(2):
            kept.append(both.__exit__)
            leases.append(both.__enter__())
        both.__exit__(None, None, None)
        self.assertEqual([lease.state for lease in leases], [holdfast.State.HELD, holdfast.State.RELEASED])
        both.__exit__(None, None, None)
        self.assertIs(leases[0].state, holdfast.State.RELEASED)

    def test_blocks_of_one_task_that_overlap_end_their_own_leases(self):
        both, leases = self.here.semaphore("s", 2), []

        async def block():
            async with both as lease:
                leases.append(lease)
                yield

        async def overlap():
            first, second = block(), block()
            await first.__anext__(), await second.__anext__()
            await first.aclose()
            self.assertEqual([lease.state for lease in leases], [holdfast.State.RELEASED, holdfast.State.HELD])
            await second.aclose()
            self.assertIs(leases[1].state, holdfast.State.RELEASED)
        asyncio.run(overlap())

    def test_a_block_that_outlives_its_event_loop_is_released_at_its_end(self):
        mutex, leases = self.here.mutex("m"), []

        async def hold(stack):
            if stack:
                async with contextlib.AsyncExitStack() as block:
                    leases.append(await block.enter_async_context(mutex))
                    await asyncio.get_running_loop().create_future()
            async with mutex as lease:
                leases.append(lease)
                await asyncio.get_running_loop().create_future()
        for stack in (False, True):
            loop = asyncio.new_event_loop()
            holding = hold(stack)
            task = loop.create_task(holding)
            task._log_destroy_pending = False
            while not leases:
                loop.run_until_complete(asyncio.sleep(0))
            loop.close()
            holding.close()
            self.assertIs(leases.pop().state, holdfast.State.RELEASED)
            self.assertIsNotNone(self.there.mutex("m").try_acquire(5))

    def test_a_block_whose_beginning_has_failed_is_nobodys(self):
        mutex, kept = self.here.mutex("m", timeout=0), []
        with self.there.mutex("m"):
            try:
                with mutex:
                    pass
            except holdfast.Busy as why:
                kept.append(why)  # and the frames
        lease = mutex.__enter__()
        mutex.__exit__(None, None, None)
        self.assertIs(lease.state, holdfast.State.RELEASED)
        with contextlib.ExitStack() as stack:
            ends = mutex.__exit__  # never called
            lease = stack.enter_context(mutex)
            del ends
            self.assertIs(lease.state, holdfast.State.HELD)
        self.assertIs(lease.state, holdfast.State.RELEASED)

    def test_an_interrupt_in_the_moment_in_which_an_arrival_is_told_ends_the_call_and_the_arrival(self):
        taken = []

        def interrupted_once(queue, timeout, event, decision, why, take=_abi.functions.queue_next_decision):
            code = take(queue, timeout, event, decision, why)
            if code == 0 or taken:
                taken.append(event._obj.lease)
                raise KeyboardInterrupt
            return code
        with unittest.mock.patch.object(_abi.functions, "queue_next_decision", interrupted_once):
            with self.assertRaises(KeyboardInterrupt):
                self.here.barrier("b", 2).arrive(30)
        self.assertEqual(len(taken), 1)
        self.assertEqual(_abi.functions.close(taken[0], None), holdfast.InvalidArgument.code, "it is closed already")

    def test_waits_of_the_main_thread_open_one_queue(self):
        opened, limiter, mutex = [], self.here.limiter("r", holdfast.Rule(10**6)), self.here.mutex("m")

        def counted(*arguments, queue_open=_abi.functions.queue_open):
            opened.append(arguments)
            return queue_open(*arguments)
        _waits.forget_idle()
        with unittest.mock.patch.object(_abi.functions, "queue_open", counted):
            for _ in range(3):
                self.assertTrue(limiter.take())
                with mutex.acquire(30), self.assertRaises(holdfast.TimedOut):
                    self.there.mutex("m").acquire(0.01)
        self.assertEqual(len(opened), 1)

    def test_what_comes_after_an_interrupted_wait_is_not_told_to_the_next(self):
        mutex, begin = self.here.mutex("m"), _abi.functions.acquire
        self.here.mutex("other").acquire(30).release()  # so there is a queue
        with unittest.mock.patch.object(_abi.functions, "acquire", interrupted(begin)), self.assertRaises(KeyboardInterrupt):
            mutex.acquire(30)
        lease = self.here.mutex("other").acquire(30)
        self.assertTrue(lease.name.endswith("other"))
        self.assertIsNotNone(self.there.mutex("m").try_acquire(30))

    def test_the_stop_of_one_wait_ends_no_other(self):
        with self.there.mutex("m"):
            stop = holdfast.Stop()
            stop.request()
            for how, why in (({"stop": stop}, holdfast.Cancelled), ({}, holdfast.TimedOut), ({"stop": stop}, holdfast.Cancelled)):
                with self.assertRaises(why):
                    self.here.mutex("m").acquire(0.01, **how)

    def test_a_wait_that_fails_leaves_nothing_to_the_collector(self):
        def queues():
            return sum(isinstance(one, _waits.Queue) for one in gc.get_objects())
        self.here.mutex("m").acquire(30).release()  # one is kept
        with self.there.mutex("m"):
            gc.collect()
            gc.disable()
            self.addCleanup(gc.enable)
            before = queues()
            for how in ({"timeout": 0.01}, {"timeout": 1, "stop": holdfast.Stop()}):
                if "stop" in how:
                    how["stop"].request()
                try:
                    self.here.mutex("m").acquire(**how)
                except holdfast.Error:
                    pass
                self.assertEqual(queues(), before)

    def test_a_release_that_is_interrupted_happens_when_the_lease_goes(self):
        lease = self.here.mutex("m").acquire()
        with unittest.mock.patch.object(_abi.functions, "release", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                lease.release()
        del lease
        self.assertIsNotNone(self.there.mutex("m").try_acquire(5))

    def test_a_try_that_finds_no_store_is_followed_by_a_wait(self):
        cut = [True]

        def acquire(function, *arguments):
            if function is _abi.functions.acquire and cut and cut.pop():
                raise holdfast.Unavailable("cut")
            return _abi.call(function, *arguments)
        with unittest.mock.patch("holdfast.locks.call", acquire):
            self.here.mutex("m").acquire().release()
        self.assertEqual(cut, [])

    def test_what_watches_a_lease_goes_with_it(self):
        before = len(_waits.watcher._callbacks)
        for give_up in (holdfast.Lease.release, holdfast.Lease.close):
            lease = self.here.mutex("m").acquire()
            lease.on_loss(lambda: None)
            give_up(lease)
            with self.assertRaises(holdfast.NotOwner):
                lease.on_loss(lambda: None)
        self.assertEqual(len(_waits.watcher._callbacks), before)

    def test_a_loss_is_told_and_a_with_statement_does_not_overlook_it(self):
        told = threading.Event()
        quick = holdfast.LockOptions(lease=2)
        with self.assertRaises(holdfast.Lost) as raised:
            with self.here.mutex("m", options=quick) as lease:
                lease.on_loss(told.set)
                self.assertEqual(self.there.force_release("m"), 1)
                self.assertTrue(told.wait(30))
                self.assertTrue(lease.lost)
                with self.assertRaises(holdfast.Lost):
                    lease.check()
        self.assertTrue(raised.exception.lease_gone)

    def test_an_empty_short_id_takes_nothing_away(self):
        with self.here.mutex("m") as lease:
            with self.assertRaises(holdfast.InvalidArgument):
                self.there.force_release("m", "")
            self.assertIsNone(self.there.mutex("m").try_acquire())
            self.assertEqual(self.there.force_release("m", lease.short_id), 1)
            lease.close()

    def test_a_callback_that_ends_its_thread_does_not_end_the_others(self):
        told, quick = threading.Event(), holdfast.LockOptions(lease=0.3)
        with unittest.mock.patch("threading.excepthook") as reported:
            for name, callback in (("a", sys.exit), ("b", told.set)):
                lease = self.here.mutex(name, options=quick).acquire()
                lease.on_loss(callback)
                self.there.force_release(name)
                while not (told.is_set() or reported.called):
                    self.assertFalse(told.wait(0.01))
            self.assertTrue(told.wait(30))
        self.assertIs(reported.call_args[0][0].exc_type, SystemExit)

    def test_a_moment_without_memory_does_not_end_what_tells_losses(self):
        take, short, told = _waits.Came.take, [errors.Overloaded("none"), MemoryError()], threading.Event()

        def take_with_little_memory(came, queue):
            if short and threading.current_thread().name == "holdfast-losses":
                raise short.pop()
            take(came, queue)
        with unittest.mock.patch("holdfast._waits.watcher", _waits.Watcher()), \
                unittest.mock.patch("holdfast._waits.Came.take", take_with_little_memory):
            lease = self.here.mutex("m").acquire()
            lease.on_loss(told.set)
            self.there.force_release("m")
            with self.assertRaises(holdfast.Lost):
                lease.extend()
            self.assertTrue(told.wait(30))
        self.assertEqual(short, [])

    def test_a_watch_whose_thread_cannot_start_does_not_stand_for_the_next(self):
        told, quick = threading.Event(), holdfast.LockOptions(lease=0.3)
        with unittest.mock.patch.object(_waits, "watcher", _waits.Watcher()):
            lease = self.here.mutex("m", options=quick).acquire()
            with unittest.mock.patch("threading.Thread.start", side_effect=RuntimeError), self.assertRaises(RuntimeError):
                lease.on_loss(told.set)
            lease.on_loss(told.set)
            self.there.force_release("m")
            self.assertTrue(told.wait(30))

    def test_another_thread_may_leave_the_block(self):
        lock, other, block = self.here.mutex("m"), self.here.mutex("n"), contextlib.ExitStack()
        lease = block.enter_context(lock)
        entering = threading.Thread(target=block.enter_context, args=(other,))
        entering.start()
        entering.join()
        self.assertIsNone(self.there.mutex("n").try_acquire(), "the thread that entered has ended, and the block has not")
        leaving = threading.Thread(target=block.close)
        leaving.start()
        leaving.join()
        self.assertIs(lease.state, holdfast.State.RELEASED)
        for name in ("m", "n"):
            self.assertIsNotNone(self.there.mutex(name).try_acquire(30))
        with self.assertRaises(RuntimeError):
            lock.__exit__(None, None, None)

    def test_a_wait_for_a_condition_that_cannot_begin_gives_the_mutex_back(self):
        condition = self.here.condition("c")

        async def wait(lease):
            await condition.wait_async(lease, 30)
        for begin in (lambda lease: condition.wait(lease, 30), lambda lease: asyncio.run(wait(lease))):
            lease = self.here.mutex("m").acquire()
            _waits.forget_idle()
            with unittest.mock.patch.object(_abi.functions, "queue_open", lambda *_: holdfast.Overloaded.code):
                with self.assertRaises(holdfast.Overloaded):
                    begin(lease)
            self.assertIs(lease.state, holdfast.State.RELEASED)
            self.assertIsNotNone(self.there.mutex("m").try_acquire(30))

    def test_a_wait_for_a_condition_that_cannot_be_leaves_the_mutex_held(self):
        lease = self.here.mutex("m").acquire()
        for timeout, why in ((float("nan"), holdfast.InvalidArgument), ("soon", TypeError)):
            with self.assertRaises(why):
                self.here.condition("c").wait(lease, timeout)
        lease.check()

    def test_what_a_signal_handler_raises_is_not_taken_for_a_wait_for_a_condition_that_has_not_begun(self):
        condition = self.here.condition("c")
        for error in (holdfast.NotOwner, holdfast.InvalidArgument, holdfast.Unsupported, TypeError):
            def begun_and_interrupted(*arguments, begin=_abi.functions.condition_wait):
                self.assertEqual(begin(*arguments), 0)
                raise error("of a handler")
            told, lease = threading.Event(), self.here.mutex("m").acquire()
            lease.on_loss(told.set)
            with unittest.mock.patch.object(_abi.functions, "condition_wait", begun_and_interrupted), self.assertRaises(error):
                condition.wait(lease, 30)
            self.assertIs(lease.state, holdfast.State.RELEASED)
            self.assertTrue(told.wait(30))
            self.assertIsNotNone(self.there.mutex("m").try_acquire(30))

    def test_a_second_wait_for_a_condition_with_a_lease_leaves_it_to_the_first(self):
        condition, told = self.here.condition("c"), []
        lease = self.here.mutex("m").acquire()
        waiting = threading.Thread(target=lambda: told.append(condition.wait(lease, 30)))
        waiting.start()
        with self.there.mutex("m"):  # so it waits
            with self.assertRaises(holdfast.NotOwner):
                condition.wait(lease, 30)
            with self.assertRaises(holdfast.InvalidArgument):
                condition.wait(lease, float("nan"))
            condition.notify_all()
        waiting.join()
        self.assertEqual(told, [True])
        lease.release()

    def test_a_failed_wait_for_a_condition_is_told_to_who_watches_the_lease(self):
        condition, stop = self.here.condition("c"), holdfast.Stop()
        stop.request()

        async def cancelled(lease):
            waiting = asyncio.create_task(condition.wait_async(lease))
            while self.there.show("m").holders:
                await asyncio.sleep(0)
            waiting.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await waiting

        async def called_off(lease):
            with self.assertRaises(holdfast.Cancelled):
                condition.wait(lease, stop=stop)

        async def watch(fail):
            told, lease = threading.Event(), await self.here.mutex("m").acquire_async()
            lease.on_loss(told.set)
            lost = asyncio.create_task(lease.until_lost())
            await asyncio.sleep(0)
            await fail(lease)
            await asyncio.wait_for(lost, 30)
            self.assertTrue(told.wait(30))
            self.assertIs(lease.state, holdfast.State.RELEASED)
            loop = _waits.Loop.running()
            self.assertEqual((loop._losses, loop._waiting), ({}, {}))
        for fail in (cancelled, called_off):
            asyncio.run(watch(fail))

    def test_what_the_body_raises_goes_through(self):
        with self.assertRaises(ZeroDivisionError):
            with self.here.mutex("m"):
                1 / 0
        self.assertIsNotNone(self.there.mutex("m").try_acquire(30))

    def test_an_extended_lease_has_the_new_length(self):
        with self.here.mutex("m", options=holdfast.LockOptions(lease=20, renew=False, reason="tests")) as lease:
            self.assertLessEqual(lease.remaining, 20)
            lease.extend(3600)
            self.assertGreater(lease.remaining, 1000)
            with self.assertRaises(ValueError):
                lease.extend(0)

    def test_readers_share_and_a_writer_excludes(self):
        mine, theirs = self.here.shared_mutex("rw"), self.there.shared_mutex("rw")
        with mine.shared() as a:
            with theirs.shared():
                self.assertIsNone(theirs.try_acquire())
                self.assertFalse(mine.try_upgrade(a))
            self.assertTrue(mine.try_upgrade(a))
            self.assertIsNone(theirs.shared().try_acquire())
            mine.downgrade(a)
            self.assertIsNotNone(theirs.shared().try_acquire())
        with self.assertRaises(holdfast.InvalidArgument):
            self.here.shared_mutex("rw", preference="nobody")

    def test_a_semaphore_gives_so_many_permits(self):
        mine, theirs = self.here.semaphore("s", 3), self.there.semaphore("s", 3)
        with mine.permits(2):
            self.assertEqual(theirs.available(), 1)
            self.assertIsNone(theirs.permits(2).try_acquire())
            with theirs:
                self.assertEqual(mine.available(), 0)
        with mine, self.assertRaises(holdfast.CapacityMismatch):
            self.there.semaphore("s", 4).acquire(0)

    def test_a_multi_lock_takes_all_or_nothing(self):
        both = holdfast.multi_lock(self.here.mutex("a"), self.here.semaphore("s", 3).permits(2), self.here.shared_mutex("rw").shared())
        with self.there.mutex("a"):
            self.assertIsNone(both.try_acquire())
        with both as lease:
            self.assertEqual(len(lease.fences), 3)
            self.assertIsNone(self.there.mutex("a").try_acquire())
            self.assertIsNotNone(self.there.shared_mutex("rw").shared().try_acquire())

    def test_one_leads_and_all_can_read_who(self):
        mine, theirs = self.here.election("e", note="here"), self.there.election("e")
        self.assertIsNone(theirs.leader())
        with mine as leadership:
            leader = theirs.leader()
            self.assertEqual((leader.term, leader.note, leader.pid), (leadership.fence, "here", os.getpid()))
            self.assertIsNone(theirs.try_acquire())
            seen = theirs.observe()
            self.assertEqual(seen.next().term, leadership.fence)
            with self.assertRaises(holdfast.TimedOut):
                seen.next(0.05)

    def test_latches_barriers_and_conditions_meet(self):
        latch = self.here.latch("l", 2)
        with self.assertRaises(holdfast.Busy):
            latch.wait(0)
        latch.count_down(2)
        latch.wait(30)
        self.assertEqual(latch.remaining(), 0)
        latch.remove()
        mine, theirs = self.here.barrier("b", 2), self.there.barrier("b", 2)
        arrival = mine.arrive()
        with self.assertRaises(holdfast.TimedOut):
            mine.wait(arrival, 0.05)
        theirs.arrive_and_wait(30)
        mine.wait(arrival, 30)
        condition = self.here.condition("c")
        lease = self.here.mutex("m").acquire()
        self.assertFalse(condition.wait(lease, 0.05))
        waiting = threading.Thread(target=condition.wait, args=(lease, 30))
        before = lease.fence
        waiting.start()
        with self.there.mutex("m"):  # so it waits
            self.assertEqual(self.there.condition("c").notify_one(), 1)
        waiting.join()
        self.assertGreater(lease.fence, before)
        self.assertEqual(self.there.condition("c").notify_all(), 0)

    def test_a_lease_that_is_closed_during_a_wait_for_a_condition_is_not_held(self):
        condition, lease, told = self.here.condition("c"), self.here.mutex("m").acquire(), []

        def wait():
            try:
                told.append(condition.wait(lease, 30))
            except holdfast.Error as why:
                told.append(type(why))
        waiting = threading.Thread(target=wait)
        waiting.start()
        with self.there.mutex("m"):  # so it waits
            lease.close()
            condition.notify_all()
        waiting.join()
        self.assertEqual(told, [holdfast.Cancelled])
        self.there.mutex("m").acquire(30).release()

    def test_a_release_that_is_refused_during_a_wait_for_a_condition_changes_nothing(self):
        mutex, condition, told = self.here.mutex("m"), self.here.condition("c"), []
        lease = mutex.acquire()
        lease.on_loss(lambda: None)

        def wait():
            with lease:
                told.append(condition.wait(lease, 30))
        waiting = threading.Thread(target=wait)
        waiting.start()
        with self.there.mutex("m"):  # so it waits
            with self.assertRaises(holdfast.NotOwner):
                lease.release()
            self.assertTrue(lease._watches)
            condition.notify_all()
        waiting.join()
        self.assertEqual(told, [True])
        self.assertIs(lease.state, holdfast.State.RELEASED)
        self.assertIsNotNone(self.there.mutex("m").try_acquire(5))

    def test_an_arrival_that_waits_for_the_last_phase_has_a_limit(self):
        mine, theirs = self.here.barrier("b", 3), self.there.barrier("b", 3)
        stop, told = holdfast.Stop(), []
        stop.request()

        def in_vain():
            for arrives in (mine.arrive_and_wait, mine.arrive, mine.arrive_and_drop):
                for error, how in ((holdfast.TimedOut, {"timeout": 0.02}), (holdfast.Busy, {"timeout": 0}),
                                   (holdfast.Cancelled, {"stop": stop})):
                    try:
                        raised = None
                        arrives(**how)
                    except holdfast.Error as why:
                        raised = type(why)
                    told.append(raised is error or (arrives.__name__, error, raised))
        mine.arrive().close()
        in_vain()
        self.assertEqual(self.here.show("b").waiters, 1)
        elsewhere = threading.Thread(target=lambda: (mine.arrive().close(), in_vain()))  # another participant, without signals
        elsewhere.start()
        elsewhere.join()
        self.assertEqual(self.here.show("b").waiters, 2)
        self.assertEqual(told, [True] * 18)
        theirs.arrive_and_wait(30)
        again = mine.arrive(30)
        self.assertEqual(self.here.show("b").waiters, 1)
        again.close()

    def test_tasks_of_one_loop_are_participants_by_their_barriers(self):
        async def one_after_the_other(mine, theirs):
            with self.assertRaises(holdfast.TimedOut):
                await mine.arrive_and_wait_async(0.01)
            await theirs.arrive_and_wait_async(0.01 if mine is theirs else 30)
        shared = self.here.barrier("shared", 2)
        with self.assertRaises(holdfast.TimedOut):
            asyncio.run(one_after_the_other(shared, shared))
        asyncio.run(one_after_the_other(self.here.barrier("own", 2), self.here.barrier("own", 2)))

    def test_a_limiter_gives_its_tokens_and_then_says_when(self):
        limiter = self.here.limiter("r", holdfast.Rule(3, per=3600, by=["client"], name="hourly"))
        taken = limiter.try_take(2, {"client": "acme"})
        self.assertTrue(taken)
        self.assertEqual((taken.remaining, taken.limit, taken.rule), (1, 3, "hourly"))
        refused = limiter.peek(2, {"client": "acme"})
        self.assertFalse(refused)
        self.assertGreater(refused.wait, 0)
        self.assertTrue(limiter.try_take(3, {"client": "apex"}))
        limiter.refund(1, {"client": "acme"})
        reserved = limiter.reserve(3, 3600, {"client": "acme"})
        self.assertTrue(reserved)
        self.assertEqual(reserved.tokens, 3)
        limiter.refund(reserved, {"client": "acme"})
        self.assertEqual(limiter.peek(2, {"client": "acme"}).remaining, 2, "as if it had not been reserved")
        with self.assertRaises(holdfast.InvalidArgument):
            limiter.refund(refused, {"client": "acme"})
        with self.assertRaises(holdfast.InvalidArgument):
            limiter.try_take(4, {"client": "acme"})

    def test_tokens_that_were_taken_without_a_thread_can_be_given_back(self):
        limiter = self.here.limiter("r", holdfast.Rule(3, per=3600, name="hourly"))
        taken = asyncio.run(limiter.take_async(2))
        self.assertEqual((taken.taken, taken.tokens, taken.remaining, taken.limit, taken.rule), (True, 2, 1, 3, "hourly"))
        self.assertGreater(taken.due[0], 0)
        limiter.refund(taken)
        self.assertEqual(limiter.peek().remaining, 3)
        refused = asyncio.run(limiter.take_async(3, timeout=0)), asyncio.run(limiter.take_async(1, timeout=0))
        self.assertEqual([bool(one) for one in refused], [True, False])
        self.assertGreater(refused[1].wait, 0)

    def test_a_task_that_is_cancelled_gives_its_tokens_back(self):
        limiter = self.here.limiter("r", holdfast.Rule(3, per=3600))

        async def cancelled_when_they_are_taken():
            def and_cancel(loop, came, pass_on=_waits.Loop._pass_on):
                pass_on(loop, came)
                task.cancel()
            with unittest.mock.patch.object(_waits.Loop, "_pass_on", and_cancel):
                task = asyncio.create_task(limiter.take_async(2))
                await asyncio.wait({task})
            self.assertTrue(task.cancelled())

        async def cancelled_while_it_waits():
            task = asyncio.create_task(limiter.take_async(3))
            while limiter.peek().wait <= 3600:
                await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
        asyncio.run(cancelled_when_they_are_taken())
        self.assertEqual(limiter.peek().remaining, 3)
        self.assertTrue(limiter.try_take(3))
        asyncio.run(cancelled_while_it_waits())
        while limiter.peek().wait > 3600:  # they come back soon after
            pass

    def test_an_interrupt_in_the_moment_in_which_tokens_are_told_gives_them_back(self):
        limiter = self.here.limiter("r", holdfast.Rule(3, per=3600))
        take = _abi.functions.queue_next_decision
        with unittest.mock.patch.object(_abi.functions, "queue_next_decision", interrupted(take)):
            with self.assertRaises(KeyboardInterrupt):
                limiter.take(2)
        self.assertEqual(limiter.peek().remaining, 3)

    def test_asyncio_waits_without_a_thread(self):
        async def worker(lock, seen):
            async with lock as lease:
                seen.append(lease.fence)

        async def all_of_them():
            seen = []
            mine, theirs = self.here.mutex("m"), self.there.mutex("m")
            async with mine:
                waiting = [asyncio.create_task(worker(lock, seen)) for lock in (mine, theirs) * 10]
                with self.assertRaises(holdfast.TimedOut):
                    await theirs.acquire_async(0.01)
                with self.assertRaises(holdfast.Busy):
                    await theirs.acquire_async(0)
                self.assertEqual(seen, [])
            await asyncio.gather(*waiting)
            self.assertEqual(len(seen), 20)
            self.assertEqual(seen, sorted(seen))
        before = threading.active_count()
        asyncio.run(all_of_them())
        self.assertEqual(threading.active_count(), before)

    def test_a_cancelled_task_leaves_the_queue(self):
        async def cancelled():
            async with self.here.mutex("m"):
                waiting = asyncio.create_task(self.there.mutex("m").acquire_async())
                while self.here.show("m").waiters == 0:
                    await asyncio.sleep(0)
                waiting.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await waiting
                while self.here.show("m").waiters:
                    await asyncio.sleep(0)
        asyncio.run(cancelled())
        self.assertIsNotNone(self.there.mutex("m").try_acquire(30))

    def test_what_a_loop_waits_with_goes_with_it(self):
        async def cancelled_at_the_end(kept):
            kept.append(asyncio.create_task(self.there.mutex("m").acquire_async()))
            await asyncio.sleep(0)

        def left_behind():
            loop = asyncio.new_event_loop()
            task = loop.create_task(self.there.mutex("m").acquire_async())
            task._log_destroy_pending = False
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()

        def queues():
            gc.collect()
            return sum(isinstance(one, _waits.Queue) for one in gc.get_objects())
        with self.here.mutex("m"):
            before = queues()
            for end in (lambda: asyncio.run(cancelled_at_the_end([])), left_behind):
                for _ in range(3):
                    end()
                self.assertEqual(queues(), before)
            while self.here.show("m").waiters:  # until all are called off
                pass

    def test_a_lock_that_a_loop_is_granted_after_its_end_is_free(self):
        held, loop = self.here.mutex("m").acquire(), asyncio.new_event_loop()
        task = loop.create_task(self.there.mutex("m", options=holdfast.LockOptions(lease=3600)).acquire_async())
        task._log_destroy_pending = False

        async def wait():
            while self.here.show("m").waiters == 0:
                await asyncio.sleep(0)
        loop.run_until_complete(wait())
        first = self.here.show("m").last_fence
        held.release()
        while self.here.show("m").last_fence == first:
            self.assertFalse(task.done())
        loop.close()
        del task, loop
        gc.collect()
        self.assertIsNotNone(self.here.mutex("m").try_acquire(30))

    def test_an_interrupt_anywhere_between_the_library_and_a_task_loses_no_event(self):
        mutex, steps, left, heard = self.here.mutex("m"), 0, 0, []

        def interrupt(frame, event, _):
            nonlocal left
            if frame.f_code not in told_by:
                return None
            if event != "return":
                left -= 1
                if left == 0:
                    raise ZeroDivisionError
            return interrupt

        async def acquire(held):
            asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context["exception"]))
            sys.settrace(interrupt)
            try:
                return await asyncio.wait_for(mutex.acquire_async(0.01 if held else None), 30)
            finally:
                sys.settrace(None)
        told_by = {one.__code__ for one in vars(_waits.Loop).values() if callable(one) and one.__name__ in ("_tell", "_pass_on")}
        told_by |= {one.__code__ for one in (_waits.Queue.next, _waits.Came.take)}
        while left == 0:
            steps += 1
            left = steps
            lease = asyncio.run(acquire(held=False))
            self.assertIsNone(self.there.mutex("m").try_acquire())
            before = left
            with self.assertRaises(holdfast.TimedOut):
                left = steps
                asyncio.run(acquire(held=True))
            left = min(left, before)
            lease.release()
        self.assertGreater(steps, 10)
        self.assertTrue(all(isinstance(one, ZeroDivisionError) for one in heard), heard)

    def test_another_task_may_leave_the_block(self):
        async def hand_over():
            lock = self.here.mutex("m")
            lease = await asyncio.create_task(lock.__aenter__())
            await asyncio.create_task(lock.__aexit__(None, None, None))
            self.assertIs(lease.state, holdfast.State.RELEASED)
            with self.assertRaises(RuntimeError):
                await lock.__aexit__(None, None, None)
        asyncio.run(hand_over())

    def test_the_end_of_a_block_that_cannot_begin_a_release_gives_the_lease_back(self):
        async def hold(lease):
            async with lease:
                pass
        lease = self.here.mutex("m").acquire()
        with unittest.mock.patch.object(_abi.functions, "queue_open", lambda *_: holdfast.Overloaded.code):
            with self.assertRaises(holdfast.Overloaded):
                asyncio.run(hold(lease))
        self.assertIs(lease.state, holdfast.State.RELEASED)
        self.assertIsNotNone(self.there.mutex("m").try_acquire(30))

    def test_a_release_outside_of_a_loop_that_fails_leaves_the_lease(self):
        lease = self.here.mutex("m").acquire()
        with self.assertRaises(RuntimeError):
            lease.release_async().send(None)
        self.assertIs(lease.state, holdfast.State.HELD)
        lease.release()

    def test_asyncio_learns_of_a_loss(self):
        async def lose():
            lease = await self.here.mutex("m", options=holdfast.LockOptions(lease=0.3)).acquire_async()
            lost = asyncio.create_task(lease.until_lost())
            await asyncio.sleep(0)
            self.there.force_release("m")
            await asyncio.wait_for(lost, 30)
            with self.assertRaises(holdfast.Lost):
                await lease.release_async()
        asyncio.run(lose())

    def test_a_lease_is_watched_once_for_all_tasks_of_a_loop(self):
        watches = []

        def counted(*arguments, watch=_abi.functions.lease_watch):
            watches.append(arguments)
            return watch(*arguments)

        async def job():
            pass

        async def wait_beside_jobs():
            lease = await self.here.mutex("m", options=holdfast.LockOptions(lease=0.3)).acquire_async()
            for _ in range(5):
                lost = asyncio.create_task(lease.until_lost())
                await asyncio.wait({lost, asyncio.create_task(job())}, return_when=asyncio.FIRST_COMPLETED)
                self.assertTrue(lost.cancel())
                await asyncio.wait({lost})
            self.there.force_release("m")
            await asyncio.wait_for(asyncio.gather(lease.until_lost(), lease.until_lost()), 30)
            await lease.until_lost()
            self.assertEqual(len(watches), 1)
            lease.close()
            with self.assertRaises(holdfast.NotOwner):
                await lease.until_lost()
            loop = _waits.Loop.running()
            self.assertEqual((loop._losses, loop._waiting), ({}, {}))
        with unittest.mock.patch.object(_abi.functions, "lease_watch", counted):
            asyncio.run(wait_beside_jobs())

    def test_a_task_that_waits_for_a_loss_is_kept_after_the_release(self):
        async def wait_in_vain():
            loop = _waits.Loop.running()
            for give_up in (holdfast.Lease.release, holdfast.Lease.close):
                lease = await self.here.mutex("m").acquire_async()
                lost = asyncio.create_task(lease.until_lost())
                await asyncio.sleep(0)
                give_up(lease)
                self.assertEqual((len(loop._losses), len(loop._waiting)), (0, 1))
                lost.cancel()
                await asyncio.wait({lost})
                self.assertEqual(len(loop._waiting), 0)
        asyncio.run(wait_in_vain())

    def test_a_lease_that_the_collector_finds_is_watched_no_longer(self):
        async def leave_a_cycle():
            lease = await self.here.mutex("m").acquire_async()
            lost = asyncio.create_task(lease.until_lost())
            await asyncio.sleep(0)
            lost.cancel()
            await asyncio.wait({lost})
            lease.itself = lease

        async def collect():
            await leave_a_cycle()
            await asyncio.sleep(0)
            gc.collect()
            loop = _waits.Loop.running()
            self.assertEqual((loop._losses, loop._waiting), ({}, {}))
        asyncio.run(collect())

    def test_asyncio_meets(self):
        async def meet():
            latch = self.here.latch("l", 2)
            await asyncio.gather(latch.wait_async(30), latch.count_down_async(), latch.count_down_async())
            await asyncio.gather(self.here.barrier("b", 2).arrive_and_wait_async(30), self.there.barrier("b", 2).arrive_and_wait_async(30))
            three, others = self.here.barrier("three", 3), [self.there.barrier("three", 3) for _ in range(2)]
            (await three.arrive_async(30)).close()
            for arrives in (three.arrive_async, three.arrive_and_wait_async, three.arrive_and_drop_async) * 5:
                arriving = asyncio.create_task(arrives())
                await asyncio.sleep(0)
                arriving.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await arriving
            self.assertEqual(self.here.show("three").waiters, 1)
            with self.assertRaises(holdfast.TimedOut):
                await three.arrive_async(0.02)
            dropped = asyncio.create_task(three.arrive_and_drop_async())
            await asyncio.gather(*(barrier.arrive_and_wait_async(30) for barrier in others))
            await dropped
            await asyncio.gather(*(barrier.arrive_and_wait_async(30) for barrier in others))
            condition, lease = self.here.condition("c"), await self.here.mutex("m").acquire_async()
            waiting = asyncio.create_task(condition.wait_async(lease, 30))
            await asyncio.sleep(0)
            async with self.there.mutex("m"):
                self.assertEqual(self.there.condition("c").notify_all(), 1)
            self.assertTrue(await waiting)
            lease.check()
            limiter = self.here.limiter("r", holdfast.Rule(1, per=3600))
            self.assertTrue(await limiter.take_async())
            self.assertFalse(await limiter.take_async(timeout=0))
        asyncio.run(meet())

    def test_a_child_of_fork_is_told_so_and_can_begin_anew(self):
        lock = self.here.mutex("m")
        with lock as lease:
            lease.on_loss(lambda: None)  # a thread and a queue of the parent's
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    for use in (lease.check, lock.try_acquire, lambda: self.here.show("m"), lease.release):
                        try:
                            use()
                        except holdfast.Forked:
                            continue
                        os._exit(2)
                    with self.open() as mine, mine.mutex("other", timeout=30) as own:
                        own.on_loss(lambda: None)
                        own.check()
                        if self.store != "memory" and mine.mutex("m").try_acquire():
                            os._exit(3)

                    async def wait():
                        async with self.open().mutex("third"):
                            pass
                    asyncio.run(wait())
                    code = 0
                finally:
                    os._exit(code)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            lease.check()

    def test_a_lease_can_go_in_a_child_of_fork_whatever_another_thread_did_then(self):
        async def fork_while_a_loss_is_begun_to_be_waited_for(lease):
            waiting = asyncio.create_task(lease.until_lost())
            await asyncio.sleep(0)
            losing, child = next(iter(lease._loops))._losing, -1

            def fork():
                nonlocal child
                child = os.fork()
                if child == 0:
                    signal.alarm(20)  # ends what waits for ever
                    lease.close()
                    os._exit(0)
            with losing:
                forking = threading.Thread(target=fork)
                forking.start()
                forking.join()
            waiting.cancel()
            return child
        with self.here.mutex("m") as lease:
            child = asyncio.run(fork_while_a_loss_is_begun_to_be_waited_for(lease))
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            lease.check()


class Errors(OnAStore):
    def test_each_code_has_an_exception(self):
        self.assertEqual(sorted(holdfast.errors.BY_CODE), list(range(1, 22)))
        for kind in holdfast.errors.BY_CODE.values():
            self.assertIs(getattr(holdfast, kind.__name__), kind)

    def test_an_error_says_what_where_and_whether_to_try_again(self):
        with self.here.mutex("kind"), self.assertRaises(holdfast.KindMismatch) as raised:
            self.there.semaphore("kind", 3).acquire(0)
        why = raised.exception
        self.assertIn("kind", str(why))
        self.assertTrue(why.name.endswith("kind") and why.operation and why.store)
        self.assertFalse(why.retryable or why.lease_gone)
        with self.assertRaises(ValueError):
            self.here.mutex("")
        with self.assertRaises(holdfast.InvalidName):
            self.here.mutex("a\0b")
        with self.assertRaises(holdfast.InvalidArgument) as raised:
            holdfast.open("rediss:/user:secret@x")
        self.assertNotIn("secret", str(raised.exception))

    def test_a_text_that_is_not_unicode_is_refused(self):
        limiter = self.here.limiter("r", holdfast.Rule(1))
        for what in (lambda: self.here.mutex("\ud800"), lambda: limiter.try_take(1, {"client": "\udc01"})):
            with self.assertRaises(holdfast.InvalidName):
                what()

    def test_what_is_closed_is_an_error(self):
        lock = self.here.mutex("m")
        lock.close()
        lock.close()
        with self.assertRaises(holdfast.InvalidArgument):
            lock.acquire()
        self.here.close()
        with self.assertRaises(holdfast.InvalidArgument):
            self.here.mutex("m")

    def test_numbers_that_do_not_fit_are_refused_and_not_cut(self):
        large = 2**32
        semaphore, latch = self.here.semaphore("s", 2), self.here.latch("l", 2)
        limiter = self.here.limiter("r", holdfast.Rule(tokens=5))
        for what in (lambda: self.here.semaphore("wide", large + 3),
                     lambda: semaphore.permits(large + 1).acquire(0),
                     lambda: holdfast.multi_lock(semaphore.permits(large + 1)),
                     lambda: self.here.latch("long", large + 3),
                     lambda: latch.count_down(large + 1),
                     lambda: self.here.barrier("b", large + 1),
                     lambda: self.here.limiter("q", holdfast.Rule(tokens=2**64 + 2)),
                     lambda: limiter.try_take(2**64 + 1),
                     lambda: self.here.mutex("m", options=holdfast.LockOptions(lease=2.0**64 / 1e3)),
                     lambda: self.here.election("e", priority=2**31)):
            with self.assertRaises(holdfast.InvalidArgument):
                what()
        self.assertEqual((semaphore.available(), latch.remaining()), (2, 2))

    def test_an_argument_of_a_wrong_type_is_refused_and_not_quoted(self):
        limiter, shared = self.here.limiter("r", holdfast.Rule(tokens=5, by=["c"])), self.here.shared_mutex("rw")
        mutex, condition, options = self.here.mutex("m"), self.here.condition("c"), holdfast.LockOptions
        for what in (lambda: self.here.mutex(b"secret"), lambda: self.here.mutex(4217), lambda: self.here.mutex(["secret"]),
                     lambda: self.here.mutex(None), lambda: self.here.show(None), lambda: self.here.force_release(None),
                     lambda: holdfast.open(None), lambda: holdfast.open("memory:", name_prefix=4217),
                     lambda: self.here.mutex("m", options=options(reason=["secret"])),
                     lambda: self.here.mutex("m", options={"lease": 4217}), lambda: self.here.mutex("m", options={}),
                     lambda: self.here.mutex("m", options=options(lease="4217")),
                     lambda: self.here.mutex("m", options=options(max_waiters=4217.5)), lambda: self.here.election("e", note=b"secret"),
                     lambda: self.here.election("e", priority="4217"), lambda: self.here.semaphore("s", "4217"),
                     lambda: limiter.try_take(1, {"c": 4217}), lambda: limiter.try_take(1, {"c": None}),
                     lambda: limiter.try_take(1, {"c": b"secret"}), lambda: limiter.try_take(1, {b"secret": "c"}),
                     lambda: limiter.try_take(1, ["secret"]), lambda: limiter.try_take(1, 0), lambda: limiter.try_take("4217"),
                     lambda: limiter.refund("4217"), lambda: limiter.reserve(1, "4217"), lambda: limiter.reserve(1, None),
                     lambda: limiter.refund(holdfast.Decision(True, 0, 0, 0, 0, "", 1, ("4217",))),
                     lambda: self.here.limiter("q", holdfast.Rule(1, by="secret")),
                     lambda: self.here.limiter("q", holdfast.Rule(1, by=[4217])),
                     lambda: self.here.limiter("q", [holdfast.Rule(4217)]), lambda: self.here.limiter("q", holdfast.Rule("4217")),
                     lambda: mutex.acquire("4217"), lambda: mutex.acquire(1, stop="secret"), lambda: mutex.acquire(0, stop=0),
                     lambda: asyncio.run(mutex.acquire_async(1, stop="secret")), lambda: shared.downgrade(4217),
                     lambda: shared.try_upgrade(mutex), lambda: condition.wait(mutex), lambda: asyncio.run(condition.wait_async(4217)),
                     lambda: self.here.barrier("b", 1).wait(4217), lambda: holdfast.multi_lock("secret"),
                     lambda: holdfast.redlock(["secret"], "q"), lambda: mutex.acquire().extend("4217")):
            with self.assertRaisesRegex(TypeError, r" must be .*, and is of the type \w+$") as raised:
                what()
            self.assertNotRegex(str(raised.exception), "secret|4217")
        with self.assertRaisesRegex(TypeError, r"^key\['c'\] must be of the type str, and is of the type int$"):
            limiter.try_take(1, {"c": 4217})

    def test_a_struct_takes_no_number_for_a_text(self):
        texts = [(kind, name) for kind in _abi.IN_C.values() for name, of in kind._fields_ if of is _abi.c_char_p]
        self.assertGreaterEqual(len(texts), 7)
        for kind, name in texts:
            for wrong in (4217, 0, "text", True):
                with self.assertRaises(TypeError):
                    kind(**{name: wrong})

    def test_a_number_of_another_kind_is_not_cut_either(self):
        class Index:
            def __index__(self):
                return 2**32 + 3
        due = (2**64 + 5, *[0] * 15)
        for what in (lambda: self.here.semaphore("s", Index()), lambda: holdfast.multi_lock(self.here.semaphore("s", 2).permits(Index())),
                     lambda: self.here.limiter("r", holdfast.Rule(1)).refund(holdfast.Decision(True, 0, 0, 0, 0, "", 1, due))):
            with self.assertRaises(holdfast.InvalidArgument):
                what()

    def test_a_duration_that_cannot_be_is_refused_as_it_was_given(self):
        options = holdfast.LockOptions
        for what, told in ((lambda: self.here.mutex("m", options=options(lease=0.0001)),
                            "lease: 0.0001 s is too short: the least is 0.001 s"),
                           (lambda: self.here.mutex("m", options=options(max_hold=0)), "max_hold: 0 s is too short: the least is 0.001 s"),
                           (lambda: self.here.mutex("m", options=options(linger=1e-9)),
                            "linger: 1e-09 s is too short: the least is 1e-06 s"),
                           (lambda: self.here.mutex("m", options=options(lease=1e300)), "lease: 1e+300 s is too long"),
                           (lambda: self.here.mutex("m", options=options(lease=float("nan"))), "lease: nan s is no duration"),
                           (lambda: self.here.latch("l", 1, keep=0.4), "keep: 0.4 s is too short: the least is 1 s"),
                           (lambda: self.here.limiter("r", holdfast.Rule(1, per=0)), "per: 0 s is too short: the least is 1e-06 s"),
                           (lambda: holdfast.open("memory:", store_timeout=0), "store_timeout: 0 s is too short: the least is 0.001 s"),
                           (lambda: holdfast.redlock([self.here], "q", node_timeout=-1e-4),
                            "node_timeout: -0.0001 s is too short: the least is 0.001 s"),
                           (lambda: self.here.mutex("m").acquire().extend(10**400), f"lease: {10**400} s is no duration"),
                           (lambda: self.here.mutex("m").acquire(float("nan")), "timeout: nan is no time")):
            with self.assertRaises(holdfast.InvalidArgument) as raised:
                what()
            self.assertEqual(str(raised.exception), told)
        self.here.mutex("m", options=options(local_time=0, linger=0)).acquire(10**400).release()

    def test_a_wait_for_a_condition_that_is_given_no_stop_leaves_the_mutex_held(self):
        with self.here.mutex("m").acquire() as lease:
            with self.assertRaises(TypeError):
                self.here.condition("c").wait(lease, 1, stop="none")
            lease.check()

    def test_a_wait_longer_than_can_be_counted_has_no_limit(self):
        for seconds in (1e300, float("inf")):
            with self.here.mutex("m").acquire(seconds) as lease:
                lease.check()

    def test_durations_that_cannot_be_are_refused(self):
        for options in (holdfast.LockOptions(lease=0), holdfast.LockOptions(lease=-1), holdfast.LockOptions(linger=-1)):
            with self.assertRaises(holdfast.InvalidArgument):
                self.here.mutex("m", options=options)

    def test_durations_that_are_not_finite_are_refused(self):
        limiter = self.here.limiter("r", holdfast.Rule(1))
        for none in (float("nan"), float("inf"), -float("inf")):
            for what in (lambda: self.open(lease=none),
                         lambda: self.here.mutex("m", options=holdfast.LockOptions(max_hold=none)),
                         lambda: self.here.mutex("m", options=holdfast.LockOptions(local_time=none)),
                         lambda: self.here.mutex("m", options=holdfast.LockOptions(linger=none)),
                         lambda: self.here.latch("l", 1, keep=none),
                         lambda: self.here.limiter("q", holdfast.Rule(1, per=none)),
                         lambda: limiter.reserve(1, none)):
                with self.assertRaises(holdfast.InvalidArgument):
                    what()
        for wait in (self.here.mutex("m").acquire, lambda timeout: limiter.take(timeout=timeout)):
            with self.assertRaises(holdfast.InvalidArgument):
                wait(float("nan"))


class Interrupts(OnAStore):
    def test_an_interrupt_anywhere_at_the_beginning_of_an_async_with_block_leaves_nothing_taken(self):
        ours = str(REPOSITORY / "bindings/python")
        mutex, other, steps, left = self.here.mutex("m"), self.there.mutex("m"), 0, 0

        def interrupt(frame, event, _):
            nonlocal left
            if not frame.f_code.co_filename.startswith(ours) or frame.f_code.co_name == "__del__":
                return None
            if event in ("call", "line"):
                left -= 1
                if left == 0:
                    raise KeyboardInterrupt
            return interrupt

        async def block():
            sys.settrace(interrupt)
            async with mutex:
                sys.settrace(None)
        with unittest.mock.patch("sys.unraisablehook"):  # what goes is closed again by what has it
            while left == 0:
                steps += 1
                left = steps
                try:
                    asyncio.run(block())
                except KeyboardInterrupt:
                    sys.settrace(None)
                gc.collect()
                self.assertIsNotNone(other.try_acquire(5), steps)
        self.assertGreater(steps, 10)


class LeadersRules(OnAStore):
    def test_a_cancelled_task_leaves_the_leader_that_was_found(self):
        async def cancel():
            seen = self.there.election("e").observe()
            waiting = asyncio.create_task(seen.next_async())
            await asyncio.sleep(0)
            found = _abi.LeaderText()
            while not found.term:  # and the loop, which is not free, is not told
                _abi.call(_abi.functions.leaders_found, seen._handle, ctypes.byref(found))
            waiting.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await waiting
            return await seen.next_async(1), seen
        with self.here.election("e") as leadership:
            leader, seen = asyncio.run(cancel())
            self.assertEqual(leader.term, leadership.fence)
            with self.assertRaises(holdfast.TimedOut):
                seen.next(0.05)

    def test_a_cancelled_task_calls_its_wait_off_and_the_next_goes_on(self):
        async def cancel():
            seen = self.here.election("e").observe()
            for _ in range(2):
                waiting = asyncio.create_task(seen.next_async())
                await asyncio.sleep(0)
                waiting.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await waiting
            with self.assertRaises(holdfast.TimedOut):
                await seen.next_async(0.05)
            with self.here.election("e") as leadership:
                self.assertEqual((await seen.next_async()).term, leadership.fence)
        asyncio.run(cancel())

    def test_many_wait_for_leaders_without_threads(self):
        async def wait():
            before = threading.active_count()
            seen = [self.here.election("e").observe() for _ in range(20)]
            waiting = [asyncio.create_task(one.next_async()) for one in seen]
            await asyncio.sleep(0)
            self.assertEqual(threading.active_count(), before)
            with self.here.election("e") as leadership:
                for one in waiting:
                    self.assertEqual((await one).term, leadership.fence)
        asyncio.run(wait())


class Losses(OnAStore):
    def test_what_tells_losses_ends_quietly_when_the_program_has_closed_all(self):
        queue = _waits.Queue()
        _abi.functions.close(queue._handle, None)  # as close_all() does, while the thread has something to tell
        _waits.Watcher()._serve(queue)


class RedlockRules(OnAStore):
    def test_a_majority_holds_it(self):
        nodes = [holdfast.open(f"memory:python-node-{n}") for n in range(3)]
        mine, theirs = holdfast.redlock(nodes, "q"), holdfast.redlock(nodes, "q")
        with mine as lease:
            self.assertGreater(lease.fence, 0)
            self.assertIsNone(theirs.try_acquire())

        async def later():
            async with theirs as lease:
                lease.check()
        asyncio.run(later())

    def test_to_trust_at_once_can_be_said(self):
        nodes = [holdfast.open(f"memory:python-trusted-{n}") for n in range(3)]
        with holdfast.redlock(nodes, "q", trust_after=0) as lease:
            lease.check()
        with self.assertRaises(holdfast.InvalidArgument):
            holdfast.redlock(nodes, "q", trust_after=-1).acquire()

    def test_tasks_that_wait_take_no_thread(self):
        nodes = [holdfast.open(f"memory:python-pool-{n}") for n in range(3)]
        mine, theirs = holdfast.redlock(nodes, "q"), holdfast.redlock(nodes, "q")

        async def wait():
            lease, before = await mine.acquire_async(), threading.active_count()
            waiting = [asyncio.create_task(theirs.acquire_async(30)) for _ in range(5)]
            await asyncio.sleep(0)
            self.assertEqual(threading.active_count(), before)
            await lease.release_async()
            for one in waiting:
                one.add_done_callback(lambda ended: ended.result().close())
            await asyncio.wait(waiting)
        asyncio.run(wait())

    def test_a_cancelled_task_does_not_go_on_waiting(self):
        nodes = [holdfast.open(f"memory:python-cancelled-{n}") for n in range(3)]
        mine, theirs = holdfast.redlock(nodes, "q"), holdfast.redlock(nodes, "q")

        async def cancel():
            waiting = asyncio.create_task(theirs.acquire_async(5))
            await asyncio.sleep(0)
            waiting.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await waiting
        with mine:
            asyncio.run(cancel())
        with holdfast.redlock(nodes, "q", timeout=30) as lease:
            lease.check()


class Hanging(unittest.TestCase):
    """A server that was stopped answers when it goes on."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="holdfast-python-")
        self.addCleanup(folder.cleanup)
        self.server = Redis(folder.name)
        self.addCleanup(self.server.end)
        session = holdfast.open(self.server.url + "?command_timeout=5s")
        self.addCleanup(session.close)
        self.session = session
        self.lock = session.shared_mutex("s")
        self.lease = self.lock.acquire()

    def beside(self, call):
        """Calls it in a thread, in which it hangs when this returns. The list gets how it ended."""
        ended, began = [], []

        def work():
            began.append(threading.get_native_id())
            try:
                ended.append(call())
            except holdfast.Error as why:
                ended.append(why)
        thread = threading.Thread(target=work)
        self.server.stop()
        thread.start()
        waits_for_the_server = False
        while not waits_for_the_server:  # and not for the interpreter's lock, or for its turn
            if began:
                doing = pathlib.Path(f"/proc/self/task/{began[0]}/syscall").read_text().split()[0]
                waits_for_the_server = doing not in ("running", FUTEX)
            self.assertTrue(thread.is_alive())
        return thread, ended

    def test_a_wait_that_has_a_stop_makes_no_try_before(self):
        stop, mutex = holdfast.Stop(), self.session.mutex("m")
        self.server.stop()
        with unittest.mock.patch.object(_waits, "blocking", side_effect=AssertionError), self.assertRaises(holdfast.Cancelled):
            threading.Thread(target=stop.request).start()
            mutex.acquire(stop=stop)
        self.server.resume()

    def test_a_release_that_need_not_wait_waits_for_no_other_call(self):
        thread, ended = self.beside(self.lease.extend)

        async def give_back():
            released = asyncio.create_task(self.lease.release_async())
            await asyncio.sleep(0)
            self.server.resume()
            await released
        asyncio.run(give_back())
        thread.join()
        self.assertEqual(ended, [None])

    def test_a_lock_that_is_granted_after_its_loop_has_ended_is_free(self):
        async def end_while_it_waits():
            mutex = self.session.mutex("late", options=holdfast.LockOptions(lease=3600))
            waiting = asyncio.create_task(mutex.acquire_async())
            await asyncio.sleep(0)
            self.assertFalse(waiting.done())
        self.server.stop()
        asyncio.run(end_while_it_waits())
        gc.collect()
        self.server.resume()
        self.assertIsNotNone(holdfast.open(self.server.url).mutex("late").try_acquire(30))

    def test_a_wait_at_a_condition_that_need_not_block_waits_for_no_other_call(self):
        condition, lease = self.session.condition("c"), self.session.mutex("m").acquire()
        thread, ended = self.beside(lease.extend)

        async def wait():
            waiting = asyncio.create_task(condition.wait_async(lease, 30))
            await asyncio.sleep(0)
            self.server.resume()
            while condition.notify_one() == 0:
                await asyncio.sleep(0.01)
            return await waiting
        self.assertTrue(asyncio.run(wait()))
        thread.join()
        self.assertEqual(ended, [None])
        lease.check()

    def test_what_is_known_here_waits_for_no_other_call(self):
        thread, ended = self.beside(lambda: self.lock.downgrade(self.lease))
        self.lease.check()
        self.assertGreater(self.lease.remaining, 0)
        self.server.resume()
        thread.join()
        self.assertEqual(ended, [None])


class Stops(unittest.TestCase):
    def test_the_handler_of_a_signal_may_request_it(self):
        code = ("import holdfast, signal, threading\n"
                "stop = holdfast.Stop()\n"
                "signal.signal(signal.SIGALRM, lambda *_: stop.request())\n"
                "with stop._mutex: signal.raise_signal(signal.SIGALRM)\n"
                "print('done')\n")
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "bindings/python")}
        told = subprocess.run([sys.executable, "-B", "-c", code], env=environment, capture_output=True, text=True, timeout=30)
        self.assertEqual(told.stdout, "done\n", told.stderr)

    def test_a_closed_one_is_refused_and_not_overlooked(self):
        mutex, stop = holdfast.open("memory:python-stops").mutex("m"), holdfast.Stop()
        part = stop.part()
        stop.close()
        refused = []

        def acquire():
            try:
                mutex.acquire(30, stop)
            except holdfast.InvalidArgument as why:
                refused.append(why)
        other = threading.Thread(target=acquire)
        other.start()
        other.join()
        for wait in (acquire, lambda: asyncio.run(mutex.acquire_async(30, stop)), stop.request):
            try:
                wait()
            except holdfast.InvalidArgument as why:
                refused.append(why)
        self.assertEqual(len(refused), 4)
        with self.assertRaises(holdfast.Cancelled):
            mutex.acquire(30, part)


class Programs(OnAStore):
    """What only shows in a program of its own."""
    store = "sqlite"

    def run_python(self, code, **how):
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "bindings/python"), "URL": self.url, "PREFIX": self.prefix}
        head = "import holdfast, os\nstore = holdfast.open(os.environ['URL'], name_prefix=os.environ['PREFIX'])\n"
        return subprocess.Popen([sys.executable, "-B", "-c", head + code], env=environment, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **how)

    def test_ctrl_c_ends_a_wait(self):
        with self.here.mutex("m"):
            waiting = self.run_python("store.mutex('m').acquire()")
            await_waiters(self.here, "m", 1, lambda: waiting.poll() is None)
            waiting.send_signal(signal.SIGINT)
            self.assertIn("KeyboardInterrupt", waiting.communicate(timeout=60)[1])

    def test_the_handler_of_a_signal_may_wait_while_its_thread_does(self):
        program = self.run_python("""
import signal, threading
signal.alarm(50)
other = holdfast.open(os.environ['URL'], name_prefix=os.environ['PREFIX'])
def handler(number, frame):
    with other.mutex('n', timeout=30) as lease:
        told.append(lease.name.endswith('n'))
    try:
        store.mutex('m').acquire(0.01)
    except holdfast.TimedOut:
        told.append('m is held')
    held.release()
signal.signal(signal.SIGUSR1, handler)
for _ in range(3):
    told, held = [], store.mutex('m').acquire(30)
    threading.Timer(0.05, signal.pthread_kill, (threading.main_thread().ident, signal.SIGUSR1)).start()
    with other.mutex('m', timeout=30) as lease:
        print(told, lease.name.endswith('m'))
""")
        out, err = program.communicate(timeout=120)
        self.assertEqual(out, "[True, 'm is held'] True\n" * 3, err)

    def test_what_begins_after_the_end_of_a_program_has_closed_all_can_wait(self):
        program = self.run_python("""
import atexit
from holdfast import _end
def at_last():
    with holdfast.open(os.environ['URL'], name_prefix=os.environ['PREFIX']) as late:
        with late.mutex('m', timeout=30) as lease:
            lease.check()
    print('waited')
atexit.unregister(_end._close_all)
atexit.register(at_last)
atexit.register(_end._close_all)  # is called before it
kept = store.mutex('m', timeout=30).acquire()
""")
        out, err = program.communicate(timeout=60)
        self.assertEqual(out, "waited\n", err)

    def test_ctrl_c_ends_a_wait_for_tokens_and_gives_them_back(self):
        limiter = self.here.limiter("r", holdfast.Rule(1, per=3600))
        self.assertTrue(limiter.try_take())
        waiting = self.run_python("store.limiter('r', holdfast.Rule(1, per=3600)).take()")
        while limiter.peek().wait <= 3600:
            self.assertIsNone(waiting.poll())
        waiting.send_signal(signal.SIGINT)
        self.assertIn("KeyboardInterrupt", waiting.communicate(timeout=60)[1])
        self.assertLessEqual(limiter.peek().wait, 3600)

    def test_a_note_that_something_else_has_damaged_is_read_all_the_same(self):
        with self.here.election("e", note="damaged"):
            with contextlib.closing(sqlite3.connect(self.url.removeprefix("sqlite:"))) as store, store:
                for table, column in store.execute("select m.name, c.name from sqlite_schema m, pragma_table_info(m.name) c "
                                                   "where m.type = 'table'").fetchall():
                    store.execute(f"update {table} set {column} = replace({column}, 'damaged', cast(x'646d67e9' as text)) "
                                  f"where instr({column}, 'damaged')")
            self.assertEqual(self.there.election("e").leader().note, "dmg\ufffd")
            self.assertEqual(self.there.election("e").observe().next(30).note, "dmg\ufffd")

    def test_ctrl_c_ends_an_arrival_that_waits_for_the_last_phase(self):
        program = self.run_python("""
import signal, threading
signal.alarm(50)
barrier = store.barrier('b', 2)
barrier.arrive().close()
for arrives in (barrier.arrive_and_wait, barrier.arrive, barrier.arrive_and_drop):
    interrupt = threading.Timer(0.01, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    try:
        interrupt.start()
        arrives()
    except KeyboardInterrupt:
        print(arrives.__name__)
print(store.show('b').waiters)
""")
        out, err = program.communicate(timeout=120)
        self.assertEqual(out.split(), ["arrive_and_wait", "arrive", "arrive_and_drop", "1"], err)

    def test_an_arrival_that_a_signal_handler_interrupts_is_not_counted_twice(self):
        program = self.run_python("""
import signal, threading
class Alarm(Exception):
    pass
def handler(number, frame):
    raise Alarm
signal.signal(signal.SIGUSR1, handler)
signal.alarm(50)
for i in range(20):
    barrier = store.barrier('b' + str(i), 2)
    interrupt = threading.Timer(0.005, signal.pthread_kill, (threading.main_thread().ident, signal.SIGUSR1))
    try:
        interrupt.start()
        barrier.arrive_and_wait()
    except Alarm:
        pass
    try:
        barrier.arrive_and_wait(timeout=0.02)
        print('alone and through')
    except holdfast.TimedOut:
        pass
print('done')
""")
        out, err = program.communicate(timeout=120)
        self.assertEqual(out, "done\n", err)

    def test_of_two_releases_at_once_one_may_be_refused_and_the_lease_is_over(self):
        for _ in range(200):
            lease = self.here.mutex("m").acquire()
            both = [threading.Thread(target=self.release_or_be_refused, args=(lease,)) for _ in range(2)]
            for thread in both:
                thread.start()
            for thread in both:
                thread.join()
            self.assertEqual(lease.state, holdfast.State.RELEASED)

    @staticmethod
    def release_or_be_refused(lease):
        try:
            lease.release()
        except holdfast.NotOwner:
            pass

    def test_what_ctrl_c_interrupts_can_be_asked_again_at_once(self):
        program = self.run_python("""
import signal, threading
election, barrier = store.election('e'), store.barrier('b', 2)
leaders, arrival = election.observe(), barrier.arrive()
for ask in [leaders.next, lambda **how: barrier.wait(arrival, **how)] * 20:
    interrupt = threading.Timer(0.01, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    try:
        interrupt.start()
        ask()
    except KeyboardInterrupt:
        pass
    try:
        ask(timeout=0.001)
    except holdfast.TimedOut:
        pass
print('done')
""")
        out, err = program.communicate(timeout=120)
        self.assertEqual(out, "done\n", err)

    def test_a_lease_in_the_hands_of_a_program_that_ends_is_released(self):
        program = self.run_python("kept = store.mutex('m', options=holdfast.LockOptions(lease=3600)).acquire()\n"
                                  "print(kept.fence)")
        self.assertTrue(program.communicate(timeout=60)[0])
        self.assertEqual(program.returncode, 0)
        self.assertEqual(self.here.show("m").holders, 0)

    def test_the_end_of_a_subinterpreter_leaves_the_leases_of_others(self):
        program = self.run_python(
            "import sys\n"
            "kept = store.mutex('m').acquire()\n"
            "if sys.version_info >= (3, 13):\n"
            "    import _interpreters as interpreters\n"
            "    other = interpreters.create('legacy')\n"
            "else:\n"
            "    import _xxsubinterpreters as interpreters\n"
            "    other = interpreters.create(isolated=False)\n"
            "interpreters.run_string(other, 'import multiprocessing.util, holdfast')\n"
            "interpreters.destroy(other)\n"
            "kept.check()\n"
            "print('held')")
        self.assertEqual(program.communicate(timeout=60)[0], "held\n")

    def test_a_child_of_multiprocessing_that_ends_gives_its_leases_back(self):
        work = ("import holdfast, os\n"
                "store = holdfast.open(os.environ['URL'], name_prefix=os.environ['PREFIX'])\n"
                "kept = store.mutex('m', options=holdfast.LockOptions(lease=3600)).acquire()\n")
        program = self.run_python(
            "import multiprocessing\n"
            "for way in ('fork', 'spawn', 'forkserver'):\n"
            f"    child = multiprocessing.get_context(way).Process(target=exec, args=({work!r}, {{}}))\n"
            "    child.start()\n"
            "    child.join()\n"
            "    print(child.exitcode, store.show('m').holders)\n")
        self.assertEqual(program.communicate(timeout=60)[0], "0 0\n" * 3)

    def test_a_child_of_multiprocessing_keeps_the_leases_of_its_threads_until_they_end(self):
        work = ("import holdfast, os, threading\n"
                "store = holdfast.open(os.environ['URL'], name_prefix=os.environ['PREFIX'])\n"
                "def keep():\n"
                "    with store.mutex('m') as lease:\n"
                "        began.set()\n"
                "        store.latch('go on', 1).wait()\n"
                "        lease.check()\n"
                "        store.latch('kept', 1).count_down()\n"
                "began = threading.Event()\n"
                "threading.Thread(target=keep).start()\n"
                "began.wait()\n"
                "store.latch('ends', 1).count_down()\n")
        program = self.run_python(
            "import multiprocessing\n"
            f"child = multiprocessing.get_context('spawn').Process(target=exec, args=({work!r}, {{}}))\n"
            "child.start()\n"
            "store.latch('ends', 1).wait()\n"
            "child.join(0.5)\n"  # it closes what it closes meanwhile
            "store.latch('go on', 1).count_down()\n"
            "child.join()\n"
            "print(store.latch('kept', 1).remaining(), store.show('m').holders)\n")
        self.assertEqual(program.communicate(timeout=60)[0], "0 0\n")

    def test_the_handler_of_a_signal_may_release_a_lease(self):
        program = self.run_python(
            "import asyncio, signal\n"
            "from holdfast import _waits\n"
            "async def main():\n"
            "    for mutex in (_waits.Loop.running()._losing, _waits.watcher._mutex):\n"
            "        lease = store.mutex('m').acquire()\n"
            "        lost = asyncio.create_task(lease.until_lost())\n"
            "        await asyncio.sleep(0)\n"
            "        signal.signal(signal.SIGALRM, lambda *_: (lease.on_loss(print), lease.release()))\n"
            "        with mutex: signal.raise_signal(signal.SIGALRM)\n"
            "        lost.cancel()\n"
            "asyncio.run(main())\n"
            "print('done')")
        self.addCleanup(program.kill)
        self.assertEqual(program.communicate(timeout=60)[0], "done\n")

    def test_waiting_does_not_keep_the_interpreter(self):
        program = self.run_python(
            "import threading\n"
            "held = store.mutex('m').acquire()\n"
            "other = holdfast.open(os.environ['URL'], name_prefix=os.environ['PREFIX'])\n"
            "waiting = threading.Thread(target=lambda: other.mutex('m').acquire().release())\n"
            "waiting.start()\n"
            "while store.show('m').waiters == 0 and waiting.is_alive(): pass\n"
            "held.release()\n"
            "waiting.join()\n"
            "print('done')")
        self.assertEqual(program.communicate(timeout=60)[0], "done\n")


class Layout(OnAStore):
    def test_structs_are_those_of_the_header(self):
        import ctypes

        from holdfast import _abi
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

    def test_stores_are_these(self):
        self.assertEqual(set(URLS), {"memory", "sqlite", "redis"})
