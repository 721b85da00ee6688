"""What a repeated micro-batch follows: records of decisions are kept as long as they may be needed, belong to one input,
and are written once; they are noted in the call log again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="B1 on Spark: what runs in Spark's workers")

from emberflow.durable.decisions import DECISIONS_FOLDER, FileDecisions
from emberflow.durable.log import StoredCallLog
from emberflow.engines.spark.wire.packet_rows import PacketRow
from emberflow.engines.spark.worker import worker_process
from emberflow.engines.spark.worker.batch_record import TaskRecord, check_query
from emberflow.errors import CheckpointUnusable, EngineFailed
from tests.support import waiting_agents as model
from tests.support.micro_batches import Death, MicroBatches


def recorded(store: FileDecisions, epoch: int) -> TaskRecord:
    made = TaskRecord(store, "query", epoch, "1.0")
    made.group(3).received = 2
    return made


def test_the_first_attempt_decides(tmp_path: Path) -> None:
    store = FileDecisions(tmp_path)
    first, second = recorded(store, 0), recorded(store, 0)
    first.rows = [PacketRow(1, -3, 1, 0, b"first")]
    first.store([])
    with pytest.raises(
        EngineFailed, match="another attempt at a task of micro-batch 0 has ended in the meantime"
    ):
        second.store([])
    later = TaskRecord(store, "query", 0, "1.0")
    assert later.replays
    assert later.rows == [(1, -3, 1, 0, b"first")]


def test_records_of_committed_batches_are_removed(tmp_path: Path) -> None:
    store = FileDecisions(tmp_path)
    for epoch in range(5):
        recorded(store, epoch).store([])
    assert [path.name for path in (tmp_path / DECISIONS_FOLDER).iterdir()] == ["query.4.1.0"]


@pytest.mark.parametrize("received", [{}, {3: 1}, {3: 2, 4: 1}, {4: 2}])
def test_different_input_is_rejected(tmp_path: Path, received: dict[int, int]) -> None:
    recorded(FileDecisions(tmp_path), 7).store([])
    again = TaskRecord(FileDecisions(tmp_path), "query", 7, "1.0")
    again.first_touch(3)
    with pytest.raises(CheckpointUnusable, match="micro-batch 7 is repeated with different input"):
        again.check_received(received)
    again.check_received({3: 2})


def test_a_directory_of_decisions_belongs_to_one_query(tmp_path: Path) -> None:
    """Two queries on one DataFrame would take each other's calls for their own."""
    check_query(FileDecisions(tmp_path), "first")
    check_query(FileDecisions(tmp_path), "first")
    with pytest.raises(CheckpointUnusable, match="belongs to the query first, not to second"):
        check_query(FileDecisions(tmp_path), "second")


PATIENT_MS = 600_000
"""A deadline by which every call that is answered has ended."""


@pytest.fixture
def deadline_ms() -> int:
    return PATIENT_MS


@pytest.fixture
def query(deadline_ms: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MicroBatches]:
    model.SERVICE.__init__()
    made = MicroBatches(model.graph(model.Counts()), tmp_path, monkeypatch, deadline_ms)
    yield made
    made.end()


def test_a_batch_that_is_repeated_with_different_input_fails(query: MicroBatches) -> None:
    """Output of its earlier input may be committed: neither the old decisions nor new ones would be right."""
    model.SERVICE.everything = True
    now_ms = int(time.time() * 1000)
    with pytest.raises(Exception, match=r"^$"):  # It died.
        query._attempt([("a", 0)], now_ms, Death.BEFORE_SPARK_COMMITS, False)
    query._kill()
    with pytest.raises(CheckpointUnusable, match="2 records in"):
        query._attempt([("a", 0), ("a", 1)], now_ms, Death.NEVER, False)
    query._kill()
    query._attempt([("a", 0)], now_ms, Death.NEVER, False)
    assert query.committed == [("a", 0, 1)]


def test_a_record_is_stored_after_the_answers_it_depends_on(
    query: MicroBatches, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attempt that follows it reads them, possibly in another process."""
    steps: list[str] = []

    def noted(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def step(*args: Any) -> None:
            steps.append(name)
            real(*args)

        monkeypatch.setattr(owner, name, step)

    noted(StoredCallLog, "publish")
    noted(TaskRecord, "store")
    model.SERVICE.everything = True
    query.run([("a", 0)], [], lambda: None)
    assert steps == ["publish", "store"]


def known_calls() -> list[Any]:
    (log,) = worker_process._logs.values()
    return list(log._index._calls_of)


def test_calls_of_a_repeated_batch_are_dropped_when_they_are_done(query: MicroBatches) -> None:
    """The notes of the attempt that decided no longer count: the repeated attempt notes them again."""
    model.SERVICE.everything = True
    query.run([("a", 0)], [Death.BEFORE_SPARK_COMMITS], lambda: None)
    assert len(known_calls()) == 1
    query.run([], [], lambda: None)
    assert known_calls() == []


@pytest.mark.parametrize("deadline_ms", [40])
def test_runs_parked_by_a_repeated_batch_are_known(query: MicroBatches) -> None:
    """So that sources wait for it, and its recorded calls are kept."""
    query.run([("a", 0), ("a", 1)], [Death.BEFORE_SPARK_COMMITS], lambda: None)
    query.run([], [], lambda: None)
    (log,) = worker_process._logs.values()
    assert len(log.parked()) == 1
    assert list(log.held_inputs().values()) == [2]
    model.SERVICE.everything = True
    give_up_s = time.monotonic() + 300
    while len(query.committed) < 2 and time.monotonic() < give_up_s:
        query.run([], [], lambda: None)
    assert query.committed == [("a", 0, 1), ("a", 1, 2)]
    query.run([], [], lambda: None)
    assert (log.parked(), known_calls()) == ([], [])
