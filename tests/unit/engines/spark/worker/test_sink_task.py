"""Sinks on Spark without Spark: the first error is the one reported, and the job's directory records output before a sink
has it."""

from __future__ import annotations

import errno
import logging
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="B1 on Spark: what runs in Spark's workers")

from emberflow.connectors.sink import Sink, SinkWriter, WriterContext
from emberflow.durable.decisions import DECISIONS_FOLDER, FileDecisions
from emberflow.durable.location import CALLS_FOLDER, CallStoreLocation
from emberflow.engines.job.ownership import Ownership, lock_directory
from emberflow.engines.spark.driver.batch_commit import commit_epoch
from emberflow.engines.spark.driver.sink_marks import check_sinks, read_marks
from emberflow.engines.spark.engine import SparkEngine
from emberflow.engines.spark.wire.arrow_rows import record_batches
from emberflow.engines.spark.wire.job_spec import JobSpec, dump_spec
from emberflow.engines.spark.wire.packet_rows import PacketRow, sink_dest
from emberflow.engines.spark.worker.sink_writer import write_task
from emberflow.errors import CheckpointInUse, CorruptData, EmberflowError, SinkFailed, SinkMismatch
from emberflow.events.batch import Batch
from emberflow.events.fence import NO_FENCE, Fence
from emberflow.events.packets import Packet, encode_packet
from emberflow.plan.job_contract import JobConfig
from emberflow.streams import StreamExecutionEnvironment
from emberflow.testing import literal_files, read_committed
from tests.support.spark_specs import spec_of


class FullDisk(Sink):
    """Rejects writes, and even removing files."""

    def __init__(self, fails_in: str) -> None:
        self.fails_in = fails_in

    def writer(self, context: WriterContext) -> SinkWriter:
        return _FullWriter(self.fails_in)


class _FullWriter:
    def __init__(self, fails_in: str) -> None:
        self._fails_in = fails_in

    def write(self, batch: Batch) -> None:
        if self._fails_in == "write":
            raise OSError(errno.ENOSPC, "no space left on device", "/data/out/part-0")

    def prepare(self) -> Any:
        raise OSError(errno.ENOSPC, "no space left on device", "/data/out/part-0")

    def abort(self) -> None:
        raise OSError(errno.EIO, "the file cannot be closed")


def sink_spec(sink: Sink, fence: Fence = NO_FENCE) -> JobSpec:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    env.from_collection([1]).sink_to(sink).name("out").uid("out")
    return spec_of(
        env.job_graph(),
        fence=fence,
    )


def written(spec: JobSpec, value: int) -> bytes:
    """The commit message of a task that wrote one record."""
    packet = Packet(edge=0, channel=0, sequence=0, batch=Batch([value]), watermark=None, at_end=False)
    return write_task(
        dump_spec(spec), record_batches([PacketRow(0, sink_dest(0), 1, 0, encode_packet(packet))])
    )


@pytest.mark.parametrize("fails_in", ["write", "prepare"])
def test_an_abort_that_fails_does_not_hide_the_cause(fails_in: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(SinkFailed) as caught:
        written(sink_spec(FullDisk(fails_in)), 1)
    assert caught.value.message == f"sink 'out' could not {fails_in}"
    assert "no space left on device: '/data/out/part-0'" in caught.value.cause
    assert "the file cannot be closed" in caplog.text


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Ownership]:
    held = lock_directory(tmp_path / "job")
    yield held
    held.release()


def batch_of_spark(owner: Ownership, number: int, log: str) -> None:
    """What Spark writes about a batch that was started or committed."""
    path = Path(owner.fence.directory) / "spark" / log / str(number)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def test_a_sink_that_was_emptied_between_two_starts_is_detected(tmp_path: Path, owner: Ownership) -> None:
    spec = sink_spec(literal_files(tmp_path / "out"), owner.next_epoch())
    config = JobConfig(parallelism=1, max_parallelism=8)
    check_sinks(spec.graph, "job", spec.fence, config, batch=False)
    batch_of_spark(owner, 0, "offsets")
    commit_epoch(dump_spec(spec), [written(spec, 7)], 0)
    batch_of_spark(owner, 0, "commits")
    assert read_committed(tmp_path / "out") == [7]
    check_sinks(spec.graph, "job", spec.fence, config, batch=False)

    shutil.rmtree(tmp_path / "out")
    with pytest.raises(SinkMismatch, match="its last output is that of epoch 0"):
        check_sinks(spec.graph, "job", owner.next_epoch(), config, batch=False)


@pytest.mark.parametrize("first_epoch", [0, 7], ids=["from the beginning", "from a savepoint"])
def test_deleted_decisions_are_detected_while_their_batch_may_be_repeated(
    tmp_path: Path, owner: Ownership, first_epoch: int
) -> None:
    """A sink may have committed the batch: if it were decided again, its output would differ and be dropped."""
    calls = tmp_path / "job" / CALLS_FOLDER
    spec = replace(
        sink_spec(literal_files(tmp_path / "out"), owner.next_epoch()),
        calls=CallStoreLocation(job_id="j", directory=str(calls)),
        first_epoch=first_epoch,
    )
    config = JobConfig(parallelism=1, max_parallelism=8)
    check_sinks(spec.graph, "job", spec.fence, config, batch=False)
    batch_of_spark(owner, 0, "offsets")
    for name in (f"query.{first_epoch}.1.0", f"query.{first_epoch}.1.1", f"query.{first_epoch + 1}.1.0"):
        assert FileDecisions(calls).decide(name, b"decided")
    commit_epoch(dump_spec(spec), [written(spec, 7)], 0)
    check_sinks(spec.graph, "job", spec.fence, config, batch=False)

    path = calls / DECISIONS_FOLDER / f"query.{first_epoch}.1.1"
    path.unlink()
    with pytest.raises(CorruptData, match="decisions of a micro-batch") as caught:
        check_sinks(spec.graph, "job", spec.fence, config, batch=False)
    assert str(path) in caught.value.message
    # A batch that Spark has committed is not repeated.
    batch_of_spark(owner, 0, "commits")
    check_sinks(spec.graph, "job", spec.fence, config, batch=False)


def test_output_is_recorded_before_a_sink_commits_it(tmp_path: Path, owner: Ownership) -> None:
    """If it were recorded afterwards, a kill in between would leave output whose loss is not detected."""
    sink = literal_files(tmp_path / "out")
    spec = sink_spec(sink, owner.next_epoch())
    check_sinks(spec.graph, "job", spec.fence, JobConfig(parallelism=1, max_parallelism=8), batch=False)
    message = written(spec, 1)
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(EmberflowError):
        commit_epoch(dump_spec(spec), [message], 5)
    assert read_marks(tmp_path / "job")["out"][1] == 5


def test_a_second_driver_gets_the_owner_of_the_directory(tmp_path: Path, owner: Ownership) -> None:
    spec = sink_spec(literal_files(tmp_path / "out"))
    config = JobConfig(parallelism=1, max_parallelism=8, checkpoint_dir=str(tmp_path / "job"))
    with pytest.raises(
        CheckpointInUse, match=f"{tmp_path / 'job'} is in use by another job of process {os.getpid()}"
    ):
        SparkEngine(spark=object()).submit(spec.graph, config)
