"""Synchronization primitives across processes and machines.

    with holdfast.open("redis://localhost").mutex("order:1000", timeout=5) as lease:
        update(order, fence=lease.fence)

All objects are thread-safe, waits release the interpreter lock, and each wait has a form for asyncio. After os.fork() the child opens
sessions of its own: those of the parent raise Forked there. docs/python.md
"""
from . import _end  # noqa: F401
from ._abi import functions as _functions
from ._waits import Stop
from .errors import (Busy, Cancelled, CapacityMismatch, Corrupt, Deadlock, Error, ForeignData, Forked, Internal, InvalidArgument,
                     InvalidName, KindMismatch, Lost, NewerFormat, NoSpace, NotOwner, NotPermitted, Overloaded, ReadOnly, TimedOut,
                     Unavailable, Unsupported)
from .lease import Lease, State
from .limits import Decision, Limiter, Rule
from .locks import (Election, Leader, Leaders, Lock, LockOptions, MultiLock, Redlock, Semaphore, SharedMutex, multi_lock, redlock)
from .meeting import Arrival, Barrier, Condition, Latch
from .session import NameInfo, Session, open

__version__ = _functions.version

__all__ = [
    "Arrival", "Barrier", "Busy", "Cancelled", "CapacityMismatch", "Condition", "Corrupt", "Deadlock", "Decision", "Election", "Error",
    "ForeignData", "Forked", "Internal", "InvalidArgument", "InvalidName", "KindMismatch", "Latch", "Leader", "Leaders", "Lease",
    "Limiter", "Lock", "LockOptions", "Lost", "MultiLock", "NameInfo", "NewerFormat", "NoSpace", "NotOwner", "NotPermitted",
    "Overloaded", "ReadOnly", "Redlock", "Rule", "Semaphore", "Session", "SharedMutex", "State", "Stop", "TimedOut", "Unavailable",
    "Unsupported", "multi_lock", "open", "redlock"]
