"""Checked by mypy --strict and not run: the types that a program sees."""
from __future__ import annotations

import contextlib

import holdfast
from typing_extensions import assert_type


def ship(store: holdfast.Session, order: str) -> int:
    with store.mutex(order, timeout=5) as lease:
        assert_type(lease, holdfast.Lease)
        lease.on_loss(lambda: print("lost"))
        assert_type(lease.state, holdfast.State)
    held = store.fair_mutex(order, options=holdfast.LockOptions(lease=10)).try_acquire(stop=holdfast.Stop())
    assert_type(held, "holdfast.Lease | None")
    held.check()  # type: ignore[union-attr]
    with store.mutex(order) as lease, contextlib.suppress(holdfast.Lost, TimeoutError, ConnectionError):
        assert_type(lease.fences, list[int])
    if held:
        assert_type(held.remaining, float)
        assert_type(held.short_id, str)
        return held.fence
    return 0


def readers_and_permits(store: holdfast.Session) -> bool:
    rw = store.shared_mutex("rw", preference="writers")
    with rw.shared() as reader:
        assert_type(rw.try_upgrade(reader), bool)
    slots = store.semaphore("slots", 3)
    with slots.permits(2), contextlib.ExitStack() as stack:
        assert_type(stack.enter_context(slots), holdfast.Lease)
    all_of_them = holdfast.multi_lock(store.mutex("a"), rw.shared(), slots.permits(2), timeout=1)
    with all_of_them as both:
        assert_type(both.fences, list[int])
    with holdfast.redlock([store], "n", node_timeout=0.5) as lease:
        assert_type(lease.fence, int)
    assert_type(store.show("slots").waiters, int)
    store.mutex("m", lease=5)  # type: ignore[call-arg]
    store.mutex(5)  # type: ignore[arg-type]
    return slots.available() > 0


async def serve(store: holdfast.Session, client: str) -> bool:
    async with store.mutex("m") as lease, store.semaphore("s", 2).permits(2) as two:
        assert_type(lease, holdfast.Lease)
        assert_type(two, holdfast.Lease)
        await lease.until_lost()
    async with await store.mutex("m").acquire_async(timeout=1) as lease:
        assert_type(lease, holdfast.Lease)
    limit = store.limiter("calls", holdfast.Rule(100, per=60, by=["client"]), local_tokens=10)
    decision = await limit.take_async(2, {"client": client}, timeout=1)
    limit.refund(decision, key={"client": client})
    assert_type(decision, holdfast.Decision)
    limit.try_take(key={"client": 5})  # type: ignore[dict-item]
    return decision.taken


async def meet(store: holdfast.Session) -> None:
    store.latch("l", 2, keep=60).count_down()
    barrier = store.barrier("b", 2)
    assert_type(barrier.arrive(timeout=1), holdfast.Arrival)
    await barrier.arrive_and_wait_async(timeout=1)
    with store.mutex("m") as lease:
        assert_type(await store.condition("c").wait_async(lease), bool)
    election = store.election("e", note="here", priority=1)
    assert_type(election.leader(), "holdfast.Leader | None")
    assert_type(await election.observe().next_async(timeout=1), holdfast.Leader)


def timed_out() -> tuple[str, int] | None:
    try:
        with holdfast.open("sqlite:locks.db", lease=10, name_prefix="p:") as store:
            store.mutex("m").acquire(timeout=None)
    except holdfast.TimedOut as why:
        assert_type(why.retryable, bool)
        return why.store, why.code
    return None
