"""Reports of lost leases."""
import asyncio
import gc
import sys
import threading
import unittest.mock

import holdfast
from holdfast import _abi, _waits, errors
from stores import OnAStore, on_each_store


@on_each_store
class Watched:
    def test_the_watch_of_a_released_or_closed_lease_ends(self):
        before = len(_waits.watcher._callbacks)
        for give_up in (holdfast.Lease.release, holdfast.Lease.close):
            lease = self.here.mutex("m").acquire()
            lease.on_loss(lambda: None)
            give_up(lease)
            with self.assertRaises(holdfast.NotOwner):
                lease.on_loss(lambda: None)
        self.assertEqual(len(_waits.watcher._callbacks), before)

    def test_a_loss_is_reported_and_raised_at_the_end_of_the_with_block(self):
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

    def test_the_loss_thread_survives_a_failed_memory_allocation(self):
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

    def test_after_a_loss_thread_failed_to_start_the_next_watch_starts_one(self):
        told, quick = threading.Event(), holdfast.LockOptions(lease=0.3)
        with unittest.mock.patch.object(_waits, "watcher", _waits.Watcher()):
            lease = self.here.mutex("m", options=quick).acquire()
            with unittest.mock.patch("threading.Thread.start", side_effect=RuntimeError), self.assertRaises(RuntimeError):
                lease.on_loss(told.set)
            lease.on_loss(told.set)
            self.there.force_release("m")
            self.assertTrue(told.wait(30))

    def test_until_lost_returns_when_the_lease_is_lost(self):
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
            lease = await self.here.mutex("m").acquire_async()
            for _ in range(5):
                lost = asyncio.create_task(lease.until_lost())
                await asyncio.wait({lost, asyncio.create_task(job())}, return_when=asyncio.FIRST_COMPLETED)
                self.assertTrue(lost.cancel())
                await asyncio.wait({lost})
            self.there.force_release("m")
            with self.assertRaises(holdfast.Lost):
                lease.extend()
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

    def test_a_task_in_until_lost_stays_referenced_after_the_release(self):
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

    def test_the_watch_of_a_garbage_collected_lease_ends(self):
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


class Losses(OnAStore):
    def test_the_loss_thread_ends_silently_after_close_all(self):
        queue = _waits.Queue()
        _abi.functions.close(queue._handle, None)  # as close_all() does while the thread reports losses
        _waits.Watcher()._serve(queue)
