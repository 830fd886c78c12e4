"""What each lock promises, on each store."""
import asyncio
import ctypes
import os
import subprocess
import sys
import threading
import unittest.mock

import holdfast
from holdfast import _abi
from helpers import await_waiters, on_another_thread
from stores import REPOSITORY, OnAStore, on_each_store


@on_each_store
class Locks:
    def test_a_with_statement_acquires_and_releases_the_lock(self):
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

    def test_a_lease_without_a_reference_is_released(self):
        self.here.mutex("m").acquire()
        self.assertIsNotNone(self.there.mutex("m").try_acquire(30))

    def test_a_first_try_without_a_store_is_followed_by_a_wait(self):
        cut = [True]

        def acquire(*arguments, acquire=_abi.functions.acquire):
            return holdfast.Unavailable.code if cut and cut.pop() else acquire(*arguments)
        with unittest.mock.patch.object(_abi.functions, "acquire", acquire):
            self.here.mutex("m").acquire().release()
        self.assertEqual(cut, [])

    def test_force_release_with_an_empty_short_id_releases_nothing(self):
        with self.here.mutex("m") as lease:
            with self.assertRaises(holdfast.InvalidArgument):
                self.there.force_release("m", "")
            self.assertIsNone(self.there.mutex("m").try_acquire())
            self.assertEqual(self.there.force_release("m", lease.short_id), 1)
            lease.close()

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

    def test_a_semaphore_grants_only_its_permits(self):
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

    def test_one_candidate_leads_and_every_session_can_read_the_leader(self):
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


class LeadersRules(OnAStore):
    def test_a_leader_found_by_a_cancelled_task_is_returned_by_the_next_call(self):
        async def cancel():
            seen = self.there.election("e").observe()
            waiting = asyncio.create_task(seen.next_async())
            await asyncio.sleep(0)
            found = _abi.LeaderText()
            while not found.term:  # the event loop is busy here, so it does not learn of the leader
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

    def test_a_cancelled_task_ends_its_wait_and_the_next_task_continues(self):
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

    def test_a_wait_of_a_thread_returns_the_leader_also_if_another_thread_closes_the_object_meanwhile(self):
        seen = self.here.election("e").observe()
        begin = seen._begin

        def closed_at_its_end(*arguments):
            begin(*arguments)
            seen.close()
        with self.here.election("e") as leadership, unittest.mock.patch.object(seen, "_begin", closed_at_its_end):
            self.assertEqual(on_another_thread(seen.next).term, leadership.fence)

    def test_many_waits_for_leaders_need_no_threads(self):
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


class RedlockRules(OnAStore):
    def test_a_majority_of_nodes_grants_a_redlock(self):
        nodes = [holdfast.open(f"memory:python-node-{n}") for n in range(3)]
        mine, theirs = holdfast.redlock(nodes, "q"), holdfast.redlock(nodes, "q")
        with mine as lease:
            self.assertGreater(lease.fence, 0)
            self.assertIsNone(theirs.try_acquire())

        async def later():
            async with theirs as lease:
                lease.check()
        asyncio.run(later())

    def test_trust_after_may_be_zero(self):
        nodes = [holdfast.open(f"memory:python-trusted-{n}") for n in range(3)]
        with holdfast.redlock(nodes, "q", trust_after=0) as lease:
            lease.check()
        with self.assertRaises(holdfast.InvalidArgument):
            holdfast.redlock(nodes, "q", trust_after=-1).acquire()

    def test_waiting_tasks_need_no_threads(self):
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

    def test_a_cancelled_task_stops_waiting(self):
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


class Stops(unittest.TestCase):
    def test_a_signal_handler_may_request_a_stop(self):
        code = ("import holdfast, signal, threading\n"
                "stop = holdfast.Stop()\n"
                "signal.signal(signal.SIGALRM, lambda *_: stop.request())\n"
                "with stop._mutex: signal.raise_signal(signal.SIGALRM)\n"
                "print('done')\n")
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "bindings/python")}
        told = subprocess.run([sys.executable, "-B", "-c", code], env=environment, capture_output=True, text=True, timeout=30)
        self.assertEqual(told.stdout, "done\n", told.stderr)

    def test_a_closed_stop_is_refused_and_not_ignored(self):
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
