"""A server that does not answer."""
import asyncio
import gc
import os
import pathlib
import select
import tempfile
import threading
import unittest.mock

import holdfast
from holdfast import _abi, _waits
from stores import Redis

FUTEX = "98" if os.uname().machine == "aarch64" else "202"


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

    def test_a_wait_with_a_stop_makes_no_first_try(self):
        stop, mutex = holdfast.Stop(), self.session.mutex("m")

        def acquire(lock, how, there, why, acquire=_abi.functions.acquire):
            self.assertIsNone(there, "the call would block this thread")
            return acquire(lock, how, there, why)
        self.server.stop()
        with unittest.mock.patch.object(_abi.functions, "acquire", acquire), self.assertRaises(holdfast.Cancelled):
            threading.Thread(target=stop.request).start()
            mutex.acquire(stop=stop)
        self.server.resume()

    def test_release_async_does_not_block_its_loop_while_another_call_hangs(self):
        thread, ended = self.beside(self.lease.extend)

        async def give_back():
            released = asyncio.create_task(self.lease.release_async())
            await asyncio.sleep(0)
            self.server.resume()
            await released
        asyncio.run(give_back())
        thread.join()
        self.assertEqual(ended, [None])

    def test_a_lock_granted_after_its_event_loop_ended_is_released(self):
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

    def test_a_task_cancelled_at_the_moment_of_a_grant_does_not_block_its_loop(self):
        session = holdfast.open(self.server.url + "?command_timeout=60s")
        self.addCleanup(session.close)
        goes_on, told = threading.Event(), []

        def resume():
            told.append(goes_on.wait(10))
            self.server.resume()
        resuming = threading.Thread(target=resume)

        async def cancel():
            mutex = session.mutex("m", options=holdfast.LockOptions(lease=3600))
            waiting = asyncio.create_task(mutex.acquire_async())
            await asyncio.sleep(0)
            news = [_waits.Loop.running()._queue.fd]
            select.select(news, [], [])  # of the grant; the loop has not heard it
            self.server.stop()
            resuming.start()
            waiting.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await waiting
            while select.select(news, [], [], 0)[0]:
                await asyncio.sleep(0)
            goes_on.set()
        asyncio.run(cancel())
        resuming.join()
        self.assertEqual(told, [True])
        self.assertIsNotNone(session.mutex("m").try_acquire(30))

    def test_a_condition_wait_does_not_block_its_loop_while_another_call_hangs(self):
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

    def test_queries_of_local_state_do_not_wait_for_other_calls_that_hang(self):
        thread, ended = self.beside(lambda: self.lock.downgrade(self.lease))
        self.lease.check()
        self.assertGreater(self.lease.remaining, 0)
        self.server.resume()
        thread.join()
        self.assertEqual(ended, [None])
