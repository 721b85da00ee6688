"""Where the sources of a Spark job that starts from a savepoint start, and that they stop when the job is to be stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from emberflow.engines.spark.driver.offsets import OffsetPlanner
from emberflow.engines.spark.wire.job_spec import dump_spec
from emberflow.streams import StreamExecutionEnvironment
from emberflow.testing import TestSource
from tests.support.spark_specs import spec_of


def planner(folder: Path, positions: dict[int, list[list[Any]]], *, bounded: bool = False) -> OffsetPlanner:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    env.from_source(TestSource(list("abcdef"), bounded=bounded)).print()
    spec = spec_of(
        env.job_graph(),
        max_parallelism=64,
        max_records=100,
        start_positions=positions or {0: [[0, False]]},
        from_savepoint=bool(positions),
        hold_file=str(folder / "hold"),
    )
    return OffsetPlanner(dump_spec(spec), 0)


def test_it_starts_at_the_stored_position(tmp_path: Path) -> None:
    begins = planner(tmp_path, {0: [[4, False]]})
    first = begins.initial()
    assert first["channels"] == [[4, False, 0]]
    latest = begins.latest(first)
    assert [item[:2] for item in latest["channels"]] == [[6, False]]
    assert planner(tmp_path, {}).initial()["channels"] == [[0, False, 0]]


def test_the_first_batch_runs_without_input(tmp_path: Path) -> None:
    """State may have something to do: a parked run, a timer."""
    begins = planner(tmp_path, {0: [[6, False]]})
    first = begins.initial()
    latest = begins.latest(first)
    assert latest != first
    assert begins.latest(latest) == latest, "once"
    again = planner(tmp_path, {0: [[6, False]]})
    assert again.latest(latest) == latest, "and not when the query is started again"


def test_ended_channels_stay_ended(tmp_path: Path) -> None:
    begins = planner(tmp_path, {0: [[6, True]]}, bounded=True)
    latest = begins.latest(begins.initial())
    assert [item[:2] for item in latest["channels"]] == [[6, True]]


def test_no_records_are_read_while_the_job_is_held(tmp_path: Path) -> None:
    held = planner(tmp_path, {})
    first = held.initial()
    (tmp_path / "hold").touch()
    assert held.latest(first) == first
    (tmp_path / "hold").unlink()
    assert [item[:2] for item in held.latest(first)["channels"]] == [[6, False]]
