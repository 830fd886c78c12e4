"""Latches, barriers and conditions."""
import asyncio
import threading
import time
import unittest.mock

import holdfast
from holdfast import _abi, _waits
from stores import on_each_store


@on_each_store
class Meeting:
    def test_a_condition_wait_that_cannot_begin_releases_the_mutex(self):
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

    def test_a_condition_wait_with_an_invalid_timeout_keeps_the_mutex(self):
        lease = self.here.mutex("m").acquire()
        for timeout, why in ((float("nan"), holdfast.InvalidArgument), ("soon", TypeError)):
            with self.assertRaises(why):
                self.here.condition("c").wait(lease, timeout)
        lease.check()

    def test_an_error_raised_by_a_signal_handler_during_a_condition_wait_releases_the_mutex(self):
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

    def test_a_second_condition_wait_with_the_same_lease_does_not_disturb_the_first(self):
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

    def test_a_failed_condition_wait_calls_the_loss_callbacks_of_the_lease(self):
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

    def test_latches_barriers_and_conditions_work_between_sessions(self):
        latch = self.here.latch("l", 2)
        with self.assertRaises(holdfast.Busy):
            latch.wait(0)
        latch.count_down(2)
        latch.wait(30)
        self.assertEqual(latch.remaining(), 0)
        latch.remove()
        mine, theirs = self.here.barrier("b", 2), self.there.barrier("b", 2)
        arrival = mine.arrive()
        with self.assertRaisesRegex(holdfast.TimedOut, "1 of 2 participants had arrived"):
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

    def test_a_lease_closed_during_a_condition_wait_is_not_held_afterwards(self):
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

    def test_a_release_refused_during_a_condition_wait_changes_nothing(self):
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

    def test_a_block_that_ends_during_a_condition_wait_leaves_its_lease_to_the_wait(self):
        mutex, condition = self.here.mutex("m"), self.here.condition("c")

        def in_a_block(block):
            told = []
            with self.assertRaises(holdfast.NotOwner):
                with block() as lease:
                    waiting = threading.Thread(target=lambda: told.append(condition.wait(lease, 30)))
                    waiting.start()
                    self.there.mutex("m").acquire(30).release()  # so it waits
            condition.notify_all()
            waiting.join()
            self.assertEqual(told, [True])
            lease.check()
            lease.release()

        async def in_an_async_block(block):
            with self.assertRaises(holdfast.NotOwner):
                async with block() as lease:
                    waiting = asyncio.create_task(condition.wait_async(lease, 30))
                    await (await self.there.mutex("m").acquire_async(30)).release_async()
            condition.notify_all()
            self.assertTrue(await waiting)
            lease.check()
            await lease.release_async()
        for block in (lambda: mutex, mutex.acquire):
            in_a_block(block)
            asyncio.run(in_an_async_block(block))

    def test_an_exception_of_a_block_closes_the_lease_that_a_condition_wait_uses(self):
        mutex, condition = self.here.mutex("m"), self.here.condition("c")

        async def in_an_async_block():
            with self.assertRaises(ZeroDivisionError):
                async with mutex as lease:
                    waiting = asyncio.create_task(condition.wait_async(lease, 30))
                    await (await self.there.mutex("m").acquire_async(30)).release_async()
                    raise ZeroDivisionError
            condition.notify_all()
            with self.assertRaises(holdfast.Cancelled):
                await waiting
            self.assertIs(lease.state, holdfast.State.RELEASED)
        asyncio.run(in_an_async_block())

    def test_an_arrival_that_first_waits_for_the_previous_phase_obeys_its_timeout(self):
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

    def test_tasks_with_barrier_objects_of_their_own_are_separate_participants(self):
        async def one_after_the_other(mine, theirs):
            (await mine.arrive_async(30)).close()  # the arrival counts, and no call waits for it
            await theirs.arrive_and_wait_async(0.01 if mine is theirs else 30)
        shared = self.here.barrier("shared", 2)
        with self.assertRaises(holdfast.TimedOut):
            asyncio.run(one_after_the_other(shared, shared))
        asyncio.run(one_after_the_other(self.here.barrier("own", 2), self.here.barrier("own", 2)))

    def test_many_calls_at_the_same_time_leave_little_memory_behind(self):
        latch = self.here.latch("l", 1)
        threads = [threading.Thread(target=latch.wait, args=(30,)) for _ in range(50)]
        for thread in threads:
            thread.start()
        while self.there.show("l").waiters < len(threads):
            time.sleep(0.01)
        latch.count_down()
        for thread in threads:
            thread.join()
        self.assertLess(len(_abi.free), 20)

    def test_tasks_of_one_loop_meet_at_a_latch_and_a_barrier(self):
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
