"""The history of a job's checkpoints: one line of JSON each, in the checkpoint directory; only the last ones are kept.

Written by jobs, read by `emberflow checkpoints`. Informational: nothing is restored from it, so a line that cannot be
written or read is skipped.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from emberflow.events.private_files import open_private, write_private

FILE = "history.jsonl"
KEPT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRecord:
    id: int
    kind: str
    """`checkpoint`, `savepoint`, or `batch` (Spark)."""
    started_ms: int
    duration_ms: int
    bytes: int
    outcome: str = "complete"
    """or why it was aborted"""
    path: str = ""
    """The path of a savepoint."""


class CheckpointHistory:
    """The history of one job; nothing is kept without a directory."""

    def __init__(self, directory: str | None) -> None:
        self._path = None if directory is None else Path(directory) / FILE
        self._lines: int | None = None

    def add(self, record: CheckpointRecord) -> None:
        if self._path is None:
            return
        with contextlib.suppress(OSError):
            if self._lines is None:
                self._lines = len(_lines(self._path))
            with open(self._path, "a", opener=open_private) as file:
                file.write(json.dumps(asdict(record)) + "\n")
            self._lines += 1
            if self._lines > 2 * KEPT:
                self._shorten(self._path)

    def _shorten(self, path: Path) -> None:
        lines = _lines(path)[-KEPT:]
        part = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        write_private(part, "".join(lines))
        os.replace(part, path)
        self._lines = len(lines)


class Stopwatch:
    """The start and duration of an operation."""

    def __init__(self) -> None:
        self.started_ms = int(time.time() * 1000)
        self._began = time.monotonic()

    @property
    def duration_ms(self) -> int:
        return int((time.monotonic() - self._began) * 1000)


def read_history(directory: str | os.PathLike[str]) -> list[CheckpointRecord]:
    """The newest records, oldest first."""
    found: list[CheckpointRecord] = []
    for line in _lines(Path(directory) / FILE)[-KEPT:]:
        # A line truncated by a crash.
        with contextlib.suppress(ValueError, TypeError):
            found.append(CheckpointRecord(**json.loads(line)))
    return found


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines(keepends=True)
    except (OSError, UnicodeDecodeError):
        return []
