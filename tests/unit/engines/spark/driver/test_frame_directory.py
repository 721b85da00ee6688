"""The checkpoint directory of a DataFrame whose query a user starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from emberflow import StreamExecutionEnvironment
from emberflow.engines.job.manifest import last_start, open_directory
from emberflow.engines.spark.engine import SparkEngine
from emberflow.errors import ProgramChanged
from emberflow.plan.graphs.job_graph import JobGraph
from emberflow.plan.job_contract import JobConfig, RuntimeExecutionMode


def program(uid: str) -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment(engine="spark")
    env.from_collection([1, 2, 3]).uid("numbers").key_by(lambda value: value).sum().uid(uid).print()
    return env.job_graph()


def test_an_incompatible_program_does_not_change_the_directory(tmp_path: Path) -> None:
    """Not even a start is counted: the previous version could not read the number."""
    config = JobConfig(
        checkpoint_dir=str(tmp_path),
        parallelism=1,
        max_parallelism=8,
        mode=RuntimeExecutionMode.STREAMING,
    )
    open_directory(program("sums"), config, "spark")
    before = (tmp_path / "starts").read_bytes()

    with pytest.raises(ProgramChanged):
        SparkEngine()._frame_spec(program("totals"), config)

    assert (tmp_path / "starts").read_bytes() == before
    assert last_start(tmp_path) == 0
