"""Several processes and interpreters: fork(), the end of a program, subinterpreters."""
import asyncio
import contextlib
import os
import signal
import sqlite3
import threading

import holdfast
from helpers import InAProgram
from stores import on_each_store


@on_each_store
class Forks:
    def test_a_forked_child_gets_an_error_and_can_open_new_sessions(self):
        lock = self.here.mutex("m")
        with lock as lease:
            lease.on_loss(lambda: None)  # starts a thread and opens a queue in the parent
            self.here.mutex("other").acquire(30).release()  # so the parent also has a queue for its waits
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

    def test_a_forked_child_can_close_a_lease_while_a_thread_of_the_parent_held_its_mutex(self):
        async def fork_while_a_loss_is_begun_to_be_waited_for(lease):
            waiting = asyncio.create_task(lease.until_lost())
            await asyncio.sleep(0)
            losing, child = next(iter(lease._loops))._losing, -1

            def fork():
                nonlocal child
                child = os.fork()
                if child == 0:
                    signal.alarm(20)  # ends a child that hangs
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


class Programs(InAProgram):
    @staticmethod
    def release_or_be_refused(lease):
        try:
            lease.release()
        except holdfast.NotOwner:
            pass

    def test_an_exit_handler_may_wait_after_close_all(self):
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

    def test_a_damaged_note_of_a_leader_is_read_with_replacement_characters(self):
        with self.here.election("e", note="damaged"):
            with contextlib.closing(sqlite3.connect(self.url.removeprefix("sqlite:"))) as store, store:
                for table, column in store.execute("select m.name, c.name from sqlite_schema m, pragma_table_info(m.name) c "
                                                   "where m.type = 'table'").fetchall():
                    store.execute(f"update {table} set {column} = replace({column}, 'damaged', cast(x'646d67e9' as text)) "
                                  f"where instr({column}, 'damaged')")
            self.assertEqual(self.there.election("e").leader().note, "dmg\ufffd")
            self.assertEqual(self.there.election("e").observe().next(30).note, "dmg\ufffd")

    def test_after_two_concurrent_releases_the_lease_is_released(self):
        for _ in range(200):
            lease = self.here.mutex("m").acquire()
            both = [threading.Thread(target=self.release_or_be_refused, args=(lease,)) for _ in range(2)]
            for thread in both:
                thread.start()
            for thread in both:
                thread.join()
            self.assertEqual(lease.state, holdfast.State.RELEASED)

    def test_a_program_that_ends_releases_its_leases(self):
        program = self.run_python("kept = store.mutex('m', options=holdfast.LockOptions(lease=3600)).acquire()\n"
                                  "print(kept.fence)")
        self.assertTrue(program.communicate(timeout=60)[0])
        self.assertEqual(program.returncode, 0)
        self.assertEqual(self.here.show("m").holders, 0)

    def test_a_library_that_is_unloaded_stays_in_memory_for_its_threads(self):
        program = self.run_python("""
import _ctypes
lease = store.mutex('m').acquire()
_ctypes.dlclose(holdfast._abi._library._handle)
lease.check()
lease.release()
print('released')
""")
        out, err = program.communicate(timeout=60)
        self.assertEqual((out, program.returncode), ("released\n", 0), err)

    def test_a_program_that_ends_while_a_daemon_thread_waits_leaves_no_lease(self):
        for wait in ("mutex('m').acquire()", "mutex('m').acquire(timeout=3600, stop=holdfast.Stop())", "semaphore('s', 1).acquire()"):
            program = self.run_python(f"""
import threading, time
kept = [store.mutex('m').acquire(), store.semaphore('s', 1).acquire()]
other = holdfast.open(os.environ['URL'], name_prefix=os.environ['PREFIX'])
threading.Thread(target=lambda: other.{wait}, daemon=True).start()
while not store.show('m').waiters + store.show('s').waiters:
    time.sleep(0.01)
""")
            self.assertEqual(program.communicate(timeout=60)[1], "", wait)
            self.assertEqual([(self.here.show(name).holders, self.here.show(name).waiters) for name in "ms"], [(0, 0), (0, 0)], wait)

    def test_the_thread_that_forks_is_the_main_thread_of_the_child(self):
        program = self.run_python("""
import threading
from holdfast import _waits
def fork():
    child = os.fork()
    if child == 0:
        os._exit(0 if _waits.is_main_thread() else 1)
    print(_waits.is_main_thread(), os.waitpid(child, 0)[1])
thread = threading.Thread(target=fork)
thread.start()
thread.join()
print(_waits.is_main_thread())
""")
        out, err = program.communicate(timeout=120)
        self.assertEqual(out, "False 0\nTrue\n", err)

    def test_a_task_that_outlives_its_loop_and_the_library_only_has_the_message_of_asyncio(self):
        for wait in ("mutex('m').acquire_async()", "mutex('m').acquire_async(stop=stop)",
                     "limiter('l', holdfast.Rule(1, per=3600)).take_async()"):
            program = self.run_python(f"""
import asyncio
kept, stop = store.mutex('m').acquire(), holdfast.Stop()
store.limiter('l', holdfast.Rule(1, per=3600)).try_take()
loop = asyncio.new_event_loop()
waiting = loop.create_task(holdfast.open(os.environ['URL'], name_prefix=os.environ['PREFIX']).{wait})
loop.run_until_complete(asyncio.sleep(0))
loop.close()
""")
            said = program.communicate(timeout=60)[1]
            self.assertIn("Task was destroyed", said, wait)
            self.assertNotIn("Exception ignored", said, wait)

    def test_the_end_of_a_subinterpreter_releases_no_leases_of_others(self):
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

    def test_a_multiprocessing_child_that_ends_releases_its_leases(self):
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

    def test_a_multiprocessing_child_keeps_leases_until_its_threads_end(self):
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

    def test_waiting_releases_the_interpreter_lock(self):
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
