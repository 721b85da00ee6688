"""A source over values in memory.

Created by `env.from_collection`; the values are shipped to workers with the source, so use it for small inputs and tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from emberflow.connectors.source import Chunk, Position, Source
from emberflow.errors import InvalidArgument, shorten
from emberflow.events.copies import isolated

T = TypeVar("T")


class CollectionSource(Source[T]):
    """One channel over a list of values; a position is the index of the next value."""

    def __init__(self, values: Iterable[T]) -> None:
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise InvalidArgument(
                f"a collection source needs a list of values, not {shorten(values)}",
                way_out="write [value] for a single value",
            )
        self._values = list(values)

    def describe(self) -> str:
        return f"Collection of {len(self._values)}"

    def read(self, channel: int, position: Position, limit: int) -> Iterator[Chunk[T]]:
        while True:
            behind, end = self.plan(channel, position, limit)
            # Copies: a function may change its records, and after a restart they are read again.
            yield Chunk(isolated(self._values[position:behind]), behind, end=end)
            if end:
                return
            position = behind

    def plan(self, channel: int, position: Position, limit: int) -> tuple[Position, bool]:
        behind = min(position + max(limit, 1), len(self._values))
        return behind, behind >= len(self._values)
