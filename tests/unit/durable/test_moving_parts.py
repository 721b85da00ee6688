"""Reading a call log whose parts are moved at the same time, or cannot be found at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from emberflow.durable.stores.file_store import FileCallStore
from emberflow.durable.stores.moving import until_whole
from emberflow.errors import CallLogFailed


def test_reading_is_retried_with_increasing_pauses() -> None:
    answers = iter([False] * 6 + [True])
    pauses: list[float] = []
    until_whole(lambda: next(answers), "here", sleep=pauses.append)
    assert list(answers) == []
    assert len(pauses) == 5
    assert pauses == sorted(set(pauses))


def test_a_listed_file_that_never_exists_is_an_error() -> None:
    with pytest.raises(CallLogFailed, match="in here lists parts that are not there") as failure:
        until_whole(lambda: False, "here", 0.0)
    assert "1 times within 0 s" in str(failure.value)
    assert "remove what cannot be read" in str(failure.value)


def test_a_directory_that_cannot_be_listed_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another user sees it: without the answers in it, calls would be made again."""

    def refuse(path: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(CallLogFailed, match="cannot be read"):
        FileCallStore(tmp_path).read_new()


def test_a_log_that_was_never_written_is_empty(tmp_path: Path) -> None:
    assert FileCallStore(tmp_path / "nowhere").read_new() == []


def test_a_closed_store_does_not_come_alive_again(tmp_path: Path) -> None:
    """A write that was in flight would take the lease again, and what the store had claimed would run forever."""
    closed, other = FileCallStore(tmp_path), FileCallStore(tmp_path)
    closed.append([b"claimed"], sync=True)
    assert other.alive(closed.owner)
    closed.close()
    with pytest.raises(CallLogFailed, match="closed"):
        closed.append([b"late"], sync=True)
    assert not other.alive(closed.owner)
    other.close()
