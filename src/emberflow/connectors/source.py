"""The source contract.

A source is split into channels; a channel keeps order and is read from positions that can be written as JSON, so
that any engine can start it again exactly where it was. One source object serves every engine: it is shipped to
the workers, so it must be picklable and open files and connections only in `read`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from emberflow.errors import EmberflowError, SourceFailed, describe_cause

Position = Any
"""Anything JSON can carry: a number, a string, a list or a dictionary."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records in order, and the position behind the last of them.

    `end` says that the channel ends with this chunk. A chunk without records is allowed: it only moves the position.
    """

    values: list[Any]
    position: Position
    timestamps: list[int | None] | None = None
    end: bool = False


class Source:
    """Base of all sources. Override `read`; override `channels` and `plan` where the source can say more."""

    bounded: bool = True
    """Whether every channel ends by itself."""
    ordered: bool = True
    """False: channels share one clock whose watermark moves at the end of a batch (file splits)."""

    def describe(self) -> str:
        return type(self).__name__

    def channels(self, parallelism: int) -> int:
        """How many channels there are; called once when a job starts for the first time, before `start` and on the
        same object. What `read` has to know about the split belongs into the positions: nothing else survives."""
        return 1

    def start(self, channel: int) -> Position:
        """The position a channel begins at."""
        return 0

    def read(self, channel: int, position: Position, limit: int) -> Iterator[Chunk]:
        """Chunks from `position` on, in order, about `limit` records each; the last one of a bounded channel has
        `end=True`. An unbounded source yields what there is and returns; it is asked again later."""
        raise NotImplementedError(type(self).__name__)

    def plan(self, channel: int, position: Position, limit: int) -> tuple[Position, bool] | None:
        """Where reading about `limit` records from `position` would end, and whether that is the channel's end,
        without reading them; `read` passes exactly this position (compared as JSON) between two chunks. None: it has
        to be read to know. Engines that decide on a batch before they read it
        (Spark) then read the records on the driver."""
        return None

    def available(self, channel: int, position: Position, elapsed_ms: int) -> int | None:
        """How many records from `position` on are due `elapsed_ms` after the channel's start; None: all there are.
        An engine never reads or plans more than that."""
        return None

    def due_ms(self, channel: int, position: Position) -> int:
        """When the record at `position` is due, counted from the channel's start; until then an engine may sleep.
        One that goes on at `position` after a restart counts from `now - due_ms`, so that time spent down is
        neither waited for again nor caught up in one burst."""
        return 0


def read_safely(source: Source, channel: int, position: Position, limit: int) -> Iterator[Chunk]:
    """`source.read`; what goes wrong in it becomes an error that names the source and the position."""
    try:
        for chunk in source.read(channel, position, limit):
            yield chunk
            position = chunk.position
    except EmberflowError:
        raise
    except Exception as error:
        raise SourceFailed(
            f"the source {source.describe()} failed behind position {position!r}",
            cause=describe_cause(error),
            way_out="mend the source and run the program again; it starts at the last commit",
        ) from error
