"""Sources that determine the size of each micro-batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from emberflow.streams import Chunk, Source


class Steered(Source):
    """Two channels; a position is the number of records that a channel has returned. Subclasses define where a batch ends."""

    CHANNELS = 2

    def start(self, parallelism: int) -> list[Any]:
        return [0] * self.CHANNELS

    def stop(self, position: int, limit: int) -> tuple[int, bool]:
        """Where the batch that starts at `position` ends, and whether the channel ends there."""
        raise NotImplementedError

    def value(self, channel: int, position: int) -> Any:
        raise NotImplementedError

    def plan(self, channel: int, position: Any, limit: int) -> tuple[Any, bool]:
        return self.stop(position, limit)

    def read(self, channel: int, position: Any, limit: int) -> Iterator[Chunk]:
        end = False
        while not end:
            behind, end = self.stop(position, limit)
            yield Chunk([self.value(channel, index) for index in range(position, behind)], behind, end=end)
            position = behind


class FillThenTouch(Steered):
    """Every key once, in large batches; then the same few keys repeatedly, each once per batch."""

    def __init__(self, keys: int, touched: int, batches: int) -> None:
        self._fill = keys // self.CHANNELS
        self._touch = touched // self.CHANNELS
        self._end = self._fill + self._touch * batches

    def stop(self, position: int, limit: int) -> tuple[int, bool]:
        if position < self._fill:
            return min(position + limit, self._fill), False
        behind = position + self._touch
        return behind, behind >= self._end

    def value(self, channel: int, position: int) -> tuple[int, int]:
        index = position if position < self._fill else (position - self._fill) % self._touch
        return index * self.CHANNELS + channel, position


class Bursts(Steered):
    """A number of records at once, then none for a while."""

    def __init__(self, records: int, period_ms: int, bursts: int) -> None:
        self._burst = records // self.CHANNELS
        self._period_ms = period_ms
        self._end = self._burst * bursts

    def available(self, channel: int, position: Any, elapsed_ms: int) -> int:
        bursts_due = elapsed_ms // self._period_ms + 1
        return max(0, bursts_due * self._burst - position)

    def due_ms(self, channel: int, position: Any) -> int:
        return position // self._burst * self._period_ms

    def stop(self, position: int, limit: int) -> tuple[int, bool]:
        behind = position + self._burst
        return behind, behind >= self._end

    def value(self, channel: int, position: int) -> tuple[int, int]:
        return position % self._burst * self.CHANNELS + channel, position
