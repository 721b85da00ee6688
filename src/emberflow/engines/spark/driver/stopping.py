"""Stops a query between two micro-batches, so that nothing is left incomplete: every output that was committed belongs to a
batch that Spark has logged as committed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emberflow.engines.spark.driver.savepoints import last_batch
from emberflow.events.private_files import FILE_MODE

_POLL_S = 0.02


@dataclass(slots=True)
class StopRequest:
    """`stop_with_savepoint`, on its way to the job's thread."""

    path: str
    done: Future[str] = field(default_factory=Future[str])


class HoldFile:
    """While the file exists, sources provide no records."""

    def __init__(self, home: Path) -> None:
        self._path = home / "hold"
        self._checkpoint = home / "spark"

    def put(self) -> None:
        self._path.touch(FILE_MODE)

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)

    @property
    def has_commit(self) -> bool:
        return last_batch(self._checkpoint, "commits") is not None

    def wait_for_rest(self, query: Any, canceled: threading.Event) -> None:
        """Returns when the query is between two batches, has ended, or the job is canceled."""
        while query.isActive and not canceled.wait(_POLL_S):
            if not query.status["isTriggerActive"] and self._settled():
                return

    def _settled(self) -> bool:
        begun = last_batch(self._checkpoint, "offsets")
        return begun is not None and begun == last_batch(self._checkpoint, "commits")


def finish(request: StopRequest, write: Callable[[str], object]) -> BaseException | None:
    """Writes the savepoint of a stopped query; returns the error, if any."""
    try:
        write(request.path)
    except BaseException as error:
        return error
    return None
