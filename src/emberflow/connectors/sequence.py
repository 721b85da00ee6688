"""A source of consecutive integers, as in Flink.

Created by `env.from_sequence`. Nothing is stored: a channel is a range, and a position is what is left of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from emberflow.connectors.source import Chunk, Position, Source
from emberflow.errors import InvalidArgument


class NumberSequenceSource(Source[int]):
    """The integers from `start` to `end`, both inclusive, split into one range per channel.

    A position is `[next number, last number]`, so a channel can be read without knowing the number of channels.
    """

    def __init__(self, start: int, end: int) -> None:
        if start > end:
            raise InvalidArgument(
                f"a number sequence from {start} to {end} is empty",
                way_out="start must not be greater than end",
            )
        self._start = start
        self._end = end

    def describe(self) -> str:
        return f"Sequence {self._start}..{self._end}"

    def start(self, parallelism: int) -> list[Position]:
        count = self._end - self._start + 1
        channels = max(1, min(parallelism, count))
        firsts = [self._start + channel * count // channels for channel in range(channels + 1)]
        return [[first, behind - 1] for first, behind in pairwise(firsts)]

    def read(self, channel: int, position: Position, limit: int) -> Iterator[Chunk[int]]:
        first, last = position
        while True:
            behind = min(first + max(limit, 1), last + 1)
            yield Chunk(list(range(first, behind)), [behind, last], end=behind > last)
            if behind > last:
                return
            first = behind

    def plan(self, channel: int, position: Position, limit: int) -> tuple[Position, bool]:
        first, last = position
        behind = min(first + max(limit, 1), last + 1)
        return [behind, last], behind > last
