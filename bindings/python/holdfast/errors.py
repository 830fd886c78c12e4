"""One exception class for each code of the library."""
from __future__ import annotations

import typing


class Error(Exception):
    """The base class of all errors of holdfast. The text names the operation, the lock and the store, and what to do next."""

    code: typing.ClassVar[int] = 0

    def __init__(self, message: str, *, operation: str = "", name: str = "", store: str = "", retryable: bool = False,
                 outcome_unknown: bool = False, lease_gone: bool = False) -> None:
        super().__init__(message)
        self.operation = operation
        self.name = name
        self.store = store
        #: The same call may succeed later.
        self.retryable = retryable
        #: The reply was lost, so the call may have been carried out. Repeating it is safe, except for a count_down, a limiter's take,
        #: a notification, and the very last arrive_and_drop of a barrier.
        self.outcome_unknown = outcome_unknown
        #: The lease of this call no longer protects anything.
        self.lease_gone = lease_gone


class Busy(Error):
    """Another holder has the lock. Only for a call that makes a single try."""
    code = 1


class TimedOut(Error, TimeoutError):
    """The timeout passed during the wait."""
    code = 2


class Cancelled(Error):
    """The Stop of the wait was requested, or its session was closed."""
    code = 3


class Lost(Error):
    """The lock is no longer certain to be held."""
    code = 4


class NotOwner(Error):
    """The lease is not held: it was released before, or a wait for a condition uses it."""
    code = 5


class Unavailable(Error, ConnectionError):
    """The store cannot be reached, or does not answer."""
    code = 6


class Overloaded(Error):
    """Too many waiters or buckets, or no memory or file descriptor left."""
    code = 7


class Deadlock(Error):
    """The wait would never end. No call of this package raises it."""
    code = 8


class KindMismatch(Error):
    """The name is in use as another kind of primitive."""
    code = 9


class CapacityMismatch(Error):
    """The name is in use with another capacity or count."""
    code = 10


class Unsupported(Error):
    """The store, or this kind of lock, does not offer the operation."""
    code = 11


class InvalidName(Error, ValueError):
    """The name is empty or too long, has control characters, or is not valid Unicode."""
    code = 12


class InvalidArgument(Error, ValueError):
    """A closed handle, or an impossible duration, weight, count, URL or option."""
    code = 13


class ForeignData(Error):
    """The record, table or file was not written by holdfast."""
    code = 14


class NewerFormat(Error):
    """The data was written by a newer version of holdfast."""
    code = 15


class Corrupt(Error):
    """The data in the store is damaged."""
    code = 16


class ReadOnly(Error):
    """The store refuses writes."""
    code = 17


class NoSpace(Error):
    """The store is full."""
    code = 18


class NotPermitted(Error, PermissionError):
    """Credentials or rights are missing."""
    code = 19


class Forked(Error):
    """An object of the parent was used in a child process after fork(). Open a new session there."""
    code = 20


class Internal(Error):
    """A defect in holdfast."""
    code = 21


BY_CODE: typing.Final[dict[int, type[Error]]] = {
    kind.code: kind for kind in (
        Busy, TimedOut, Cancelled, Lost, NotOwner, Unavailable, Overloaded, Deadlock, KindMismatch, CapacityMismatch, Unsupported,
        InvalidName, InvalidArgument, ForeignData, NewerFormat, Corrupt, ReadOnly, NoSpace, NotPermitted, Forked, Internal)}
