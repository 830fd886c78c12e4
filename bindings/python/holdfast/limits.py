"""Rate limits."""
from __future__ import annotations

import collections.abc
import ctypes
import dataclasses
import typing

from . import _abi, _waits
from ._abi import call, functions


@dataclasses.dataclass(frozen=True)
class Rule:
    """One token bucket, or one for each value of some parts of the key."""
    #: This many tokens come back in `per` seconds.
    tokens: int
    per: float = 1.0
    #: The most tokens that a bucket holds. 0: as many as `tokens`.
    burst: int = 0
    #: Parts of the key: each combination of their values has a bucket of its own. Empty: one bucket for all.
    by: typing.Sequence[str] = ()
    #: All tokens come back at once, each time `per` has passed.
    interval: bool = False
    #: Identifies the rule. None: its number.
    name: str | None = None

    def _in_c(self) -> _abi.RuleText:
        if isinstance(self.by, str):
            raise _abi.wrong("by", "a sequence of texts", self.by)
        by = (ctypes.c_char_p * len(self.by))(*(_abi.text(part, "a part in by") for part in self.by))
        return _abi.RuleText(tokens=self.tokens, per_us=_abi.duration(self.per, "per", 10**6), burst=self.burst,
                             by=ctypes.cast(by, ctypes.POINTER(ctypes.c_char_p)) if by else None, by_count=len(by),
                             interval=self.interval, name=_abi.text_or_none(self.name, "name"))


@dataclasses.dataclass(frozen=True)
class Decision:
    """The decision of a limiter; true if the tokens were taken. Durations are seconds."""
    taken: bool
    #: After a refusal: how long until the tokens might be there. After reserve(): how long until they are there. After take(): how long
    #: it waited.
    wait: float
    #: Of the rule that is closest to refusing: how many tokens its full bucket holds, how many it has, and how long until it is full.
    limit: int
    remaining: int
    reset: float
    #: The name of that rule. Empty: the wait ended before the store had answered.
    rule: str
    #: How many tokens were taken. `due` says when the bucket of each rule has them, in microseconds of the store's clock.
    tokens: int = 0
    due: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return self.taken


def _decision(found: _abi.DecisionText) -> Decision:
    return Decision(bool(found.taken), found.wait_us / 1e6, found.limit, found.remaining, found.reset_us / 1e6, found.rule.decode(),
                    found.tokens, tuple(found.due_us))


#: The parts of a key with their values: {"client": "acme"}.
Key = typing.Mapping[str, str]


def _key(key: Key | None) -> tuple[typing.Any, int]:
    if not isinstance(key, (collections.abc.Mapping, type(None))):
        raise _abi.wrong("key", "a mapping", key)
    parts = [_abi.Part(part=_abi.text(part, "a part of the key"), value=_abi.text(value, f"key[{part!r}]"))
             for part, value in (key or {}).items()]
    return (_abi.Part * len(parts))(*parts), len(parts)


class Limiter(_waits.Handle):
    """Limits how often something may happen, with token buckets by name. One atomic step decides about several buckets, on the store's
    clock. Each call is one round trip; with `local_tokens`, a try_take() is two at most."""

    def try_take(self, n: int = 1, key: Key | None = None) -> Decision:
        """Takes n tokens from the bucket of every rule, or nothing. Does not wait."""
        return self._take(n, key, 0, None)

    def take(self, n: int = 1, key: Key | None = None, timeout: float | None = None, stop: _waits.Stop | None = None) -> Decision:
        """Waits until n tokens are there, and takes them. Takes nothing if they would not be there in time. Raises Cancelled if `stop` is
        requested. In the main thread a signal can interrupt the wait: then the tokens are given back."""
        if not _waits.is_main_thread() or timeout == 0:
            return self._take(n, key, timeout, stop)
        parts, event = _key(key), _abi.Event()
        try:
            _waits.wait_seeing_signals(lambda how: call(functions.limiter_take, self._handle, n, *parts, how, None), timeout, stop, event,
                                       to_its_end=True)
            return _decision(event.decision)
        except BaseException:
            self._undo(event, parts)
            raise

    async def take_async(self, n: int = 1, key: Key | None = None, timeout: float | None = None,
                         stop: _waits.Stop | None = None) -> Decision:
        """take() for an event loop. A cancelled task gives the tokens back."""
        parts = _key(key)
        return _decision((await _waits.Loop.running().outcome(
            lambda how: call(functions.limiter_take, self._handle, n, *parts, how, None), timeout, stop, to_its_end=True,
            undo=lambda event: self._undo(event, parts))).decision)

    def reserve(self, n: int, longest_wait: float, key: Key | None = None) -> Decision:
        """Reserves n tokens that will be there within `longest_wait` seconds, or nothing. Does not wait."""
        wait = _abi.duration(_abi.seconds_of(longest_wait, "longest_wait"), "longest_wait", 10**6, 0)
        return self._decided(lambda there: call(functions.limiter_reserve, self._handle, n, wait, *_key(key), there))

    def peek(self, n: int = 1, key: Key | None = None) -> Decision:
        """Returns what the store would answer now, and takes nothing. Local tokens do not count."""
        return self._decided(lambda there: call(functions.limiter_peek, self._handle, n, *_key(key), there))

    def refund(self, what: int | Decision = 1, key: Key | None = None) -> None:
        """Gives back the unused tokens of a decision, under the same key. Requests that took tokens later keep their times, so some of the
        tokens may be lost (docs/rate_limiter.md). A number gives back that many tokens, as if they had been taken now."""
        if isinstance(what, int):
            return call(functions.limiter_refund, self._handle, what, *_key(key))
        what = _abi.one_of(what, Decision, "what")
        taken = _abi.DecisionText(taken=what.taken, tokens=what.tokens, due_us=what.due)
        return call(functions.limiter_give_back, self._handle, ctypes.byref(taken), *_key(key))

    def _take(self, n: int, key: Key | None, timeout: float | None, stop: _waits.Stop | None) -> Decision:
        how = _waits.blocking(timeout, stop)
        return self._decided(lambda there: call(functions.limiter_take, self._handle, n, *_key(key), how, there))

    def _undo(self, event: _abi.Event, parts: tuple[typing.Any, int]) -> None:
        """Gives back the tokens of a take whose decision no caller receives."""
        if event.decision.taken:
            functions.limiter_give_back(self._handle, ctypes.byref(event.decision), *parts, None)

    @staticmethod
    def _decided(ask: typing.Callable[[typing.Any], None]) -> Decision:
        there = _abi.DecisionText()
        ask(ctypes.byref(there))
        return _decision(there)
