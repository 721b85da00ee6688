"""The micro-batches of a session's queries, as Spark reports them to listeners."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class MicroBatch:
    batch_id: int
    rows: int
    duration_ms: int
    began_s: float

    @property
    def ended_s(self) -> float:
        return self.began_s + self.duration_ms / 1000


@contextmanager
def watched(session: Any) -> Iterator[list[MicroBatch]]:
    """A list that grows with every micro-batch while the block runs; `rows` counts packets, not records."""
    from pyspark.sql.streaming import StreamingQueryListener

    seen: list[MicroBatch] = []

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None: ...

        def onQueryProgress(self, event: Any) -> None:
            progress = event.progress
            duration_ms = progress.durationMs.get("triggerExecution", 0)
            began_s = datetime.fromisoformat(progress.timestamp).timestamp()
            seen.append(MicroBatch(progress.batchId, progress.numInputRows, duration_ms, began_s))

        def onQueryIdle(self, event: Any) -> None: ...

        def onQueryTerminated(self, event: Any) -> None: ...

    listener = Listener()
    session.streams.addListener(listener)
    try:
        yield seen
    finally:
        session.streams.removeListener(listener)
