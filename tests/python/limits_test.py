"""Rate limits."""
import asyncio
import dataclasses
import unittest.mock

import holdfast
from holdfast import _waits
from stores import on_each_store


@on_each_store
class Limits:
    def test_a_limiter_grants_its_tokens_and_then_returns_the_waiting_time(self):
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
        with self.assertRaises(holdfast.InvalidArgument):
            limiter.refund(dataclasses.replace(reserved, due=(0,) * 17), {"client": "acme"})

    def test_tokens_taken_by_take_async_can_be_given_back(self):
        limiter = self.here.limiter("r", holdfast.Rule(3, per=3600, name="hourly"))
        taken = asyncio.run(limiter.take_async(2))
        self.assertEqual((taken.taken, taken.tokens, taken.remaining, taken.limit, taken.rule), (True, 2, 1, 3, "hourly"))
        self.assertGreater(taken.due[0], 0)
        limiter.refund(taken)
        self.assertEqual(limiter.peek().remaining, 3)
        refused = asyncio.run(limiter.take_async(3, timeout=0)), asyncio.run(limiter.take_async(1, timeout=0))
        self.assertEqual([bool(one) for one in refused], [True, False])
        self.assertGreater(refused[1].wait, 0)

    def test_a_cancelled_task_gives_its_tokens_back(self):
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
