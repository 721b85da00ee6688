"""A source with a rate whose records contain the time at which they were due, by the machine's clock.

The clock starts when the source is created and is sent to the workers with it: a record that waits for its micro-batch,
or for the engine to poll, is late by that much.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import ceil
from typing import Any

from emberflow.streams import Chunk, Source


class DueSource(Source):
    """Values are `(key, (due_s, read_s))`; a position is the next index."""

    def __init__(self, records_per_s: int, count: int, keys: int) -> None:
        self._began_s = time.time()
        self._rate = records_per_s
        self._count = count
        self._keys = keys
        self._started_s: float | None = None

    def available(self, channel: int, position: Any, elapsed_ms: int) -> int:
        self._started_s = time.time() - elapsed_ms / 1000
        due = int((time.time() - self._began_s) * self._rate) + 1
        return max(0, min(self._count, due) - position)

    def due_ms(self, channel: int, position: Any) -> int:
        """Counted from the start of reading, which is later than the start of the source's clock."""
        started_s = self._began_s if self._started_s is None else self._started_s
        return max(0, ceil((self._began_s + position / self._rate - started_s) * 1000))

    def plan(self, channel: int, position: Any, limit: int) -> tuple[Any, bool]:
        behind = min(position + max(limit, 1), self._count)
        return behind, behind >= self._count

    def read(self, channel: int, position: Any, limit: int) -> Iterator[Chunk]:
        end = False
        while not end:
            behind, end = self.plan(channel, position, limit)
            read_s = time.time()
            values = [
                (f"k{index % self._keys}", (self._began_s + index / self._rate, read_s))
                for index in range(position, behind)
            ]
            yield Chunk(values, behind, end=end)
            position = behind
