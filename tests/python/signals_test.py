"""Ctrl-C and the handlers of signals, at every moment of a call in the main thread."""
import gc
import signal
import unittest.mock

import holdfast
from holdfast import _abi, _waits
from helpers import InAProgram, await_waiters, interrupted
from stores import on_each_store


@on_each_store
class Moments:
    def test_an_interrupt_at_the_moment_of_a_grant_leaves_nothing_held(self):
        for function, timeout in (("acquire", None), ("acquire", 0), ("queue_next_decision", 30)):
            with self.subTest(function=function, timeout=timeout):
                with unittest.mock.patch.object(_abi.functions, function, interrupted(getattr(_abi.functions, function))):
                    with self.assertRaises(KeyboardInterrupt):
                        self.here.mutex("m").acquire(timeout)
                self.assertIsNotNone(self.there.mutex("m").try_acquire(5))

    def test_an_interrupt_while_an_arrival_is_reported_ends_the_call_and_the_arrival(self):
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

    def test_the_late_event_of_an_interrupted_wait_does_not_reach_the_next_wait(self):
        mutex, begin = self.here.mutex("m"), _abi.functions.acquire
        self.here.mutex("other").acquire(30).release()  # so there is a queue
        with unittest.mock.patch.object(_abi.functions, "acquire", interrupted(begin)), self.assertRaises(KeyboardInterrupt):
            mutex.acquire(30)
        lease = self.here.mutex("other").acquire(30)
        self.assertTrue(lease.name.endswith("other"))
        self.assertIsNotNone(self.there.mutex("m").try_acquire(30))

    def test_the_stop_of_one_wait_does_not_end_others(self):
        with self.there.mutex("m"):
            stop = holdfast.Stop()
            stop.request()
            for how, why in (({"stop": stop}, holdfast.Cancelled), ({}, holdfast.TimedOut), ({"stop": stop}, holdfast.Cancelled)):
                with self.assertRaises(why):
                    self.here.mutex("m").acquire(0.01, **how)

    def test_a_failed_wait_leaves_no_garbage_to_the_collector(self):
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

    def test_an_interrupted_release_is_completed_when_the_lease_is_destroyed(self):
        lease = self.here.mutex("m").acquire()
        with unittest.mock.patch.object(_abi.functions, "release", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                lease.release()
        del lease
        self.assertIsNotNone(self.there.mutex("m").try_acquire(5))

    def test_an_interrupt_while_tokens_are_granted_gives_them_back(self):
        limiter = self.here.limiter("r", holdfast.Rule(3, per=3600))
        take = _abi.functions.queue_next_decision
        with unittest.mock.patch.object(_abi.functions, "queue_next_decision", interrupted(take)):
            with self.assertRaises(KeyboardInterrupt):
                limiter.take(2)
        self.assertEqual(limiter.peek().remaining, 3)


class Programs(InAProgram):
    def test_ctrl_c_ends_a_wait(self):
        with self.here.mutex("m"):
            waiting = self.run_python("store.mutex('m').acquire()")
            await_waiters(self.here, "m", 1, lambda: waiting.poll() is None)
            waiting.send_signal(signal.SIGINT)
            self.assertIn("KeyboardInterrupt", waiting.communicate(timeout=60)[1])

    def test_a_signal_handler_may_wait_while_the_interrupted_call_waits(self):
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

    def test_ctrl_c_ends_a_wait_for_tokens_and_gives_them_back(self):
        limiter = self.here.limiter("r", holdfast.Rule(1, per=3600))
        self.assertTrue(limiter.try_take())
        waiting = self.run_python("store.limiter('r', holdfast.Rule(1, per=3600)).take()")
        while limiter.peek().wait <= 3600:
            self.assertIsNone(waiting.poll())
        waiting.send_signal(signal.SIGINT)
        self.assertIn("KeyboardInterrupt", waiting.communicate(timeout=60)[1])
        self.assertLessEqual(limiter.peek().wait, 3600)

    def test_ctrl_c_ends_an_arrival_that_first_waits_for_the_previous_phase(self):
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

    def test_an_arrival_interrupted_by_a_signal_handler_is_not_counted_twice(self):
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

    def test_a_call_interrupted_by_ctrl_c_can_be_repeated_at_once(self):
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

    def test_a_signal_handler_may_release_a_lease(self):
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
