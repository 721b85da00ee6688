"""A later start of a job takes over a file sink while an earlier one commits, at every single step: exactly one wins."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from emberflow.connectors.files.commit_ledger import CommitLedger
from emberflow.errors import CorruptData, OwnershipLost, SinkMismatch
from emberflow.events.stored_files import write_json
from tests.support.staged_files import JOB, SINK, lines, sink_in, staged, visible

STEPS = ("replace", "unlink", "mkdir", "fsync", "listdir")


class Interruption:
    """Runs something before the chosen step that accesses the disk."""

    def __init__(self, at: int, run: Callable[[], None]) -> None:
        self._at = at
        self._run = run
        self._inside = False
        self.moments = 0

    def wrap(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **named: Any) -> Any:
            if not self._inside:
                if self.moments == self._at:
                    self._inside = True
                    self._run()
                    self._inside = False
                self.moments += 1
            return real(*args, **named)

        return step

    def __enter__(self) -> Interruption:
        real = {name: getattr(os, name) for name in STEPS} | {"fsync": lambda _: None}
        self._patch = mock.patch.multiple(os, **{name: self.wrap(real[name]) for name in STEPS})  # pyright: ignore[reportArgumentType, reportCallIssue]
        self._patch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.stop()


def run(folder: Path, at: int) -> int:
    """An earlier start commits epoch 1; in the middle a later one takes over and commits its own version of epoch 1.
    Returns the number of steps."""
    sink = sink_in(folder)
    sink.take_over(JOB, SINK, 1)
    sink.commit_fenced(JOB, SINK, 0, staged(sink, 0, 1, "old"), 1)
    prepared = staged(sink, 1, 1, "old")
    outcome: list[str] = []

    def take_over() -> None:
        found = sink.take_over(JOB, SINK, 2)
        outcome.append("old" if found.epoch == 1 else "new")
        sink.commit_fenced(JOB, SINK, 1, staged(sink, 1, 2, "new"), 2)
        # Once it is committed it never changes.
        assert visible(folder) == sorted(lines(0, "old") + lines(1, outcome[0]))

    with Interruption(at, take_over) as interruption:
        try:
            sink.commit_fenced(JOB, SINK, 1, prepared, 1)
        except OwnershipLost:
            assert outcome
    if not outcome:
        take_over()
    assert visible(folder) == sorted(lines(0, "old") + lines(1, outcome[0]))
    with pytest.raises(OwnershipLost, match="belongs to a later start of the job"):
        sink.commit_fenced(JOB, SINK, 2, staged(sink, 2, 1, "old"), 1)
    sink.commit_fenced(JOB, SINK, 2, staged(sink, 2, 2, "new"), 2)
    sink.take_over(JOB, SINK, 3)
    sink.commit_fenced(JOB, SINK, 3, staged(sink, 3, 3, "new"), 3)
    expected = sorted(lines(0, "old") + lines(1, outcome[0]) + lines(2, "new") + lines(3, "new"))
    assert visible(folder) == expected
    staging = CommitLedger(str(folder), JOB, SINK).staging
    assert staging.name == "inprogress-000003"
    assert [name for name in os.listdir(staging.parent) if name.endswith("-000001.json")] == []
    return interruption.moments


def test_taken_over_at_every_single_step(tmp_path: Path) -> None:
    steps = run(tmp_path / "whole", -1)
    assert steps > 10
    for step in range(steps):
        run(tmp_path / str(step), step)


def test_a_decision_that_came_too_late_is_never_completed(tmp_path: Path) -> None:
    sink = sink_in(tmp_path)
    sink.take_over(JOB, SINK, 1)
    prepared = staged(sink, 0, 1, "old")
    sink.take_over(JOB, SINK, 2)
    ledger = CommitLedger(str(tmp_path), JOB, SINK, 1)
    # Suspended between listing the staged files and deciding.
    renames = [pair for part in prepared for pair in part]
    body = {"version": 1, "epoch": 0, "renames": renames}
    write_json(ledger.staging.parent / "00000000-000001.json", body)
    sink.take_over(JOB, SINK, 3)
    sink.commit_fenced(JOB, SINK, 0, staged(sink, 0, 3, "new"), 3)
    assert visible(tmp_path) == lines(0, "new")


def test_what_a_checkpoint_has_prepared_is_committed_by_the_later_start(tmp_path: Path) -> None:
    sink = sink_in(tmp_path)
    sink.take_over(JOB, SINK, 1)
    prepared = staged(sink, 0, 1, "old")
    assert sink.take_over(JOB, SINK, 2).epoch == -1
    sink.commit_fenced(JOB, SINK, 0, prepared, 2)
    assert visible(tmp_path) == lines(0, "old")


def test_a_ledger_of_the_previous_version_is_continued(tmp_path: Path) -> None:
    sink = sink_in(tmp_path)
    sink.commit(JOB, SINK, 0, staged(sink, 0, 0, "old"))
    prepared = staged(sink, 1, 0, "old")
    assert sink.take_over(JOB, SINK, 7).epoch == 0
    sink.commit_fenced(JOB, SINK, 1, prepared, 7)
    assert visible(tmp_path) == lines(0, "old") + lines(1, "old")


def test_each_start_has_its_own_fencing_epoch(tmp_path: Path) -> None:
    """A copy of the checkpoint directory counts its starts from the same number."""
    first, second = sink_in(tmp_path), sink_in(tmp_path)
    assert first.newest_start(JOB, SINK) == 0
    first.take_over(JOB, SINK, 2)
    assert second.newest_start(JOB, SINK) == 2
    prepared = staged(first, 0, 2, "first")
    with pytest.raises(SinkMismatch, match="another start of the job has taken over the sink's folder"):
        second.take_over(JOB, SINK, 2)
    first.take_over(JOB, SINK, 2)
    first.commit_fenced(JOB, SINK, 0, prepared, 2)
    assert visible(tmp_path) == lines(0, "first")


def test_a_ledger_without_its_id_is_rejected_and_left_unchanged(tmp_path: Path) -> None:
    sink = sink_in(tmp_path)
    sink.take_over(JOB, SINK, 1)
    sink.commit_fenced(JOB, SINK, 0, staged(sink, 0, 1, "old"), 1)
    (path,) = tmp_path.rglob("ledger.json")
    kept = path.read_bytes()
    path.unlink()
    before = sorted(tmp_path.rglob("*"))

    with pytest.raises(CorruptData, match=r"ledger\.json"):
        sink.take_over(JOB, SINK, 2)

    assert sorted(tmp_path.rglob("*")) == before
    path.write_bytes(kept)
    assert sink.take_over(JOB, SINK, 2).epoch == 0
