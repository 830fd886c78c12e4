"""Blocks of `with` and `async with`, and interrupts at each of their lines."""
import asyncio
import contextlib
import gc
import sys
import threading
import unittest.mock

import holdfast
from holdfast import _abi, locks
from helpers import on_another_thread
from stores import REPOSITORY, OnAStore, on_each_store


@on_each_store
class Blocks:
    def test_an_interrupt_anywhere_at_the_start_of_a_with_block_leaves_nothing_held(self):
        ours = str(REPOSITORY / "bindings/python")
        mutex, other = self.here.mutex("m"), self.there.mutex("m")
        unheard, steps, left = unittest.mock.Mock(), 0, 0

        def interrupt(frame, event, _):
            nonlocal left
            if not frame.f_code.co_filename.startswith(ours) or frame.f_code.co_name == "__del__":  # Python only prints exceptions there
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

    def test_an_interrupt_anywhere_at_the_end_of_a_with_block_leaves_nothing_held(self):
        ours = str(REPOSITORY / "bindings/python")
        mutex, other = self.here.mutex("m"), self.there.mutex("m")
        steps, left = 0, 0

        def interrupt(frame, event, _):
            nonlocal left
            if frame.f_code.co_name == "__del__":  # the block has ended, and Python only prints what is raised there
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

    def test_a_block_calls_few_functions(self):
        mutex, calls = self.here.mutex("m"), []

        def count(frame, event, _):
            if event == "call":
                calls.append(frame.f_code.co_name)
        for _ in range(2):  # the first block makes what the next one uses again
            calls.clear()
            sys.setprofile(count)
            with mutex:
                pass
            sys.setprofile(None)
        self.assertLessEqual(len(calls), 14, calls)

    def test_a_block_whose_destructor_is_interrupted_leaves_nothing_behind(self):
        mutex, interrupted = self.here.mutex("m"), 0

        def interrupt(frame, event, _):
            nonlocal interrupted
            if frame.f_code.co_name == "__del__" and isinstance(frame.f_locals["self"], locks._Block):
                interrupted += 1
                raise KeyboardInterrupt
        with unittest.mock.patch("sys.unraisablehook", lambda _: None):
            with mutex:
                sys.settrace(interrupt)
            sys.settrace(None)
        self.assertGreater(interrupted, 0)
        self.assertFalse(mutex._entered.blocks)

    def test_an_interrupt_before_the_exit_method_of_a_block_without_as_leaves_nothing_held(self):
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

    def test_a_stored_exit_method_ends_each_block_it_is_called_for(self):
        mutex = self.here.mutex("m")
        enter, end = mutex.__enter__, mutex.__exit__
        for _ in range(3):
            lease = enter()
            end(None, None, None)
            self.assertIs(lease.state, holdfast.State.RELEASED)

    def test_a_stored_exit_method_that_is_not_called_leaves_the_block_to_the_one_called(self):
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

    def test_of_two_stored_exit_methods_the_inner_block_ends_first(self):
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

    def test_a_block_whose_beginning_has_failed_owns_no_lease(self):
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

    def test_an_exception_of_the_body_is_passed_on_and_the_lock_released(self):
        with self.assertRaises(ZeroDivisionError):
            with self.here.mutex("m"):
                1 / 0
        self.assertIsNotNone(self.there.mutex("m").try_acquire(30))

    def test_another_task_may_leave_the_block(self):
        async def hand_over():
            lock = self.here.mutex("m")
            lease = await asyncio.create_task(lock.__aenter__())
            await asyncio.create_task(lock.__aexit__(None, None, None))
            self.assertIs(lease.state, holdfast.State.RELEASED)
            with self.assertRaises(RuntimeError):
                await lock.__aexit__(None, None, None)
        asyncio.run(hand_over())

    def test_a_block_whose_release_cannot_begin_closes_its_lease(self):
        async def hold(lease):
            async with lease:
                pass
        lease = self.here.mutex("m").acquire()
        with unittest.mock.patch.object(_abi.functions, "queue_open", lambda *_: holdfast.Overloaded.code):
            with self.assertRaises(holdfast.Overloaded):
                asyncio.run(hold(lease))
        self.assertIs(lease.state, holdfast.State.RELEASED)
        self.assertIsNotNone(self.there.mutex("m").try_acquire(30))


class Interrupts(OnAStore):
    def test_an_interrupt_anywhere_at_the_start_of_an_async_with_block_leaves_nothing_held(self):
        ours = str(REPOSITORY / "bindings/python")
        mutex, other, steps, left = self.here.mutex("m"), self.there.mutex("m"), 0, 0

        def interrupt(frame, event, _):
            nonlocal left
            if not frame.f_code.co_filename.startswith(ours) or frame.f_code.co_name == "__del__":
                return None
            # Before Python 3.11 an exception at the resumption of a coroutine ends it without running its handlers; a signal cannot.
            if event == "line" or event == "call" and sys.version_info >= (3, 11):
                left -= 1
                if left == 0:
                    raise KeyboardInterrupt
            return interrupt

        async def block():
            sys.settrace(interrupt)
            async with mutex:
                sys.settrace(None)
        with unittest.mock.patch("sys.unraisablehook"):  # destroyed objects may close a handle a second time
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
