"""The Python package: a lock, its fence, and the same for asyncio."""
import asyncio

import holdfast


# #region lock
def ship():
    # #region block
    with holdfast.open("sqlite:locks.db").mutex("order:1000", timeout=5) as lease:
        print(f"update stock ... where fence <= {lease.fence}")
        # #endregion
        lease.check()  # raises holdfast.Lost; so does the end of the block
# #endregion


# #region asyncio
async def serve(store, client):
    async with store.semaphore("requests", capacity=2):
        limit = store.limiter("calls", holdfast.Rule(100, per=60, by=["client"]))
        return limit.try_take(key={"client": client}).taken
# #endregion


async def serve_all():
    with holdfast.open("sqlite:locks.db") as store:
        served = await asyncio.gather(*(serve(store, client) for client in ("acme", "apex", "acme")))
    assert all(served)


if __name__ == "__main__":
    ship()
    asyncio.run(serve_all())
