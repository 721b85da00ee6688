"""While a source waits for others of its watermark group, the job goes on: checkpoints, savepoints, stop, restart (B13)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from emberflow.streams import JobClient, RuntimeExecutionMode, StreamExecutionEnvironment, WatermarkStrategy
from emberflow.testing import Latch, TestSource, literal_files, read_committed
from tests.support.waiting import until

RECORDS = 400


class Job:
    """A source that is ahead, and one that says nothing until `goes_on` is opened: its watermark stays at the beginning."""

    def __init__(self, folder: Path) -> None:
        self.goes_on = Latch()
        self.output = folder / "output"
        self._folder = folder
        self._fast = TestSource([("fast", number * 1_000) for number in range(RECORDS)], batch=1)
        self._silent = TestSource([self.goes_on, ("silent", RECORDS * 1_000)])

    def start(self) -> JobClient:
        env = StreamExecutionEnvironment.get_execution_environment(
            engine="local", checkpoint_dir=self._folder / "checkpoints"
        )
        env.set_runtime_mode(RuntimeExecutionMode.STREAMING).enable_checkpointing(20)
        strategy = (
            WatermarkStrategy.for_monotonous_timestamps()
            .with_timestamp_assigner(lambda value, _: value[1])
            .with_watermark_alignment("together", timedelta(seconds=10))
        )
        silent = env.from_source(self._silent, strategy, "silent").uid("silent")
        fast = env.from_source(self._fast, strategy, "fast").uid("fast")
        stream: Any = silent.union(fast)
        stream.sink_to(literal_files(self.output)).uid("files")
        return env.execute_async("aligned")

    def committed(self) -> list[Any]:
        return read_committed(self.output)


def test_checkpoints_savepoints_and_stops_go_on_while_a_source_waits(tmp_path: Path) -> None:
    job = Job(tmp_path)
    client = job.start()
    until(job.committed)  # By a checkpoint that was taken while the source waits.
    savepoint = Path(client.trigger_savepoint(tmp_path / "savepoint").result())
    assert savepoint.exists()
    client.stop_with_savepoint(False, str(tmp_path / "last")).result()
    assert job.committed() == [("fast", 0)], (
        "nothing but what was read before the first watermark of the group"
    )


def test_a_job_that_is_cancelled_while_a_source_waits_goes_on_later(tmp_path: Path) -> None:
    job = Job(tmp_path)
    client = job.start()
    until(job.committed)
    client.cancel().result()
    client = job.start()
    job.goes_on.open()
    client.get_job_execution_result().result()
    assert sorted(job.committed()) == [
        *[("fast", number * 1_000) for number in range(RECORDS)],
        ("silent", RECORDS * 1_000),
    ]
