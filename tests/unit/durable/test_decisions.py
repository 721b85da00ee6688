"""Decisions of micro-batches in files: any damage is detected."""

from __future__ import annotations

from pathlib import Path

import pytest

from emberflow.durable.decisions import DECISIONS_FOLDER, FileDecisions
from emberflow.errors import CallLogFailed, CorruptData


@pytest.mark.parametrize("damage", ["cut", "emptied", "last byte", "first byte", "longer"])
def test_a_corrupted_decision_is_rejected_and_kept(tmp_path: Path, damage: str) -> None:
    store = FileDecisions(tmp_path)
    store.decide("query.0.1.0", b"decided")
    path = tmp_path / DECISIONS_FOLDER / "query.0.1.0"
    whole = path.read_bytes()
    damaged = {
        "cut": whole[:-1],
        "emptied": b"",
        "last byte": whole[:-1] + b"?",
        "first byte": b"?" + whole[1:],
        "longer": whole + b"more",
    }[damage]
    path.write_bytes(damaged)

    with pytest.raises(CorruptData, match=r"query\.0\.1\.0 are corrupted") as caught:
        store.find("query.0.1.0")

    assert "restore the file" in str(caught.value)
    assert path.read_bytes() == damaged


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / DECISIONS_FOLDER).write_text("in the way")

    with pytest.raises(CallLogFailed, match=DECISIONS_FOLDER):
        FileDecisions(tmp_path).decide("query.0.1.0", b"decided")


def test_decisions_are_for_this_user_only(tmp_path: Path) -> None:
    FileDecisions(tmp_path).decide("query.0.1.0", b"decided")

    folder = tmp_path / DECISIONS_FOLDER
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "query.0.1.0").stat().st_mode & 0o777 == 0o600
