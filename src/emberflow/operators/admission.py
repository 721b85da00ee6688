"""Admission to a model: calls of one process wait here, in order, until the limits that all processes share let them go.

A `Gate` belongs to one connection in one process and is used on one event loop. It asks its ledger for a little at a
time: calls that may be in flight, moments at which requests may begin. A call that the service turns away with "too
many requests" is made again from here, after a pause that all processes keep; its caller does not see it.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from emberflow.errors import ResourceFailed
from emberflow.observability.metric_group import Gauge, MetricGroup
from emberflow.operators.model_limits import ModelLimits
from emberflow.operators.rate_limits import LimitState
from emberflow.operators.throttling import Throttle, throttle_of

T = TypeVar("T")

FRESH_S = 0.1
"""How long a process may go on without looking whether another one has met a 429."""
POLL_S = 0.02
"""Between two looks whether other processes have given calls in flight back."""
_ASKED_AT_ONCE = 256


class Ledger(Protocol):
    """Where the state of one model lives for all processes of a job."""

    def change(self, step: Callable[[LimitState], T]) -> T:
        """Runs the step on the state, alone."""
        ...

    def close(self) -> None:
        """This process has no more to ask."""
        ...


class MemoryLedger:
    """For one process, and for one of several that cannot reach each other."""

    def __init__(self) -> None:
        self.state = LimitState()

    def change(self, step: Callable[[LimitState], T]) -> T:
        return step(self.state)

    def close(self) -> None:
        """Others may still use it."""


class Ledgers(Protocol):
    """The ledgers of a job; made by its engine."""

    def of(self, name: str, limits: ModelLimits) -> tuple[Ledger, ModelLimits]:
        """The ledger of a model, and what of its limits is this process's to keep."""
        ...


class MemoryLedgers:
    """For a job in one process. With `parts`, for one of as many processes that cannot reach each other: each keeps an
    equal part of every limit."""

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
    """Lets calls of one connection through. Bounded, in order, and a call that is cancelled leaves no trace."""

    def __init__(self, name: str, limits: ModelLimits, ledger: Ledger) -> None:
        self.name = name
        self.limits = limits
        self._ledger = ledger
        self._owner = uuid.uuid4().hex[:12]
        self._queue: deque[_Waiter] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._gauges: list[tuple[Gauge, ...]] = []
        self._starts: deque[float] = deque()
        self._slots: int | None = None
        self._limit: int | None = None
        self._wanted = self._held = 0
        self._rate: float | None = None
        self._rated = False
        self._epoch = 0
        self._paused_until = 0.0
        self._refreshed_at = float("-inf")
        self._member = self._alone = False
        self._succeeded: dict[int, int] = {}
        self._unsettled = 0.0
        self.waiting = 0
        self.in_flight = 0
        self.throttled = 0
        self.throttled_s = 0.0

    def publish(self, group: MetricGroup) -> None:
        """From now on the group shows how many calls wait and are in flight, how many may be and how many may begin in a
        second (None: any number), how often the service said "too many" and how long it made calls pause."""
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
        """What `make()` answers; `tokens` is a guess at what it will take, `used` reads it off the answer."""
        retries = 0
        while True:
            epoch = await self._enter(tokens, again=retries > 0)
            try:
                answer = await make()
            except BaseException as error:
                throttle = throttle_of(error) if isinstance(error, Exception) else None
                if throttle is None:
                    # Refused for another reason, but taken: it counts as a request that was allowed.
                    self._leave(epoch, ended=isinstance(error, Exception), tokens=0.0)
                    raise
                self._turned_away(throttle, epoch, tokens)
                retries += 1
                if retries > self.limits.throttle_retries:
                    raise
                continue
            spent = used(answer)
            self._leave(epoch, ended=True, tokens=0.0 if spent is None else spent - tokens)
            return answer

    # one call

    async def _enter(self, tokens: float, *, again: bool) -> int:
        """Returns when the call may begin, with the epoch that let it."""
        loop = asyncio.get_running_loop()
        if not self.waiting and self._may_begin(loop.time(), [tokens]):
            self._begin()
            return self._epoch
        if self.waiting >= self.limits.max_waiting:
            raise ResourceFailed(
                f"{self.waiting:,} calls of this process wait for {self.name}, and one more would be too many",
                cause="the limit is max_waiting in its descriptor",
                way_out="lower 'max-in-flight', so that the source slows down, or raise max_waiting",
            )
        waiter = _Waiter(tokens)
        # A call that was turned away has waited already.
        (self._queue.appendleft if again else self._queue.append)(waiter)
        self.waiting += 1
        self._pump()
        self._show()
        try:
            return await waiter.admitted
        except asyncio.CancelledError:
            if waiter.admitted.done() and not waiter.admitted.cancelled():
                self._leave(self._epoch, ended=False, tokens=0.0)
            else:
                self.waiting -= 1
                waiter.admitted.cancel()
                self._pump()
            raise

    def _begin(self) -> None:
        self.in_flight += 1
        if self._rated and self._starts:
            self._starts.popleft()
        self._show()

    def _leave(self, epoch: int, *, ended: bool, tokens: float) -> None:
        self.in_flight -= 1
        if ended:
            self._succeeded[epoch] = self._succeeded.get(epoch, 0) + 1
        self._unsettled += tokens
        self._pump()
        self._show()

    def _turned_away(self, throttle: Throttle, epoch: int, tokens: float) -> None:
        now = asyncio.get_running_loop().time()
        self.throttled += 1

        def note(state: LimitState) -> None:
            self._report(state, now)
            # What it was to take, the service has not counted.
            state.settle(self.limits, -tokens)
            state.occupy(self.limits, self._owner, self.in_flight, self.waiting)
            until = state.paused_until
            state.throttle(self.limits, now, epoch, throttle.retry_after_s)
            self.throttled_s += max(0.0, state.paused_until - max(until, now))

        self._ledger.change(note)
        self.in_flight -= 1
        self._refreshed_at = float("-inf")
        self._pump()
        self._show()

    # the queue

    def _pump(self) -> None:
        """Lets through whoever may go, and sees to it that somebody looks again in time."""
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        queue, now = self._queue, loop.time()
        while queue:
            if queue[0].admitted.done():
                queue.popleft()
                continue
            if not self._may_begin(now, None):
                self._timer = loop.call_at(max(self._next_look(now), now + 0.001), self._pump)
                return
            self.waiting -= 1
            self._begin()
            # Said now: when the call gets to run, another may have been turned away.
            queue.popleft().admitted.set_result(self._epoch)
        self._rest(loop, now)

    def _may_begin(self, now: float, tokens: list[float] | None) -> bool:
        """Whether the next call may begin at once. `tokens`: of a call that does not stand in the queue yet."""
        stale = now - self._refreshed_at >= FRESH_S
        wanted = self.in_flight + self.waiting + len(tokens or ())
        more = (
            self._full
            and self._slots != self._limit
            and (wanted > self._wanted or now - self._refreshed_at >= POLL_S)
        )
        if stale or more or (self._rated and not self._starts and now >= self._paused_until):
            self._refresh(now, tokens)
        if self._full or now < self._paused_until:
            return False
        return not self._rated or (bool(self._starts) and self._starts[0] <= now + 0.0005)

    @property
    def _full(self) -> bool:
        return self._slots is not None and self.in_flight >= self._slots

    def _next_look(self, now: float) -> float:
        if now < self._paused_until:
            return self._paused_until
        if self._full:
            # What this process has in flight wakes it up by itself; what others have does not.
            return now + (FRESH_S if self._slots == self._limit else POLL_S)
        # A pause that another process has met is seen before the next call begins.
        return self._starts[0] if self._starts else now + FRESH_S

    def _rest(self, loop: asyncio.AbstractEventLoop, now: float) -> None:
        """Nobody waits: what this process holds and does not need goes back, at once if others may want it."""
        if not self._member:
            return
        if self._slots is None or self._alone:
            self._timer = loop.call_at(now + FRESH_S, self._give_back)
        else:
            self._give_back()

    def _give_back(self) -> None:
        self._timer = None
        if self.waiting:
            return
        if not self.in_flight:
            self._retire()
        elif self._slots is not None and self.in_flight < self._held:
            self._refresh(asyncio.get_running_loop().time(), [])

    # the ledger

    def _refresh(self, now: float, tokens: list[float] | None) -> None:
        waiting = self.waiting + len(tokens or ())
        if tokens is None:
            tokens = [
                waiter.tokens
                for _, waiter in zip(range(_ASKED_AT_ONCE), self._queue, strict=False)
                if not waiter.admitted.done()
            ]

        def ask(state: LimitState) -> None:
            self._report(state, now)
            state.recover(self.limits, now)
            if state.epoch != self._epoch:
                self._starts.clear()
            self._epoch = state.epoch
            self._slots = state.occupy(self.limits, self._owner, self.in_flight, waiting)
            self._limit = state.concurrency(self.limits)
            self._rate = state.request_rate(self.limits)
            self._rated = self._rate is not None or self.limits.tokens_per_minute is not None
            # During a pause nothing is reserved: afterwards the limits may be others.
            if self._rated and not self._starts and tokens and now >= state.paused_until:
                self._starts.extend(state.reserve(self.limits, now, tokens))
            self._paused_until = state.paused_until
            self._alone = len(state.members) == 1

        self._ledger.change(ask)
        self._refreshed_at = now
        self._wanted = self.in_flight + waiting
        self._held = max(self.in_flight, self._slots or 0)
        self._member = True

    def _report(self, state: LimitState, now: float) -> None:
        if self._succeeded:
            for epoch, count in self._succeeded.items():
                state.succeeded(now, epoch, count)
            self._succeeded = {}
        if self._unsettled:
            state.settle(self.limits, self._unsettled)
            self._unsettled = 0.0

    def _retire(self) -> None:
        now = asyncio.get_running_loop().time()

        def leave(state: LimitState) -> None:
            self._report(state, now)
            state.leave(self._owner)

        self._ledger.change(leave)
        self._member = False
        self._refreshed_at = float("-inf")
        self._starts.clear()

    def close(self) -> None:
        """What this process held goes back."""
        if self._timer is not None:
            self._timer.cancel()
        if self._member:
            self._ledger.change(lambda state: state.leave(self._owner))
        self._ledger.close()

    # metrics

    def _show(self) -> None:
        for waiting, in_flight, limit, rate, throttled, seconds in self._gauges:
            waiting.update(self.waiting)
            in_flight.update(self.in_flight)
            limit.update(self._limit)
            rate.update(self._rate)
            throttled.update(self.throttled)
            seconds.update(round(self.throttled_s, 3))
