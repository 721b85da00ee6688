"""A job is canceled while user code does not return: `cancel()` returns, and names the step."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path
from typing import Any

import pytest

from emberflow.errors import InvalidArgument, StepFailed
from emberflow.plan.job_contract import JobStatus
from emberflow.streams import AsyncDataStream, AsyncFunction, KeyedProcessFunction
from emberflow.testing import (
    LOCAL,
    LOCAL_HOSTS,
    Host,
    Pause,
    TestSource,
    literal_files,
    on_every_host,
    read_committed,
)
from tests.support.waiting import until

HOURS_S = 3 * 3600


class Hangs:
    """Creates a file to show that it has started."""

    def __init__(self, sign: Path, seconds: float = HOURS_S) -> None:
        self.sign = sign
        self.seconds = seconds

    def __call__(self, value: Any) -> Any:
        self.sign.write_text("begun")
        time.sleep(self.seconds)
        return value


class Swallows(AsyncFunction):
    """A call that continues whatever happens."""

    def __init__(self, sign: Path) -> None:
        self.sign = sign

    async def async_invoke(self, value: Any) -> list[Any]:
        while True:
            try:
                self.sign.write_text("begun")
                await asyncio.sleep(HOURS_S)
            except asyncio.CancelledError:
                pass


@on_every_host
def test_a_map_that_hangs(host: Host, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sign = tmp_path / "sign"
    env = host.environment(checkpoint_dir=tmp_path / "checkpoints" if host.needs_checkpoint_dir else None)
    env.add_source(TestSource([1, 2, 3])).map(Hangs(sign)).name("stuck").print()
    job = env.execute_async()
    until(sign.exists)
    with caplog.at_level(logging.WARNING, "emberflow"):
        job.cancel(timeout_ms=1_000)
    assert job.get_job_status().result() is JobStatus.CANCELED
    job.get_job_execution_result().result()
    if host.engine == "local":
        assert "the canceled job did not stop within 1 s and is abandoned: step 'stuck' (" in caplog.text
        assert "does not return, at " in caplog.text


@on_every_host(hosts=LOCAL_HOSTS)
def test_a_call_that_suppresses_its_cancellation(
    host: Host, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emberflow.engines.local.job._PATIENCE_S", 0.05)
    sign = tmp_path / "sign"
    env = host.environment()
    stream = env.add_source(TestSource([1]))
    AsyncDataStream.unordered_wait(stream, Swallows(sign), HOURS_S * 1000).name("stubborn").print()
    job = env.execute_async()
    until(sign.exists)
    with caplog.at_level(logging.WARNING, "emberflow"):
        job.cancel(timeout_ms=20_000)
    assert job.get_job_status().result() is JobStatus.CANCELED
    assert (
        "calls of step 'stubborn' continue although they were canceled; they are left behind" in caplog.text
    )


class FailsWhen:
    def __init__(self, sign: Path) -> None:
        self.sign = sign

    def __call__(self, value: Any) -> Any:
        if self.sign.exists():
            raise ZeroDivisionError
        return value


def test_a_failing_job_does_not_wait_for_a_call_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emberflow.engines.local.job._PATIENCE_S", 0.05)
    sign = tmp_path / "sign"
    env = LOCAL.environment()
    AsyncDataStream.unordered_wait(env.add_source(TestSource([1])), Swallows(sign), HOURS_S * 1000).print()
    env.add_source(TestSource([0, Pause(50)] * 1_000)).map(FailsWhen(sign)).print()
    with pytest.raises(StepFailed):
        env.execute()


def test_leaving_the_block_of_execute_and_collect(tmp_path: Path) -> None:
    sign = tmp_path / "sign"
    env = LOCAL.environment(options={"cancel_timeout_ms": 300})
    results = env.add_source(TestSource([1])).map(Hangs(sign)).execute_and_collect()
    assert not isinstance(results, list)
    with results:
        until(sign.exists)
    # Returns.


def test_an_abandoned_job_commits_nothing(tmp_path: Path) -> None:
    sign = tmp_path / "sign"
    env = LOCAL.environment(checkpoint_dir=tmp_path / "checkpoints")
    env.add_source(TestSource([1, 2])).map(Hangs(sign, 1.5)).sink_to(literal_files(tmp_path / "out"))
    job = env.execute_async()
    until(sign.exists)
    job.cancel(timeout_ms=10)
    handle: Any = job._handle
    handle.thread.join()
    assert read_committed(tmp_path / "out") == []
    assert job.get_job_status().result() is JobStatus.CANCELED


@pytest.mark.parametrize("value", [-1, 1.5, "30 s", True])
def test_the_timeout_is_whole_milliseconds(value: Any) -> None:
    env = LOCAL.environment(options={"cancel_timeout_ms": value})
    env.from_collection([1]).print()
    with pytest.raises(InvalidArgument, match="the option 'cancel_timeout_ms' cannot be"):
        env.execute()


class RegistersItselfAgain(KeyedProcessFunction[int, int, int]):
    """At the end of the input, every time is due."""

    def __init__(self, sign: Path) -> None:
        self.sign = sign

    def process_element(self, value: int, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(1)

    def on_timer(self, timestamp: int, ctx: Any) -> None:
        self.sign.write_text("begun")
        ctx.timer_service().register_event_time_timer(timestamp + 1)


@pytest.mark.parametrize("checkpoints", [False, True])
@on_every_host(hosts=LOCAL_HOSTS)
def test_a_timer_that_never_ends(
    host: Host, checkpoints: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sign = tmp_path / "sign"
    env = host.environment(
        checkpoint_dir=tmp_path / "checkpoints" if checkpoints or host.needs_checkpoint_dir else None
    )
    env.from_collection([1, 2]).key_by(lambda value: value).process(RegistersItselfAgain(sign)).print()
    job = env.execute_async()
    until(sign.exists)
    with caplog.at_level(logging.WARNING, "emberflow"):
        job.cancel(timeout_ms=2_000)
    assert job.get_job_status().result() is JobStatus.CANCELED
    job.get_job_execution_result().result()
    assert "abandoned" not in caplog.text
