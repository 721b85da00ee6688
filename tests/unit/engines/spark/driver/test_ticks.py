"""When a micro-batch without input runs: with an injected time and a log of parked actions."""

from __future__ import annotations

import itertools
from typing import Any, cast

import pytest

from emberflow.engines.spark.driver import ticks
from emberflow.engines.spark.driver.ticks import Ticks


class Log:
    def __init__(self) -> None:
        self.actions: dict[str, bool] = {}
        """Parked action -> whether it is still running."""
        self.due_ms: int | None = None
        self.followed = 0

    def follow(self) -> None:
        self.followed += 1

    def parked(self) -> list[str]:
        return list(self.actions)

    def running(self, action: str) -> bool:
        return self.actions[action]

    def next_due_ms(self) -> int | None:
        return self.due_ms


class Time:
    """Replaces the module `time`."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def monotonic(self) -> float:
        return self.now_s

    def time(self) -> float:
        return self.now_s


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(ticks, "time", made)
    return made


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def asked(log: Log) -> Ticks:
    return Ticks(cast(Any, log))


def test_nothing_parked_and_no_timer(asked: Ticks, log: Log, now: Time) -> None:
    assert not asked.due()
    now.now_s += 3_600
    assert not asked.due()
    assert log.followed == 2, "the log is read before each answer"


def test_an_ended_action_gets_a_batch_at_once(asked: Ticks, log: Log, now: Time) -> None:
    log.actions = {"a": True, "b": True}
    assert asked.due(), "workers are kept alive"
    assert not asked.due()
    log.actions["a"] = False
    assert asked.due()


def test_workers_with_calls_are_kept_alive(asked: Ticks, log: Log, now: Time) -> None:
    log.actions = {"a": True}
    assert asked.due()
    now.now_s += 9.9
    assert not asked.due()
    now.now_s += 0.2
    assert asked.due()
    assert not asked.due()


def test_an_action_that_a_batch_did_not_handle_is_retried_after_a_pause(
    asked: Ticks, log: Log, now: Time
) -> None:
    log.actions = {"a": False}
    moments: list[float] = []
    for _ in range(6_000):
        if asked.due():
            moments.append(now.now_s)
        now.now_s += 0.01
    pauses = [round(later - earlier, 1) for earlier, later in itertools.pairwise(moments)]
    assert len(moments) > 5, "it is retried"
    assert pauses[:4] == [0.1, 0.2, 0.4, 0.8], "the pause grows with each batch, not with each poll"
    assert max(pauses) == pytest.approx(10.0, abs=0.2)


def test_another_ended_action_does_not_wait_for_the_pause(asked: Ticks, log: Log, now: Time) -> None:
    log.actions = {"a": False, "b": True}
    assert asked.due()
    assert not asked.due()
    log.actions["b"] = False
    assert asked.due()


def test_a_timer_that_is_due_gets_one_batch(asked: Ticks, log: Log, now: Time) -> None:
    log.due_ms = 1_005_000
    assert not asked.due()
    now.now_s = 1_005.0
    assert asked.due()
    assert not asked.due(), "the batch was run; it sets the next time"
    log.due_ms = 1_006_000
    assert not asked.due()
    now.now_s = 1_006.5
    assert asked.due()
