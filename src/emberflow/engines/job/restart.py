"""Whether and when a failed job is restarted. One `Restarts` per job, consulted after each failure; the job itself waits."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable

from emberflow.errors import CheckpointError, EmberflowError, EnvironmentProblem, ProgramError
from emberflow.event_time.clock import Clock, SystemClock
from emberflow.plan.restart_strategy import ExponentialDelay, FailureRate, FixedDelay, RestartStrategy


class Restarts:
    """Counts failures against a restart strategy. Without one, nothing is restarted."""

    def __init__(
        self,
        strategy: RestartStrategy | None,
        clock: Clock | None = None,
        vary: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._strategy = strategy
        self._clock: Clock = clock or SystemClock()
        self._vary = vary
        self._failures: deque[int] = deque()
        self._backoff_ms = 0.0
        self.count = 0
        """Restarts so far."""

    def delay_ms(self, error: BaseException) -> int | None:
        """The delay before the job is restarted after this failure; None if it has failed permanently."""
        if not may_go_away(error):
            return None
        now_ms = self._clock.now_ms()
        delay = self._delay(now_ms)
        if delay is not None:
            self.count += 1
        return delay

    def _delay(self, now_ms: int) -> int | None:
        strategy = self._strategy
        if isinstance(strategy, FixedDelay):
            return strategy.delay_ms if self.count < strategy.attempts else None
        if isinstance(strategy, FailureRate):
            return self._by_rate(strategy, now_ms)
        if isinstance(strategy, ExponentialDelay):
            return self._growing(strategy, now_ms)
        return None

    def _by_rate(self, strategy: FailureRate, now_ms: int) -> int | None:
        self._failures.append(now_ms)
        while self._failures[0] <= now_ms - strategy.interval_ms:
            self._failures.popleft()
        return strategy.delay_ms if len(self._failures) <= strategy.failures else None

    def _growing(self, strategy: ExponentialDelay, now_ms: int) -> int | None:
        last = self._failures[-1] if self._failures else None
        if last is not None and now_ms - last >= strategy.reset_ms:
            self._backoff_ms = 0.0
            self._failures.clear()
        if strategy.attempts is not None and len(self._failures) >= strategy.attempts:
            return None
        grown = self._backoff_ms * strategy.multiplier
        self._backoff_ms = min(grown or float(strategy.initial_ms), float(strategy.max_ms))
        spread = self._backoff_ms * strategy.jitter
        delay = int(self._backoff_ms + self._vary(-spread, spread))
        # The delay does not count as time without a failure.
        self._failures.append(now_ms + delay)
        return delay


def may_go_away(error: BaseException) -> bool:
    """Whether a restart could help: a program that is wrong or incompatible with its state stays so."""
    if isinstance(error, EmberflowError):
        return not isinstance(error, ProgramError | CheckpointError | EnvironmentProblem)
    return isinstance(error, Exception)
