"""Restart strategies: with an injected clock, and with jobs that fail and continue from their latest checkpoint."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from emberflow.cli.main import main
from emberflow.engines.job.restart import Restarts
from emberflow.errors import CorruptData, InvalidArgument, ProgramChanged, StepFailed
from emberflow.event_time.clock import FixedClock
from emberflow.streams import CheckpointingMode, CollectSink, JobStatus, RestartStrategies
from emberflow.testing import (
    LOCAL,
    LOCAL_2,
    LOCAL_SQLITE,
    SPARK,
    Crash,
    Cut,
    Host,
    TestSource,
    literal_files,
    read_committed,
)
from tests.support.recovery.processes import committed, finish, start

FAILURE = StepFailed("step 'x' failed")

COUNTS = [("a", 1), ("b", 1), ("a", 2), ("b", 2), ("a", 3), ("c", 1), ("a", 4)]


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


def test_failure_rate_ignores_old_failures() -> None:
    clock = SteeredClock()
    restarts = Restarts(RestartStrategies.failure_rate_restart(2, 1_000, 10), clock)
    found: list[int | None] = []
    for clock.time_ms in (0, 400, 1_000, 1_100, 1_200):
        found.append(restarts.delay_ms(FAILURE))
    assert found == [10, 10, 10, None, None]


def test_exponential_delay_grows_to_its_limit_and_is_reset() -> None:
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
def test_permanent_errors_are_not_retried(error: Exception) -> None:
    assert Restarts(RestartStrategies.fixed_delay_restart(5, 0)).delay_ms(error) is None


def test_strategies_reject_invalid_arguments() -> None:
    with pytest.raises(InvalidArgument, match="restart_attempts must be at least 0, got -1"):
        RestartStrategies.fixed_delay_restart(-1)
    with pytest.raises(InvalidArgument, match="max_backoff must be at least 1000"):
        RestartStrategies.exponential_delay_restart(1_000, 10)
    with pytest.raises(InvalidArgument, match="jitter_factor"):
        RestartStrategies.exponential_delay_restart(jitter_factor=1.5)


HOSTS = [
    *(pytest.param(host, id=str(host)) for host in (LOCAL, LOCAL_2, LOCAL_SQLITE)),
    pytest.param(SPARK, id="spark", marks=pytest.mark.spark),
]


@pytest.mark.parametrize("host", HOSTS)
def test_a_failed_job_continues_from_its_latest_checkpoint(host: Host, tmp_path: Path) -> None:
    out: list[Any] = []
    env = host.environment(checkpoint_dir=tmp_path / "checkpoints").enable_checkpointing(20)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 10))
    stream = env.from_source(TestSource(words(), batch=2), source_name="words")
    pairs = stream.map(lambda word: (word, 1)).key_by(lambda pair: pair[0]).sum(1)
    pairs.sink_to(CollectSink(lambda batch: out.extend(batch.values))).uid("sink")
    job = env.execute_async("restarts")
    job.get_job_execution_result().result()
    assert sorted(out) == sorted(COUNTS)
    assert job.metrics.restarts == 2


def words() -> list[Any]:
    """Crashes are created for every test: each happens once."""
    return ["a", "b", "a", Crash(), "b", "a", Cut(), "c", Crash(), "a"]


def test_without_a_checkpoint_directory_state_is_kept_as_long_as_the_job_runs() -> None:
    out: list[Any] = []
    env = LOCAL.environment().enable_checkpointing(5)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3))
    stream = env.from_source(TestSource(words(), batch=2), source_name="words")
    pairs = stream.map(lambda word: (word, 1)).key_by(lambda pair: pair[0]).sum(1)
    pairs.sink_to(CollectSink(lambda batch: out.extend(batch.values)))
    env.execute("restarts")
    assert sorted(out) == sorted(COUNTS)


@pytest.mark.parametrize("mode", CheckpointingMode, ids=lambda mode: mode.value)
def test_at_least_once_shows_results_before_their_checkpoint(mode: CheckpointingMode, tmp_path: Path) -> None:
    """There is no checkpoint before the crash, so everything is repeated."""
    out: list[Any] = []
    env = LOCAL.environment(checkpoint_dir=tmp_path / "checkpoints").enable_checkpointing(3_600_000, mode)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 0))
    stream = env.from_source(TestSource(["a", "b", Crash(), "a"], batch=1), source_name="words")
    pairs = stream.map(lambda word: (word, 1)).key_by(lambda pair: pair[0]).sum(1)
    pairs.sink_to(CollectSink(lambda batch: out.extend(batch.values)))
    pairs.sink_to(literal_files(tmp_path / "output")).uid("files")
    env.execute("restarts")
    once = [("a", 1), ("b", 1), ("a", 2)]
    shown = once if mode is CheckpointingMode.EXACTLY_ONCE else [*once[:2], *once]
    assert sorted(out) == sorted(shown)
    assert sorted(read_committed(tmp_path / "output")) == sorted(once), "transactional sinks commit once"


def test_a_checkpointing_mode_is_one_of_two() -> None:
    config = (
        LOCAL.environment().enable_checkpointing(5, CheckpointingMode.AT_LEAST_ONCE).get_checkpoint_config()
    )
    assert config.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    wrong: Any = "at least once"
    with pytest.raises(InvalidArgument, match="the checkpointing mode cannot be 'at least once'"):
        config.set_checkpointing_mode(wrong)


def test_an_exhausted_strategy_ends_the_job(tmp_path: Path) -> None:
    env = LOCAL.environment(checkpoint_dir=tmp_path / "checkpoints")
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(2))
    env.from_collection([1]).map(lambda number: 1 // 0).print()
    job = env.execute_async("fails")
    with pytest.raises(StepFailed, match="ZeroDivisionError"):
        job.get_job_execution_result().result()
    assert job.metrics.restarts == 2


def test_a_job_that_waits_for_its_restart_can_be_canceled(tmp_path: Path) -> None:
    env = LOCAL.environment(checkpoint_dir=tmp_path / "checkpoints")
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 3_600_000))
    env.from_collection([1]).map(lambda number: 1 // 0).print()
    job = env.execute_async("fails")
    ends = time.monotonic() + 300
    while not job.metrics.restarts:
        assert time.monotonic() < ends
        time.sleep(0.01)
    job.cancel()
    assert job.get_job_status().result() is JobStatus.CANCELED


@pytest.mark.slow
def test_a_killed_job_continues_from_an_offline_savepoint(
    tmp_path: Path, undisturbed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Output, state, timers and windows: nothing is lost or repeated, with another parallelism."""
    process = start("local", "STREAMING", tmp_path)
    ends = time.monotonic() + 500
    while len(committed(tmp_path)) < 60:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < ends
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    (tmp_path / "checkpoint").rename(tmp_path / "left")
    assert main(["savepoint", "create", str(tmp_path / "left"), str(tmp_path / "savepoint")]) == 0

    monkeypatch.setenv("EMBERFLOW_SAVEPOINT", str(tmp_path / "savepoint"))
    monkeypatch.setenv("EMBERFLOW_PARALLELISM", "3")
    finish(start("local", "STREAMING", tmp_path))
    assert committed(tmp_path) == undisturbed
