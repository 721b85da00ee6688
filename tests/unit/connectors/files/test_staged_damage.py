"""Files staged by an earlier start are damaged before they become visible: the commit is rejected, and nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emberflow.connectors.files.commit_ledger import CommitLedger
from emberflow.connectors.files.file_sink import FileSink
from emberflow.errors import CorruptData, SinkFailed
from tests.support.staged_files import JOB, SINK, lines, sink_in, staged, visible


def strike(path: Path, damage: str) -> None:
    data = path.read_bytes()
    if damage == "flip":
        path.write_bytes(bytes([data[0] ^ 0x01]) + data[1:])
    else:
        path.write_bytes(data[: len(data) // 2] if damage == "cut" else b"")


def everything(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(folder: Path, path: Path, act: Any) -> None:
    before = {name: data for name, data in everything(folder).items() if name != "ledger.json"}
    with pytest.raises(CorruptData) as caught:
        act()
    assert path.name in caught.value.message
    assert "restore it from a backup" in caught.value.way_out
    assert before.items() <= everything(folder).items(), "nothing is removed or becomes visible"


@pytest.mark.parametrize("damage", ["flip", "cut", "empty"])
def test_parts_in_a_checkpoint(tmp_path: Path, damage: str) -> None:
    sink = sink_in(tmp_path)
    sink.take_over(JOB, SINK, 1)
    sink.commit_fenced(JOB, SINK, 0, staged(sink, 0, 1, "old"), 1)
    prepared = staged(sink, 1, 1, "old")
    sink.take_over(JOB, SINK, 2)
    path = sorted(CommitLedger(str(tmp_path), JOB, SINK).staging.iterdir())[-1]
    whole = path.read_bytes()
    strike(path, damage)

    refused(tmp_path, path, lambda: sink.commit_fenced(JOB, SINK, 1, prepared, 2))
    assert visible(tmp_path) == lines(0, "old")

    path.write_bytes(whole)
    sink.commit_fenced(JOB, SINK, 1, prepared, 2)
    assert visible(tmp_path) == sorted(lines(0, "old") + lines(1, "old"))


def test_a_part_in_a_checkpoint_is_missing(tmp_path: Path) -> None:
    sink = sink_in(tmp_path)
    sink.take_over(JOB, SINK, 1)
    prepared = staged(sink, 0, 1, "old")
    sink.take_over(JOB, SINK, 2)
    path = sorted(CommitLedger(str(tmp_path), JOB, SINK).staging.iterdir())[-1]
    path.unlink()
    with pytest.raises(SinkFailed, match=path.name):
        sink.commit_fenced(JOB, SINK, 0, prepared, 2)
    assert visible(tmp_path) == []


@pytest.mark.parametrize("damage", ["flip", "cut", "empty"])
def test_parts_of_a_savepoint(tmp_path: Path, damage: str) -> None:
    """Committed without a start, and so not by the process that has just written them."""
    sink = sink_in(tmp_path)
    sink.take_over(JOB, SINK, 1)
    prepared = staged(sink, 0, 1, "old")
    path = sorted(CommitLedger(str(tmp_path), JOB, SINK).staging.iterdir())[-1]
    strike(path, damage)
    refused(tmp_path, path, lambda: sink.commit(JOB, SINK, 0, prepared))


@pytest.mark.parametrize("damage", ["flip", "cut", "empty"])
def test_parts_of_a_decision(tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = sink_in(tmp_path)
    sink.take_over(JOB, SINK, 1)
    with monkeypatch.context() as patch:
        patch.setattr(CommitLedger, "_finish", _crash)
        with pytest.raises(KeyboardInterrupt):
            sink.commit_fenced(JOB, SINK, 0, staged(sink, 0, 1, "old"), 1)
    path = sorted(path for path in tmp_path.rglob("inprogress*/*") if path.suffix != ".decided")[-1]
    whole = path.read_bytes()
    strike(path, damage)

    refused(tmp_path, path, lambda: sink.take_over(JOB, SINK, 2))
    moved = next(tmp_path.rglob(f"inprogress*/{path.name}"))
    moved.write_bytes(whole)
    sink.take_over(JOB, SINK, 3)
    assert visible(tmp_path) == lines(0, "old")


@pytest.mark.parametrize("damage", ["cut", "empty"])
def test_a_part_of_the_same_start_that_has_become_shorter(tmp_path: Path, damage: str) -> None:
    sink = sink_in(tmp_path)
    sink.take_over(JOB, SINK, 1)
    prepared = staged(sink, 0, 1, "new")
    path = sorted(CommitLedger(str(tmp_path), JOB, SINK).staging.iterdir())[-1]
    strike(path, damage)
    refused(tmp_path, path, lambda: sink.commit_fenced(JOB, SINK, 0, prepared, 1))


def test_what_was_just_written_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: Path) -> int:
        raise AssertionError(path)

    monkeypatch.setattr("emberflow.connectors.files.staged_files.checksum_of_file", read)
    sink: FileSink = sink_in(tmp_path)
    sink.take_over(JOB, SINK, 1)
    sink.commit_fenced(JOB, SINK, 0, staged(sink, 0, 1, "new"), 1)
    assert visible(tmp_path) == lines(0, "new")


def _crash(*_: Any) -> None:
    raise KeyboardInterrupt
