"""`JobClient` with PyFlink's futures."""

from __future__ import annotations

from pathlib import Path

import pytest

from emberflow.errors import InvalidArgument, NotSupported, StepFailed
from emberflow.streams import (
    DiscardingSink,
    JobClient,
    JobStatus,
    StreamExecutionEnvironment,
)
from emberflow.streams.completable_future import completed
from emberflow.testing import Pause, TestSource


def endless(env: StreamExecutionEnvironment) -> JobClient:
    env.add_source(TestSource([1, 2, Pause(600_000), 3])).sink_to(DiscardingSink())
    return env.execute_async("endless")


def local() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(engine="local")


def test_the_result_of_a_job_is_a_future() -> None:
    env = local()
    env.from_collection([1, 2, 3]).sink_to(DiscardingSink())
    future = env.execute_async("numbers").get_job_execution_result()
    result = future.result()
    assert future.done()
    assert not future.cancelled()
    assert future.exception() is None
    assert not future.cancel()
    assert result.metrics.records_in == 3
    assert str(result.get_job_id()) == result.get_job_id()
    assert result.get_all_accumulator_results() == {}
    assert result.get_accumulator_result("n") is None


def test_what_made_a_job_fail_is_raised_by_the_result() -> None:
    env = local()
    env.from_collection([1]).map(lambda number: number / 0).sink_to(DiscardingSink())
    future = env.execute_async("failing").get_job_execution_result()
    assert isinstance(future.exception(), StepFailed)
    with pytest.raises(StepFailed):
        future.result()


def test_a_future_can_cancel_its_job() -> None:
    client = endless(local())
    future = client.get_job_execution_result()
    assert not future.done()
    assert future.cancel()
    assert future.cancelled()
    assert client.get_job_status().result() is JobStatus.CANCELED
    assert client.get_job_status().result().is_globally_terminal_state()
    assert client.cancel().result() is None


def test_a_completed_future() -> None:
    future = completed(7)
    assert (future.done(), future.result(), future.cancel()) == (True, 7, False)


def test_savepoints_get_a_folder_of_their_own_below_the_directory(tmp_path: Path) -> None:
    env = StreamExecutionEnvironment.get_execution_environment(
        engine="local", checkpoint_dir=tmp_path / "checkpoints"
    )
    env.set_default_savepoint_directory((tmp_path / "default").as_uri())
    client = endless(env)
    first = Path(client.trigger_savepoint().result())
    second = Path(client.trigger_savepoint(tmp_path / "named" / "deep").result())
    last = Path(client.stop_with_savepoint(False, str(tmp_path / "default")).result())
    assert (first.parent, second.parent) == (tmp_path / "default", tmp_path / "named" / "deep")
    assert last.parent == first.parent
    assert last != first
    assert all(any(path.iterdir()) for path in (first, second, last))
    assert client.get_job_status().result().is_final


def test_a_savepoint_needs_a_directory_and_cannot_drain(tmp_path: Path) -> None:
    client = endless(local())
    try:
        with pytest.raises(InvalidArgument, match="no directory for the savepoint"):
            client.trigger_savepoint()
        with pytest.raises(NotSupported, match="event time advanced"):
            client.stop_with_savepoint(True, str(tmp_path))
        with pytest.raises(InvalidArgument, match="must be True or False"):
            client.stop_with_savepoint(str(tmp_path))  # pyright: ignore[reportArgumentType]
    finally:
        client.cancel()
