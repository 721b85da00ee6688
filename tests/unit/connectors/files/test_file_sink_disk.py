"""A full disk: each step of a file sink names its folder and the cause."""

from __future__ import annotations

import errno
import resource
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from emberflow.connectors.files import commit_ledger
from emberflow.connectors.sink import WriterContext
from emberflow.errors import SinkFailed
from emberflow.events.batch import Batch
from emberflow.testing import literal_files


def context() -> WriterContext:
    return WriterContext("job", "out", 0, 1, "a")


@contextmanager
def files_of_at_most(size: int) -> Generator[None]:
    """Python ignores the signal, so that a write beyond it is an OSError."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_records_that_cannot_be_written(tmp_path: Path) -> None:
    writer = literal_files(tmp_path / "out").writer(context())
    with files_of_at_most(1_000), pytest.raises(SinkFailed) as caught:
        writer.write(Batch(["x" * 10_000] * 1_000))
    writer.abort()
    assert caught.value.message == f"records could not be written below {tmp_path / 'out'}"
    assert "File too large" in caught.value.cause


def test_records_that_cannot_be_finished(tmp_path: Path) -> None:
    """Buffered data reaches the full disk when the file is closed."""
    writer = literal_files(tmp_path / "out").writer(context())
    writer.write(Batch(["x" * 2_000]))
    with files_of_at_most(1_000), pytest.raises(SinkFailed) as caught:
        writer.prepare()
    assert caught.value.message == f"files below {tmp_path / 'out'} could not be finished"
    assert "File too large" in caught.value.cause


def test_a_commit_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = literal_files(tmp_path / "out")
    writer = sink.writer(context())
    writer.write(Batch([1]))
    prepared = [writer.prepare()]

    def full(path: Path, *_: Any) -> None:
        raise OSError(errno.ENOSPC, "no space left on device", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(commit_ledger, "write_json", full)
        with pytest.raises(SinkFailed) as caught:
            sink.commit("job", "out", 1, prepared)
    assert caught.value.message == f"epoch 1 could not be committed to {tmp_path / 'out'}"
    assert "no space left on device" in caught.value.cause
    sink.commit("job", "out", 1, prepared)


def test_a_folder_that_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("in the way")
    with pytest.raises(SinkFailed) as caught:
        literal_files(tmp_path / "out").take_over("job", "out", 1)
    assert caught.value.message == f"the ledger in {tmp_path / 'out'} could not be opened"
    assert caught.value.cause
