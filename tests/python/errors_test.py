"""Errors, and arguments that are refused."""
import asyncio
import copy
import gc
import pickle
import socket
import tempfile
import unittest.mock

import holdfast
from holdfast import _abi, _waits
from helpers import on_another_thread
from stores import OnAStore, Redis


class Errors(OnAStore):
    def test_each_code_has_an_exception(self):
        self.assertEqual(sorted(holdfast.errors.BY_CODE), list(range(1, 22)))
        for kind in holdfast.errors.BY_CODE.values():
            self.assertIs(getattr(holdfast, kind.__name__), kind)

    def test_an_error_names_operation_name_store_and_whether_it_is_retryable(self):
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

    def test_using_a_closed_object_is_an_error(self):
        lock = self.here.mutex("m")
        lock.close()
        lock.close()
        with self.assertRaises(holdfast.InvalidArgument):
            lock.acquire()
        self.here.close()
        with self.assertRaises(holdfast.InvalidArgument):
            self.here.mutex("m")

    def test_an_object_of_the_library_cannot_be_copied_or_pickled(self):
        shared, semaphore, barrier = self.here.shared_mutex("rw"), self.here.semaphore("s", 2), self.here.barrier("b", 1)
        lock, election, lease = self.here.mutex("m"), self.here.election("e"), self.here.mutex("m").acquire()
        for one in (self.here, lock, lease, shared, shared.shared(), semaphore, semaphore.permits(2), self.here.latch("l", 1), barrier,
                    barrier.arrive(), self.here.condition("c"), election, election.observe(), self.here.limiter("r", holdfast.Rule(1)),
                    holdfast.multi_lock(lock), holdfast.redlock([self.here], "q"), holdfast.Stop()):
            for way in (copy.copy, copy.deepcopy, pickle.dumps, lambda it: pickle.dumps(it, 0)):
                with self.assertRaisesRegex(TypeError, f"^{type(one).__name__}: its handle belongs to one object of one process: "):
                    way(one)
        gc.collect()
        lease.release()
        self.here.show("m")

    def test_an_error_can_be_passed_to_another_process(self):
        with self.here.mutex("kind"), self.assertRaises(holdfast.KindMismatch) as raised:
            self.there.semaphore("kind", 3).acquire(0)
        passed = pickle.loads(pickle.dumps(raised.exception))
        self.assertIs(type(passed), holdfast.KindMismatch)
        self.assertEqual((passed.args, vars(passed)), (raised.exception.args, vars(raised.exception)))

    def test_true_and_false_are_no_times(self):
        mutex, limiter, condition = self.here.mutex("m"), self.here.limiter("r", holdfast.Rule(1)), self.here.condition("c")
        options = holdfast.LockOptions
        with self.here.mutex("held").acquire() as lease:
            for given in (True, False):
                for what in (lambda: mutex.acquire(given), lambda: mutex.try_acquire(given), lambda: self.here.mutex("m", given).acquire(),
                             lambda: on_another_thread(lambda: mutex.acquire(given)), lambda: limiter.take(timeout=given),
                             lambda: asyncio.run(mutex.acquire_async(given)), lambda: self.here.latch("l", 1).wait(given),
                             lambda: condition.wait(lease, given), lambda: limiter.reserve(1, given), lambda: lease.extend(given),
                             lambda: self.here.mutex("m", options=options(lease=given)), lambda: self.open(lease=given)):
                    with self.assertRaisesRegex(TypeError, " must be a number of seconds, and is of the type bool$"):
                        what()

    def test_numbers_that_do_not_fit_are_refused_and_not_truncated(self):
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

    def test_an_argument_of_a_wrong_type_is_refused_without_quoting_it(self):
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

    def test_a_call_with_an_argument_of_a_wrong_type_waits_for_nothing(self):
        limiter, barrier, seen = self.here.limiter("r", holdfast.Rule(1)), self.here.barrier("b", 1), self.here.election("e").observe()
        for what in (lambda: limiter.take("4217"), lambda: limiter.take(timeout="4217"), lambda: barrier.arrive("4217"),
                     lambda: barrier.arrive_and_wait(stop=4217), lambda: seen.next("4217")):
            with unittest.mock.patch.object(_waits, "_take_the_end") as waits, self.assertRaises(TypeError):
                what()
            waits.assert_not_called()

    def test_a_struct_refuses_a_number_as_a_text(self):
        texts = [(kind, name) for kind in _abi.IN_C.values() for name, of in kind._fields_ if of is _abi.c_char_p]
        self.assertGreaterEqual(len(texts), 7)
        for kind, name in texts:
            for wrong in (4217, 0, "text", True):
                with self.assertRaises(TypeError):
                    kind(**{name: wrong})

    def test_numbers_of_other_types_are_not_truncated(self):
        class Index:
            def __index__(self):
                return 2**32 + 3
        due = (2**64 + 5, *[0] * 15)
        for what in (lambda: self.here.semaphore("s", Index()), lambda: holdfast.multi_lock(self.here.semaphore("s", 2).permits(Index())),
                     lambda: self.here.limiter("r", holdfast.Rule(1)).refund(holdfast.Decision(True, 0, 0, 0, 0, "", 1, due))):
            with self.assertRaises(holdfast.InvalidArgument):
                what()

    def test_the_error_for_an_impossible_duration_quotes_the_given_number(self):
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

    def test_a_condition_wait_with_an_invalid_stop_keeps_the_mutex(self):
        with self.here.mutex("m").acquire() as lease:
            with self.assertRaises(TypeError):
                self.here.condition("c").wait(lease, 1, stop="none")
            lease.check()

    def test_a_timeout_beyond_64_bits_is_no_limit(self):
        for seconds in (1e300, float("inf")):
            with self.here.mutex("m").acquire(seconds) as lease:
                lease.check()

    def test_impossible_durations_are_refused(self):
        for options in (holdfast.LockOptions(lease=0), holdfast.LockOptions(lease=-1), holdfast.LockOptions(linger=-1)):
            with self.assertRaises(holdfast.InvalidArgument):
                self.here.mutex("m", options=options)

    def test_infinite_and_nan_durations_are_refused(self):
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


class Refusals(unittest.TestCase):
    """A server that withdraws a right."""

    def test_a_failed_release_says_what_the_server_said(self):
        with tempfile.TemporaryDirectory(prefix="holdfast-python-") as folder:
            server = Redis(folder)
            self.addCleanup(server.end)
            session = holdfast.open(server.url)
            self.addCleanup(session.close)
            first, second = (session.mutex(name).acquire() for name in "ab")
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(server.socket)
                client.sendall(b"ACL SETUSER default -evalsha\r\n")
                self.assertEqual(client.recv(64), b"+OK\r\n")
            for release in (first.release, lambda: asyncio.run(second.release_async())):
                with self.assertRaisesRegex(holdfast.NotPermitted, "evalsha"):
                    release()
