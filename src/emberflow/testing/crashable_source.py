"""`TestSource`: a list of records with crashes, pauses, latches and cuts among them, for every engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from emberflow.connectors.source import Chunk, Position, Source
from emberflow.errors import InvalidArgument
from emberflow.events.copies import isolated
from emberflow.testing.sentinels import Cut, Latch, Pause, Sentinel


class TestSource(Source[Any]):
    """One channel over `items`; a position is the index of the next item. `batch` limits how many items are read at once.
    `Timed(value, timestamp)` gives a record an event time; with `bounded=False` the source does not end after the last
    item."""

    __test__ = False  # pytest: this is not a test class

    def __init__(self, items: Iterable[Any], batch: int | None = None, *, bounded: bool = True) -> None:
        if batch is not None and batch < 1:
            raise InvalidArgument(f"a batch of {batch} records is invalid", way_out="give at least 1")
        self.items = list(items)
        self._batch = batch
        self.bounded = bounded

    def describe(self) -> str:
        return f"TestSource of {len(self.items)}"

    def read(self, channel: int, position: Position, limit: int) -> Iterator[Chunk[Any]]:
        while self.bounded or position < len(self.items):
            behind, end = self.plan(channel, position, limit)
            values: list[Any] = []
            timestamps: list[int | None] = []
            for index in range(position, behind):
                item = self.items[index]
                if not isinstance(item, Sentinel):
                    values.append(item.value if isinstance(item, Timed) else item)
                    timestamps.append(item.timestamp if isinstance(item, Timed) else None)
                    continue
                if values and not isinstance(item, Pause | Latch | Cut):
                    # Deliver the records before a crash: they are to be lost on their way, not never sent.
                    yield self._chunk(values, timestamps, index, end=False)
                    values, timestamps = [], []
                item.reach()
            yield self._chunk(values, timestamps, behind, end=end)
            if end:
                return
            position = behind

    def _chunk(
        self, values: list[Any], timestamps: list[int | None], position: int, *, end: bool
    ) -> Chunk[Any]:
        timed = any(stamp is not None for stamp in timestamps)
        return Chunk(isolated(values), position, timestamps if timed else None, end)

    def plan(self, channel: int, position: Position, limit: int) -> tuple[Position, bool]:
        behind = min(position + max(min(limit, self._batch or limit), 1), len(self.items))
        for index in range(position, behind):
            if isinstance(self.items[index], Cut):
                behind = index + 1
                break
        return behind, self.bounded and behind >= len(self.items)

    def available(self, channel: int, position: Position, elapsed_ms: int) -> int | None:
        due_ms, count = self.due_ms(channel, position), 0
        if any(isinstance(item, Latch) and not item.is_open for item in self.items[:position]):
            return 0
        if elapsed_ms >= due_ms and not any(
            isinstance(item, Pause | Latch) for item in self.items[position:]
        ):
            return None
        for item in self.items[position:]:
            if due_ms > elapsed_ms:
                break
            count += 1
            if isinstance(item, Latch) and not item.is_open:
                break
            if isinstance(item, Pause):
                due_ms += item.ms
        return count

    def due_ms(self, channel: int, position: Position) -> int:
        return sum(item.ms for item in self.items[:position] if isinstance(item, Pause))


class Timed:
    """A record whose source assigns its event time."""

    __slots__ = ("timestamp", "value")

    def __init__(self, value: Any, timestamp: int) -> None:
        self.value = value
        self.timestamp = timestamp

    def __repr__(self) -> str:
        return f"Timed({self.value!r}, {self.timestamp})"
