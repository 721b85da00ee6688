"""A crash before or after any step that accesses the disk: the files end up as if nothing had happened.

Two engines are simulated: one that repeats an epoch with new attempts (Spark's micro-batches), and one that
stores what was prepared and commits the same again (the local engine's checkpoints).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.connectors.files.commit_ledger import KEPT, CommitLedger
from emberflow.connectors.files.file_sink import FileSink
from emberflow.connectors.files.file_sink_options import Encoder, RollingPolicy
from emberflow.connectors.sink import WriterContext
from emberflow.events.batch import Batch

JOB, SINK = "job", "sink"
STEPS = ("replace", "unlink", "mkdir", "fsync")
EPOCHS = 5
SUBTASKS = 2


class Crash(BaseException):
    """Not an Exception: it must not be caught, like a power failure."""


class Disk:
    """Counts the steps that access the disk and crashes before and after the chosen ones."""

    def __init__(self, crashes: list[int]) -> None:
        self._left = sorted(crashes, reverse=True)
        self.moments = 0

    def _moment(self) -> None:
        self.moments += 1
        if self._left and self.moments > self._left[-1]:
            self._left.pop()
            raise Crash

    def _wrap(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **named: Any) -> Any:
            self._moment()
            done = real(*args, **named)
            self._moment()
            return done

        return step

    @contextmanager
    def watched(self) -> Iterator[None]:
        # fsync itself is omitted: it takes time and changes nothing that a process can see.
        real = {name: getattr(os, name) for name in STEPS} | {"fsync": lambda _: None}
        with mock.patch.multiple(os, **{name: self._wrap(real[name]) for name in STEPS}):  # pyright: ignore[reportArgumentType, reportCallIssue]
            yield


def sink_in(folder: Path) -> FileSink:
    builder = FileSink.for_row_format(folder, Encoder.simple_string_encoder())
    builder.with_bucket_assigner(lambda value: f"b{value % 2}")
    return builder.with_rolling_policy(RollingPolicy.default_rolling_policy(6)).build()


def write_epoch(sink: FileSink, epoch: int, attempt: str) -> list[Any]:
    prepared: list[Any] = []
    for subtask in range(SUBTASKS):
        writer = sink.writer(WriterContext(JOB, SINK, subtask, epoch, attempt))
        # The second epoch is empty.
        if epoch != 1:
            for value in range(4):
                writer.write(Batch([epoch * 100 + subtask * 10 + value] * 2))
        prepared.append(writer.prepare())
    return prepared


def repeating_engine(sink: FileSink, store: dict[str, Any], attempt: str) -> None:
    """Positions are fixed before an epoch is run; what was prepared is lost in a crash."""
    for epoch in range(store.get("committed", -1) + 1, EPOCHS):
        sink.commit(JOB, SINK, epoch, write_epoch(sink, epoch, attempt))
        store["committed"] = epoch


def checkpointing_engine(sink: FileSink, store: dict[str, Any], attempt: str) -> None:
    """A checkpoint contains what was prepared; a restart commits it again, because it cannot know whether it did."""
    if "checkpoint" in store:
        sink.commit(JOB, SINK, *store["checkpoint"])
    for epoch in range(store.get("checkpoint", (-1,))[0] + 1, EPOCHS):
        store["checkpoint"] = (epoch, write_epoch(sink, epoch, attempt))
        sink.commit(JOB, SINK, epoch, store["checkpoint"][1])


ENGINES = {"repeating": repeating_engine, "checkpointing": checkpointing_engine}


def visible(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and not path.relative_to(folder).parts[0].startswith(".")
    }


def run(folder: Path, engine: str, crashes: list[int], expected: dict[str, str] | None = None) -> int:
    """Runs to completion through all crashes; returns the number of possible crash points."""
    disk, store = Disk(crashes), dict[str, Any]()
    for attempt in count():
        try:
            with disk.watched():
                ENGINES[engine](sink_in(folder), store, f"a{attempt}")
            return disk.moments
        except Crash:
            if expected is not None:
                # At no time does a reader see an incomplete file or one that will disappear.
                seen = visible(folder)
                assert seen.items() <= expected.items()
    raise AssertionError


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("undisturbed")
    run(folder, "repeating", [])
    found = visible(folder)
    written = sorted(int(line) for text in found.values() for line in text.splitlines())
    assert written == sorted(
        epoch * 100 + subtask * 10 + value
        for epoch in range(EPOCHS)
        if epoch != 1
        for subtask in range(SUBTASKS)
        for value in range(4)
        for _ in range(2)
    )
    return found


def check(folder: Path, engine: str, crashes: list[int], expected: dict[str, str]) -> None:
    run(folder, engine, crashes, expected)
    assert visible(folder) == expected
    staging = CommitLedger(str(folder), JOB, SINK).staging
    assert os.listdir(staging) == []
    records = [name for name in os.listdir(staging.parent) if name != "inprogress"]
    assert len([name for name in records if name.endswith(".done")]) == KEPT
    assert [name for name in records if name.endswith(".json")] == []


@pytest.mark.parametrize("engine", list(ENGINES))
def test_a_crash_at_every_single_moment(tmp_path: Path, engine: str, undisturbed: dict[str, str]) -> None:
    moments = run(tmp_path / "whole", engine, [])
    assert moments > 100
    for moment in range(moments):
        check(tmp_path / str(moment), engine, [moment], undisturbed)


@settings(deadline=None, max_examples=60)
@given(engine=st.sampled_from(list(ENGINES)), crashes=st.lists(st.integers(0, 300), max_size=8))
def test_many_crashes(
    tmp_path_factory: pytest.TempPathFactory, undisturbed: dict[str, str], engine: str, crashes: list[int]
) -> None:
    check(tmp_path_factory.mktemp("crashes"), engine, crashes, undisturbed)
