"""Admission to a model: calls of one process wait here, in order, until the limits shared by all processes admit them.

A `Gate` belongs to one connection in one process and is used on one event loop; its `LimitShare` decides which calls may
start when. A call that the service rejects with "too many requests" is retried from here, after a pause that applies to
all processes; its caller does not notice.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Protocol, TypeVar

from emberflow.errors import ResourceFailed
from emberflow.observability.metric_group import Gauge, MetricGroup
from emberflow.operators.admission.limit_share import Ledger, LimitShare
from emberflow.operators.admission.model_limits import ModelLimits
from emberflow.operators.admission.rate_limits import LimitState
from emberflow.operators.admission.throttling import Throttle, first_refusal_counts, throttle_of

T = TypeVar("T")

_ASKED_AT_ONCE = 256
while_blocked: ContextVar[bool] = ContextVar("emberflow-while-blocked", default=False)
"""Set for a call whose caller blocks the gate's event loop: it must not wait here for calls that cannot continue."""


class MemoryLedger:
    """For a single process, or for one of several that cannot share a ledger."""

    def __init__(self) -> None:
        self.state = LimitState()

    def change(self, step: Callable[[LimitState], T]) -> T:
        return step(self.state)

    def close(self) -> None:
        """Does nothing: others may still use it."""


class Ledgers(Protocol):
    """The ledgers of a job; created by its engine."""

    def of(self, name: str, limits: ModelLimits) -> tuple[Ledger, ModelLimits]:
        """The ledger of a model, and this process's share of its limits."""
        ...


class MemoryLedgers:
    """For a job in one process. With `parts`, for one of that many processes that cannot share a ledger: each gets an
    equal share of every limit."""

    def __init__(self, parts: int = 1) -> None:
        self._parts = parts
        self._ledgers: dict[str, MemoryLedger] = {}

    def of(self, name: str, limits: ModelLimits) -> tuple[Ledger, ModelLimits]:
        return self._ledgers.setdefault(name, MemoryLedger()), limits.divided(self._parts)


class _Waiter:
    __slots__ = ("admitted", "tokens")

    def __init__(self, tokens: float) -> None:
        self.tokens = tokens
        self.admitted: asyncio.Future[int] = asyncio.get_running_loop().create_future()


class Gate:
    """Admits calls of one connection. Bounded and in order; a canceled call leaves no trace."""

    def __init__(self, name: str, limits: ModelLimits, ledger: Ledger) -> None:
        self.name = name
        self.limits = limits
        self._share = LimitShare(limits, ledger)
        self._queue: deque[_Waiter] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._gauges: list[tuple[Gauge, ...]] = []
        self.waiting = 0
        self.in_flight = 0
        self.throttled = 0
        self.throttled_s = 0.0

    def publish(self, group: MetricGroup) -> None:
        """Shows in the group how many calls wait and are in flight, the current limits of calls in flight and of requests
        per second (None: unlimited), how often the service said "too many" and how long calls were paused."""
        names = ("waiting", "in_flight", "limit", "rate", "throttled", "throttled_seconds")
        self._gauges.append(tuple(group.get_gauge(name) for name in names))
        self._show()

    async def call(
        self,
        make: Callable[[], Awaitable[T]],
        *,
        tokens: float = 0.0,
        used: Callable[[T], float | None] = lambda answer: None,
    ) -> T:
        """The result of `make()`; `tokens` is an estimate of what it will consume, `used` reads it from the answer."""
        if while_blocked.get():
            return await make()
        retries = 0
        while True:
            epoch = await self._enter(tokens, again=retries > 0)
            try:
                answer = await make()
            except BaseException as error:
                throttle = throttle_of(error) if isinstance(error, Exception) else None
                if throttle is None:
                    # It failed for another reason, but was accepted: it counts as an allowed request.
                    self._leave(epoch, taken=isinstance(error, Exception), tokens=0.0)
                    raise
                self._turned_away(throttle, epoch, tokens)
                retries += 1
                if retries > self.limits.throttle_retries or first_refusal_counts():
                    raise
                continue
            spent = used(answer)
            self._leave(epoch, taken=True, tokens=0.0 if spent is None else spent - tokens)
            return answer

    # one call

    async def _enter(self, tokens: float, *, again: bool) -> int:
        """Returns when the call may start, with the epoch that admitted it."""
        loop = asyncio.get_running_loop()
        if not self.waiting and self._share.may_begin(loop.time(), self.in_flight, 1, lambda: [tokens]):
            self._begin()
            return self._share.epoch
        if self.waiting >= self.limits.max_waiting:
            raise ResourceFailed(
                f"{self.waiting:,} calls of this process wait for {self.name}, which is the maximum",
                cause="max_waiting in its descriptor is the limit",
                way_out="lower 'max-in-flight', so that the source slows down, or raise max_waiting",
            )
        waiter = _Waiter(tokens)
        # A call that was rejected has waited already.
        (self._queue.appendleft if again else self._queue.append)(waiter)
        self.waiting += 1
        self._pump()
        self._show()
        try:
            return await waiter.admitted
        except asyncio.CancelledError:
            if waiter.admitted.done() and not waiter.admitted.cancelled():
                self._leave(self._share.epoch, taken=False, tokens=0.0)
            else:
                self.waiting -= 1
                waiter.admitted.cancel()
                self._pump()
            raise

    def _begin(self) -> None:
        self.in_flight += 1
        self._share.started()
        self._show()

    def _leave(self, epoch: int, *, taken: bool, tokens: float) -> None:
        self.in_flight -= 1
        self._share.ended(epoch, tokens, taken=taken)
        self._pump()
        self._show()

    def _turned_away(self, throttle: Throttle, epoch: int, tokens: float) -> None:
        now = asyncio.get_running_loop().time()
        self.throttled += 1
        self.throttled_s += self._share.turned_away(
            throttle, now, epoch, tokens, self.in_flight, self.waiting
        )
        self.in_flight -= 1
        self._pump()
        self._show()

    # the queue

    def _pump(self) -> None:
        """Admits the calls that may start, and schedules the next check."""
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        queue, now = self._queue, loop.time()
        while queue:
            if queue[0].admitted.done():
                queue.popleft()
                continue
            if not self._share.may_begin(now, self.in_flight, self.waiting, self._asked_tokens):
                next_look = self._share.next_look(now, self.in_flight)
                self._timer = loop.call_at(max(next_look, now + 0.001), self._pump)
                return
            self.waiting -= 1
            self._begin()
            # Set now: by the time the call runs, another one may have been rejected.
            queue.popleft().admitted.set_result(self._share.epoch)
        self._rest(loop, now)

    def _asked_tokens(self) -> list[float]:
        return [
            waiter.tokens
            for _, waiter in zip(range(_ASKED_AT_ONCE), self._queue, strict=False)
            if not waiter.admitted.done()
        ]

    def _rest(self, loop: asyncio.AbstractEventLoop, now: float) -> None:
        """No call is waiting: returns grants that this process does not need."""
        keeps_for_s = self._share.keeps_for_s()
        if keeps_for_s:
            self._timer = loop.call_at(now + keeps_for_s, self._give_back)
        elif keeps_for_s is not None:
            self._give_back()

    def _give_back(self) -> None:
        self._timer = None
        if not self.waiting:
            self._share.give_back(asyncio.get_running_loop().time(), self.in_flight)

    def close(self) -> None:
        """Returns all grants of this process."""
        if self._timer is not None:
            self._timer.cancel()
        self._share.close()

    # metrics

    def _show(self) -> None:
        for waiting, in_flight, limit, rate, throttled, seconds in self._gauges:
            waiting.update(self.waiting)
            in_flight.update(self.in_flight)
            limit.update(self._share.limit)
            rate.update(self._share.rate)
            throttled.update(self.throttled)
            seconds.update(round(self.throttled_s, 3))
