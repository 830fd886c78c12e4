"""Waits of asyncio's event loops."""
import asyncio
import gc
import sys
import threading

import holdfast
from holdfast import _waits
from stores import on_each_store


@on_each_store
class Loops:
    def test_asyncio_waits_without_a_thread(self):
        async def worker(lock, seen):
            async with lock as lease:
                seen.append(lease.fence)

        async def all_of_them():
            seen = []
            # With renewals, a pause of half a second right after a hand-over could lose the lock: no holder confirmed it yet.
            whole = holdfast.LockOptions(renew=False)
            mine, theirs = self.here.mutex("m", options=whole), self.there.mutex("m", options=whole)
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

    def test_a_stop_ends_waits_of_asyncio_tasks(self):
        async def wait_in_vain():
            stop = holdfast.Stop()
            barrier, others = self.here.barrier("b", 2), self.here.barrier("others", 2)
            arrival, lease = await barrier.arrive_async(), await self.here.mutex("of the condition").acquire_async()
            held = await self.here.mutex("m").acquire_async()
            (await others.arrive_async()).close()
            limiter = self.here.limiter("r", holdfast.Rule(1, per=3600))
            self.assertTrue(limiter.try_take())
            waits = [self.there.mutex("m").acquire_async(stop=stop), self.here.latch("l", 1).wait_async(stop=stop),
                     barrier.wait_async(arrival, stop=stop), self.there.barrier("c", 2).arrive_and_wait_async(stop=stop),
                     others.arrive_async(stop=stop), self.here.condition("d").wait_async(lease, stop=stop), limiter.take_async(stop=stop),
                     self.here.election("e").observe().next_async(stop=stop)]
            tasks = [asyncio.create_task(one) for one in waits]
            await asyncio.sleep(0)
            stop.request()
            told = await asyncio.gather(*tasks, return_exceptions=True)
            self.assertEqual([type(one) for one in told], [holdfast.Cancelled] * len(waits))
            with self.assertRaises(holdfast.Cancelled):
                await others.arrive_and_drop_async(stop=stop)
            held.check()
        asyncio.run(wait_in_vain())

    def test_the_queue_of_an_event_loop_is_destroyed_with_the_loop(self):
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

    def test_a_lock_granted_to_a_closed_event_loop_is_released(self):
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

    def test_a_release_async_outside_of_an_event_loop_keeps_the_lease(self):
        lease = self.here.mutex("m").acquire()
        with self.assertRaises(RuntimeError):
            lease.release_async().send(None)
        self.assertIs(lease.state, holdfast.State.HELD)
        lease.release()
