"""A job that cannot be continued leaves only results in the folder of a file sink."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from emberflow.streams import (
    BucketAssigner,
    Encoder,
    FileSink,
    JobClient,
    RestartStrategies,
    StreamExecutionEnvironment,
)
from emberflow.testing import TestSource

HIDDEN = [".emberflow"]


def program(
    out: Path, checkpoint_dir: Path | None = None, *, bounded: bool = True
) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local", checkpoint_dir=checkpoint_dir)
    sink = FileSink.for_row_format(out, Encoder.simple_string_encoder())
    sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    env.add_source(TestSource(["a"], bounded=bounded)).sink_to(sink.build())
    return env


def found(out: Path) -> tuple[list[str], list[str]]:
    """What is hidden, and the results."""
    names = sorted(os.listdir(out))
    return [name for name in names if name.startswith(".")], [
        (out / name).read_text() for name in names if not name.startswith(".")
    ]


@pytest.mark.parametrize("restarts", [False, True])
def test_without_a_checkpoint_directory_only_results_are_left(tmp_path: Path, restarts: bool) -> None:
    env = program(tmp_path)
    if restarts:
        env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 0))
    env.execute()
    assert found(tmp_path) == ([], ["a\n"])


def test_a_job_that_may_be_started_again_keeps_its_ledger(tmp_path: Path) -> None:
    program(tmp_path / "out", tmp_path / "checkpoints").execute()
    assert found(tmp_path / "out") == (HIDDEN, ["a\n"])


@pytest.mark.parametrize(
    ("end", "hidden"),
    [
        (lambda job, folder: job.cancel().result(), []),
        (lambda job, folder: job.stop_with_savepoint(False, str(folder / "savepoint")).result(), HIDDEN),
    ],
    ids=["canceled", "savepoint"],
)
def test_a_savepoint_may_need_the_ledger(
    tmp_path: Path, end: Callable[[JobClient, Path], object], hidden: list[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    job = program(out, bounded=False).enable_checkpointing(10).execute_async()
    ends = time.monotonic() + 60
    while not found(out)[1]:
        assert time.monotonic() < ends
        time.sleep(0.01)
    end(job, tmp_path)
    assert found(out) == (hidden, ["a\n"])
