"""One process's share of the limits that all processes of a job share.

A `LimitShare` requests small grants from its ledger: calls that may be in flight, times at which requests may start. It
does not know the waiting calls; `operators/admission/gate.py` has the queue.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeVar

from emberflow.operators.admission.model_limits import ModelLimits
from emberflow.operators.admission.rate_limits import LimitState
from emberflow.operators.admission.throttling import Throttle

T = TypeVar("T")

FRESH_S = 0.1
"""How long a process may continue without checking whether another one has received a 429."""
POLL_S = 0.02
"""Polling interval for calls in flight that other processes have released."""


class Ledger(Protocol):
    """Where the state of one model is kept for all processes of a job."""

    def change(self, step: Callable[[LimitState], T]) -> T:
        """Runs the step on the state, under mutual exclusion."""
        ...

    def close(self) -> None:
        """This process has no more requests."""
        ...


class LimitShare:
    """The parameters `in_flight` and `waiting` are always those of this process."""

    def __init__(self, limits: ModelLimits, ledger: Ledger) -> None:
        self._limits = limits
        self._ledger = ledger
        self._owner = uuid.uuid4().hex
        self._starts: deque[float] = deque()
        self._slots: int | None = None
        self._wanted = self._held = 0
        self._rated = False
        self._paused_until = 0.0
        self._refreshed_at = float("-inf")
        self._member = self._alone = False
        self._succeeded: dict[int, int] = {}
        self._unsettled = 0.0
        self.limit: int | None = None
        """The limit of calls in flight in all processes; None: unlimited."""
        self.rate: float | None = None
        """Requests per second in all processes; None: unlimited."""
        self.epoch = 0

    # whether a call may start

    def may_begin(self, now: float, in_flight: int, waiting: int, tokens: Callable[[], list[float]]) -> bool:
        """Whether the next waiting call may start now; `tokens`: what the next calls will consume."""
        stale = now - self._refreshed_at >= FRESH_S
        more = (
            self._full(in_flight)
            and self._slots != self.limit
            and (in_flight + waiting > self._wanted or now - self._refreshed_at >= POLL_S)
        )
        if stale or more or (self._rated and not self._starts and now >= self._paused_until):
            self._refresh(now, in_flight, waiting, tokens())
        if self._full(in_flight) or now < self._paused_until:
            return False
        return not self._rated or (bool(self._starts) and self._starts[0] <= now + 0.0005)

    def _full(self, in_flight: int) -> bool:
        return self._slots is not None and in_flight >= self._slots

    def next_look(self, now: float, in_flight: int) -> float:
        """When a call that may not start now should check again."""
        if now < self._paused_until:
            return self._paused_until
        if self._full(in_flight):
            # A call of this process that ends triggers the next check; calls of other processes do not.
            return now + (FRESH_S if self._slots == self.limit else POLL_S)
        # A pause caused by another process is noticed before the next call starts.
        return self._starts[0] if self._starts else now + FRESH_S

    # results of calls

    def started(self) -> None:
        if self._rated and self._starts:
            self._starts.popleft()

    def ended(self, epoch: int, tokens: float, *, taken: bool) -> None:
        """`taken`: the service did not reject it as too much; `tokens`: beyond those that were reserved."""
        if taken:
            self._succeeded[epoch] = self._succeeded.get(epoch, 0) + 1
        self._unsettled += tokens

    def turned_away(
        self, throttle: Throttle, now: float, epoch: int, tokens: float, in_flight: int, waiting: int
    ) -> float:
        """Pauses all processes; returns by how many seconds this extends their pause."""

        def note(state: LimitState) -> float:
            self._report(state, now)
            # The service has not counted the tokens that it would have consumed.
            state.settle(self._limits, -tokens)
            state.occupy(self._limits, self._owner, in_flight, waiting)
            until = state.paused_until
            state.throttle(self._limits, now, epoch, throttle.retry_after_s)
            return max(0.0, state.paused_until - max(until, now))

        longer_s = self._ledger.change(note)
        self._refreshed_at = float("-inf")
        return longer_s

    # returning grants

    def keeps_for_s(self) -> float | None:
        """How long it keeps unneeded grants while no call is waiting: 0 if others may want them; None if it holds
        nothing."""
        if not self._member:
            return None
        return FRESH_S if self._slots is None or self._alone else 0.0

    def give_back(self, now: float, in_flight: int) -> None:
        """Returns grants that this process does not need while no call is waiting."""
        if not in_flight:
            self._retire(now)
        elif self._slots is not None and in_flight < self._held:
            self._refresh(now, in_flight, 0, [])

    def close(self) -> None:
        """Returns all grants of this process."""
        if self._member:
            self._ledger.change(lambda state: state.leave(self._owner))
        self._ledger.close()

    # the ledger

    def _refresh(self, now: float, in_flight: int, waiting: int, tokens: list[float]) -> None:
        def ask(state: LimitState) -> None:
            self._report(state, now)
            state.recover(self._limits, now)
            if state.epoch != self.epoch:
                self._starts.clear()
            self.epoch = state.epoch
            self._slots = state.occupy(self._limits, self._owner, in_flight, waiting)
            self.limit = state.concurrency(self._limits)
            self.rate = state.request_rate(self._limits)
            self._rated = self.rate is not None or self._limits.tokens_per_minute is not None
            # Reserve nothing during a pause: the limits may change after it.
            if self._rated and not self._starts and tokens and now >= state.paused_until:
                self._starts.extend(state.reserve(self._limits, now, tokens))
            self._paused_until = state.paused_until
            self._alone = len(state.members) == 1

        self._ledger.change(ask)
        self._refreshed_at = now
        self._wanted = in_flight + waiting
        self._held = max(in_flight, self._slots or 0)
        self._member = True

    def _report(self, state: LimitState, now: float) -> None:
        if self._succeeded:
            for epoch, count in self._succeeded.items():
                state.succeeded(now, epoch, count)
            self._succeeded = {}
        if self._unsettled:
            state.settle(self._limits, self._unsettled)
            self._unsettled = 0.0

    def _retire(self, now: float) -> None:
        def leave(state: LimitState) -> None:
            self._report(state, now)
            state.leave(self._owner)

        self._ledger.change(leave)
        self._member = False
        self._refreshed_at = float("-inf")
        self._starts.clear()
