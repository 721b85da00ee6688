"""What happens when a job fails, as data. `engines/job/restart.py` applies it; names follow PyFlink."""

from __future__ import annotations

from dataclasses import dataclass

from emberflow.errors import InvalidArgument


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartStrategy:
    """Base of all strategies; create one with `RestartStrategies`."""

    def get_description(self) -> str:
        """The strategy and its settings."""
        return repr(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoRestart(RestartStrategy):
    """A failure ends the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedDelay(RestartStrategy):
    attempts: int
    delay_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRate(RestartStrategy):
    """The job ends when it fails more than `failures` times within `interval_ms`."""

    failures: int
    interval_ms: int
    delay_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialDelay(RestartStrategy):
    """The delay grows with each failure and is reset once the job has run for `reset_ms` without one."""

    initial_ms: int
    max_ms: int
    multiplier: float
    reset_ms: int
    jitter: float
    attempts: int | None


class RestartStrategies:
    """The strategies for `env.set_restart_strategy()`. A restarted job continues from its latest checkpoint."""

    @staticmethod
    def no_restart() -> RestartStrategy:
        """A failed job is not restarted."""
        return NoRestart()

    @staticmethod
    def fall_back_restart() -> RestartStrategy:
        """Like `no_restart()`: there is no cluster with a strategy of its own."""
        return NoRestart()

    @staticmethod
    def fixed_delay_restart(restart_attempts: int, delay_between_attempts: int = 0) -> RestartStrategy:
        """At most this many restarts over the lifetime of the job, each after this many milliseconds."""
        _at_least(0, restart_attempts=restart_attempts, delay_between_attempts=delay_between_attempts)
        return FixedDelay(attempts=restart_attempts, delay_ms=delay_between_attempts)

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: int, delay_interval: int = 0
    ) -> RestartStrategy:
        """Restarts until there are more than `failure_rate` failures in `failure_interval` milliseconds."""
        _at_least(1, failure_rate=failure_rate, failure_interval=failure_interval)
        _at_least(0, delay_interval=delay_interval)
        return FailureRate(failures=failure_rate, interval_ms=failure_interval, delay_ms=delay_interval)

    @staticmethod
    def exponential_delay_restart(
        initial_backoff: int = 1_000,
        max_backoff: int = 60_000,
        backoff_multiplier: float = 1.5,
        reset_backoff_threshold: int = 3_600_000,
        jitter_factor: float = 0.1,
        restart_attempts: int | None = None,
    ) -> RestartStrategy:
        """Waits longer after each failure, from `initial_backoff` up to `max_backoff` milliseconds, each varied by up to
        `jitter_factor`; reset after `reset_backoff_threshold` milliseconds without a failure."""
        _at_least(1, initial_backoff=initial_backoff, reset_backoff_threshold=reset_backoff_threshold)
        _at_least(initial_backoff, max_backoff=max_backoff)
        _at_least(1, backoff_multiplier=backoff_multiplier)
        if not 0 <= jitter_factor < 1:
            raise InvalidArgument(f"jitter_factor must be at least 0 and below 1, got {jitter_factor}")
        if restart_attempts is not None:
            _at_least(0, restart_attempts=restart_attempts)
        return ExponentialDelay(
            initial_ms=initial_backoff,
            max_ms=max_backoff,
            multiplier=backoff_multiplier,
            reset_ms=reset_backoff_threshold,
            jitter=jitter_factor,
            attempts=restart_attempts,
        )


def _at_least(lowest: int, **values: float) -> None:
    for name, value in values.items():
        if value < lowest:
            raise InvalidArgument(f"{name} must be at least {lowest}, got {value}")
