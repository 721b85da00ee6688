"""The task of a sink on Spark: what went wrong first is what is said."""

from __future__ import annotations

import errno
import logging
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="what runs in Spark's workers")

from emberflow.connectors.sink import Sink, SinkWriter, WriterContext
from emberflow.engines.spark.arrow_rows import record_batches
from emberflow.engines.spark.job_spec import JobSpec, dump_spec
from emberflow.engines.spark.rows import sink_dest
from emberflow.engines.spark.sink_writer import write_task
from emberflow.errors import SinkFailed
from emberflow.events.batch import Batch
from emberflow.events.packets import Packet, encode_packet
from emberflow.streams import StreamExecutionEnvironment


class FullDisk(Sink):
    """Takes nothing, and does not even let go."""

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


@pytest.mark.parametrize("fails_in", ["write", "prepare"])
def test_an_abort_that_fails_does_not_hide_the_cause(fails_in: str, caplog: pytest.LogCaptureFixture) -> None:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    env.from_collection([1]).sink_to(FullDisk(fails_in)).name("out")
    spec = JobSpec(
        graph=env.job_graph(),
        job_id="job",
        parallelism=1,
        max_parallelism=8,
        batch=False,
        channels={0: 1},
        at_end={0: False},
        max_records=10,
        client_dir="",
    )
    packet = Packet(edge=0, channel=0, sequence=0, batch=Batch([1]), watermark=None, at_end=False)
    rows = [(0, sink_dest(0), 1, 0, encode_packet(packet))]
    with caplog.at_level(logging.WARNING), pytest.raises(SinkFailed) as caught:
        write_task(dump_spec(spec), record_batches(rows))
    assert caught.value.message == f"sink 'out' could not {fails_in}"
    assert "no space left on device: '/data/out/part-0'" in caught.value.cause
    assert "the file cannot be closed" in caplog.text
