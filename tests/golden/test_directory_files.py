"""Small files of a checkpoint directory beside its state, and the decisions of a micro-batch. See test_golden.py for the rules."""

from __future__ import annotations

import shutil
from pathlib import Path

from emberflow.durable.decisions import FileDecisions
from emberflow.engines.job.savepoint_calls import note_place, noted_place
from emberflow.engines.local.checkpointing.latest_checkpoint import read_latest, write_latest
from emberflow.engines.spark.driver.sink_marks import _write, read_marks
from emberflow.engines.spark.wire.packet_rows import PacketRow
from emberflow.engines.spark.worker.batch_record import HOT, StateWrite, TaskRecord
from emberflow.plan.job_contract import JobConfig
from emberflow.savepoints.wiring import Wiring, read_wiring, write_wiring

FILES = Path(__file__).parent / "v2" / "directory"
FIRST = Path(__file__).parent / "v1" / "directory"
UPDATE = False

WIRING = Wiring(
    job_name="golden",
    stages={"numbers": 0, "sums": 1},
    kinds={"sums": "aggregate"},
    sources=["numbers"],
    sinks=["files"],
    exchanges={"numbers > numbers > sums[0]": 0},
    tasks={"sums": None},
    first_epoch=3,
)
MARKS = {"files": ("0123456789abcdef", 7, 5)}
ADDRESS = "postgresql://db.test/calls"


def write(home: Path) -> None:
    home.mkdir()
    write_wiring(home, WIRING)
    write_latest(home, (2, 41))
    _write(home, dict(MARKS), (7, ["query.7.1.0"]))
    options = {"call_store": ADDRESS}
    note_place(JobConfig(parallelism=1, max_parallelism=64, checkpoint_dir=str(home), options=options))
    record = TaskRecord(FileDecisions(home), "query", 7, "1.0")
    record.group(3).received = 2
    record.group(3).writes.append(StateWrite(1, HOT, b"state"))
    record.group(3).timers.append(1_000)
    record.rows = [PacketRow(1, -3, 1, 0, b"packet")]
    record.ended = {1}
    record.store([])


def stored() -> Path:
    if UPDATE and not FILES.exists():
        write(FILES)
    return FILES


def test_the_wiring_of_a_job() -> None:
    assert read_wiring(stored()) == WIRING
    first = read_wiring(FIRST)
    assert (first.format, first.tasks, first.stages) == (1, {}, WIRING.stages)


def test_the_newest_checkpoint_and_the_marks_of_sinks() -> None:
    assert read_latest(stored()) == (2, 41)
    assert read_marks(stored()) == MARKS


def test_where_the_calls_are() -> None:
    assert noted_place(stored()) == ADDRESS


def test_the_decisions_of_a_batch(tmp_path: Path) -> None:
    # Opening one removes those of the batch before.
    shutil.copytree(stored(), tmp_path, dirs_exist_ok=True)
    record = TaskRecord(FileDecisions(tmp_path), "query", 7, "1.0")
    assert record.replays
    group = record.groups[3]
    assert (group.received, group.writes, group.timers) == (2, [StateWrite(1, HOT, b"state")], [1_000])
    assert (record.rows, record.ended) == ([PacketRow(1, -3, 1, 0, b"packet")], {1})


def test_the_same_files_are_written(tmp_path: Path) -> None:
    write(tmp_path / "now")
    now = {path.relative_to(tmp_path / "now"): path.read_bytes() for path in _files(tmp_path / "now")}
    assert now == {path.relative_to(stored()): path.read_bytes() for path in _files(stored())}


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
