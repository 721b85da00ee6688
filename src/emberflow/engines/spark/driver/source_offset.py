"""A source's position as Spark stores it in the offset log of a query, and as JSON.

    {"channels": [[position, ended, limit], …], "run": n}

The offset of a query's first batch has a fourth item in each channel, where the batch started: Spark does not store the
offset before it, and asks for it again if the batch is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChannelOffset:
    """How far one channel was read. Positions are defined by the source, as JSON values."""

    position: Any
    ended: bool
    limit: int = 0
    """The number of records that the batch was planned with: a repeated batch is read in the same chunks."""
    begin: tuple[Any] | None = None
    """`(position,)` at which the query's first batch started; None in all other offsets."""

    @staticmethod
    def from_json(stored: list[Any]) -> ChannelOffset:
        position, ended, limit, *begin = stored
        return ChannelOffset(position, ended, limit, (begin[0],) if begin else None)

    def to_json(self) -> list[Any]:
        return [self.position, self.ended, self.limit, *(self.begin or ())]

    def same_place(self, other: ChannelOffset) -> bool:
        """Whether there is nothing to read between the two."""
        return (self.position, self.ended) == (other.position, other.ended)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOffset:
    channels: tuple[ChannelOffset, ...]
    run: int = 0
    """Incremented when a finished job is started again, so that Spark runs one (empty) batch and the driver sees the end."""
    tick: int | None = None
    """Incremented when a batch must run without input; None until the first such batch."""
    initial: bool = False
    """The offset before the first batch."""

    @staticmethod
    def from_json(stored: Json) -> SourceOffset:
        return SourceOffset(
            channels=tuple(ChannelOffset.from_json(item) for item in stored["channels"]),
            run=stored["run"],
            tick=stored.get("tick"),
            initial=stored.get("initial", False),
        )

    def to_json(self) -> Json:
        body: Json = {"channels": [item.to_json() for item in self.channels], "run": self.run}
        if self.tick is not None:
            body["tick"] = self.tick
        if self.initial:
            body["initial"] = True
        return body

    @property
    def ended(self) -> bool:
        return all(item.ended for item in self.channels)
