"""The source contract.

A source is split into channels; a channel keeps order and is read from positions that can be written as JSON, so
that any engine can start it again exactly where it was. One source object serves every engine: it is shipped to
the workers, so it must be picklable and open files and connections only in `read`.

No method configures the object for another one. What reading depends on is in the position: an engine may call any
method on any copy of the source, in any process, with a position that an earlier start of the program has stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from emberflow.errors import EmberflowError, InvalidArgument, SourceFailed, describe_cause, shorten

T = TypeVar("T", covariant=True)

Position = Any
"""Anything JSON can carry: a number, a string, a list or a dictionary."""


@dataclass(frozen=True, slots=True)
class Chunk(Generic[T]):
    """Records in order, and the position behind the last of them.

    `end` says that the channel ends with this chunk. A chunk without records is allowed: it only moves the position.
    """

    values: list[T]
    position: Position
    timestamps: list[int | None] | None = None
    end: bool = False


class Source(Generic[T]):
    """Base of all sources. Override `read`; override `start` and `plan` where the source can say more."""

    bounded: bool = True
    """Whether every channel ends by itself."""
    ordered: bool = True
    """False: channels share one clock whose watermark moves at the end of a batch (file splits)."""

    def describe(self) -> str:
        """How plans and errors name the source."""
        return type(self).__name__

    def start(self, parallelism: int) -> list[Position]:
        """The positions at which the channels begin, one for each channel. Called when a job starts for the first time;
        a later start goes on with what that one has stored, whatever the parallelism is then."""
        return [0]

    def read(self, channel: int, position: Position, limit: int) -> Iterator[Chunk[T]]:
        """Chunks from `position` on, in order, about `limit` records each; the last one of a bounded channel has
        `end=True`. An unbounded source yields what there is and returns; it is asked again later."""
        raise NotImplementedError(type(self).__name__)

    def read_again(self, channel: int, position: Position, stop: Position, limit: int) -> Iterator[Chunk[T]]:
        """Exactly the records between two positions that were read before with this `limit`: a batch is repeated after a
        crash. Override it if `read` depends on anything but the position, such as what has arrived by now."""
        if position == stop:
            return
        wanted = json.dumps(stop, sort_keys=True)
        for chunk in self.read(channel, position, limit):
            yield chunk
            position = chunk.position
            if json.dumps(position, sort_keys=True) == wanted:
                return
        raise SourceFailed(
            f"the source {self.describe()} ended at position {position!r} instead of {stop!r}",
            way_out="a source must return the same records when it is read again from the same position",
        )

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


def start_positions(source: Source[Any], parallelism: int) -> list[Position]:
    """`source.start`, checked, as it will be when it was stored as JSON and read again."""
    if hasattr(source, "channels"):
        raise InvalidArgument(
            f"the source {source.describe()} has a method channels(), which is not called",
            way_out="return the channels' positions from start(parallelism): one for each channel",
        )
    found = source.start(parallelism)
    if not isinstance(found, list) or not found:
        raise InvalidArgument(
            f"start() of the source {source.describe()} returned {shorten(found)}",
            way_out="return a list of positions, one for each channel",
        )
    try:
        return json.loads(json.dumps(found))
    except (TypeError, ValueError) as error:
        raise InvalidArgument(
            f"start() of the source {source.describe()} returned positions that JSON cannot carry",
            cause=describe_cause(error),
            way_out="use numbers, strings, lists and dictionaries with strings as keys",
        ) from error


def read_safely(source: Source[Any], channel: int, position: Position, limit: int) -> Iterator[Chunk[Any]]:
    """`source.read`; what goes wrong in it becomes an error that names the source and the position."""
    return _safely(source, source.read(channel, position, limit), position)


def read_between(
    source: Source[Any], channel: int, position: Position, stop: Position, limit: int
) -> Iterator[Chunk[Any]]:
    """`source.read_again`, as safely."""
    return _safely(source, source.read_again(channel, position, stop, limit), position)


def _safely(source: Source[Any], chunks: Iterator[Chunk[Any]], position: Position) -> Iterator[Chunk[Any]]:
    try:
        for chunk in chunks:
            yield chunk
            position = chunk.position
    except (EmberflowError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        raise SourceFailed(
            f"the source {source.describe()} failed behind position {position!r}",
            cause=describe_cause(error),
            way_out="fix the source and run the program again; it starts at the last commit",
        ) from error
