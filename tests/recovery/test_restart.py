"""Restart strategies: by an injected clock, and by jobs that fail and go on from their latest checkpoint."""

from __future__ import annotations

import pytest

from emberflow.engines.restart import Restarts
from emberflow.errors import CorruptData, InvalidArgument, ProgramChanged, StepFailed
from emberflow.event_time.clock import FixedClock
from emberflow.streams import RestartStrategies

FAILURE = StepFailed("step 'x' failed")


class SteeredClock(FixedClock):
    def __init__(self) -> None:
        super().__init__(0)
        self.time_ms = 0

    def now_ms(self) -> int:
        return self.time_ms


def test_without_a_strategy_a_failure_is_final() -> None:
    assert Restarts(None).delay_ms(FAILURE) is None
    assert Restarts(RestartStrategies.no_restart()).delay_ms(FAILURE) is None


def test_fixed_delay_counts_attempts() -> None:
    restarts = Restarts(RestartStrategies.fixed_delay_restart(2, 50))
    assert [restarts.delay_ms(FAILURE) for _ in range(3)] == [50, 50, None]
    assert restarts.count == 2


def test_failure_rate_forgets_what_is_long_ago() -> None:
    clock = SteeredClock()
    restarts = Restarts(RestartStrategies.failure_rate_restart(2, 1_000, 10), clock)
    found: list[int | None] = []
    for clock.time_ms in (0, 400, 1_000, 1_100, 1_200):
        found.append(restarts.delay_ms(FAILURE))
    assert found == [10, 10, 10, None, None]


def test_exponential_delay_grows_to_its_limit_and_begins_anew() -> None:
    clock = SteeredClock()
    strategy = RestartStrategies.exponential_delay_restart(100, 500, 2.0, 60_000, 0.0)
    restarts = Restarts(strategy, clock)
    found: list[int | None] = []
    for _ in range(5):
        found.append(restarts.delay_ms(FAILURE))
        clock.time_ms += 1_000
    assert found == [100, 200, 400, 500, 500]
    clock.time_ms += 120_000
    assert restarts.delay_ms(FAILURE) == 100


def test_exponential_delay_varies_and_may_give_up() -> None:
    strategy = RestartStrategies.exponential_delay_restart(1_000, 5_000, 2.0, 60_000, 0.2, 2)
    restarts = Restarts(strategy, SteeredClock(), vary=lambda low, high: high)
    assert [restarts.delay_ms(FAILURE) for _ in range(3)] == [1_200, 2_400, None]


@pytest.mark.parametrize(
    "error", [ProgramChanged("x"), CorruptData("x"), InvalidArgument("x")], ids=lambda e: type(e).__name__
)
def test_what_cannot_go_away_is_not_tried_again(error: Exception) -> None:
    assert Restarts(RestartStrategies.fixed_delay_restart(5, 0)).delay_ms(error) is None


def test_strategies_refuse_nonsense() -> None:
    with pytest.raises(InvalidArgument, match="restart_attempts must be at least 0, got -1"):
        RestartStrategies.fixed_delay_restart(-1)
    with pytest.raises(InvalidArgument, match="max_backoff must be at least 1000"):
        RestartStrategies.exponential_delay_restart(1_000, 10)
    with pytest.raises(InvalidArgument, match="jitter_factor"):
        RestartStrategies.exponential_delay_restart(jitter_factor=1.5)
