"""The source contract.

A source is split into channels; a channel is ordered and is read from positions that are JSON-serializable, so that any
engine can resume it exactly. One source object serves every engine: it is shipped to the workers, so it must be
picklable and open files and connections only in `read`.

No method configures the object for another one. Everything that reading depends on is in the position: an engine may
call any method on any copy of the source, in any process, with a position stored by an earlier start of the program.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from emberflow.errors import EmberflowError, InvalidArgument, SourceFailed, describe_cause, shorten

T = TypeVar("T", covariant=True)

Position = Any
"""Any JSON-serializable value: a number, a string, a list or a dictionary."""


@dataclass(frozen=True, slots=True)
class Chunk(Generic[T]):
    """Records in order, and the position after the last of them.

    `end` marks the end of the channel. A chunk without records is allowed: it only advances the position.
    """

    values: list[T]
    position: Position
    timestamps: list[int | None] | None = None
    end: bool = False


class Source(Generic[T]):
    """Base of all sources. Override `read`; override `start` and `plan` if the source can provide them."""

    bounded: bool = True
    """Whether every channel ends."""
    ordered: bool = True
    """False if channels share one clock whose watermark advances at the end of a batch (file splits)."""

    def describe(self) -> str:
        """The name of the source in plans and errors."""
        return type(self).__name__

    def start(self, parallelism: int) -> list[Position]:
        """The first position of each channel. Called when a job starts for the first time; a later start continues from the
        stored positions, whatever its parallelism is."""
        return [0]

    def read(self, channel: int, position: Position, limit: int) -> Iterator[Chunk[T]]:
        """Yields chunks from `position` on, in order, about `limit` records each; the last one of a bounded channel has
        `end=True`. An unbounded source yields what is available and returns; it is called again later."""
        raise NotImplementedError(type(self).__name__)

    def read_again(self, channel: int, position: Position, stop: Position, limit: int) -> Iterator[Chunk[T]]:
        """Yields exactly the records between two positions that were read before with this `limit`, when a batch is repeated
        after a crash. Override it if `read` depends on anything but the position, such as what has arrived by now."""
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
        """Where reading about `limit` records from `position` would end, and whether that is the end of the channel, without
        reading them; `read` must end a chunk at exactly this position (compared as JSON). None if this is unknown without
        reading: engines that plan a batch before they read it (Spark) then read the records on the driver.
        """
        return None

    def available(self, channel: int, position: Position, elapsed_ms: int) -> int | None:
        """How many records from `position` on are due `elapsed_ms` after the channel's start; None for no limit. An engine
        never reads or plans more than that."""
        return None

    def due_ms(self, channel: int, position: Position) -> int:
        """When the record at `position` is due, relative to the channel's start; until then an engine may sleep. After a
        restart at `position` the engine counts from `now - due_ms`, so that downtime is neither waited for again nor caught
        up in one burst."""
        return 0


def start_positions(source: Source[Any], parallelism: int) -> list[Position]:
    """The result of `source.start`, validated and normalized by a JSON round trip."""
    if hasattr(source, "channels"):
        raise InvalidArgument(
            f"the source {source.describe()} has a method channels(), which is not called",
            way_out="return the first position of each channel from start(parallelism)",
        )
    found = source.start(parallelism)
    if not isinstance(found, list) or not found:
        raise InvalidArgument(
            f"start() of the source {source.describe()} returned {shorten(found)}",
            way_out="return a list with one position per channel",
        )
    try:
        return json.loads(json.dumps(found))
    except (TypeError, ValueError) as error:
        raise InvalidArgument(
            f"start() of the source {source.describe()} returned positions that are not JSON-serializable",
            cause=describe_cause(error),
            way_out="use numbers, strings, lists and dictionaries with strings as keys",
        ) from error


def read_safely(source: Source[Any], channel: int, position: Position, limit: int) -> Iterator[Chunk[Any]]:
    """`source.read`, with errors that name the source and the position."""
    return _safely(source, source.read(channel, position, limit), position)


def read_between(
    source: Source[Any], channel: int, position: Position, stop: Position, limit: int
) -> Iterator[Chunk[Any]]:
    """`source.read_again`, with errors that name the source and the position."""
    return _safely(source, source.read_again(channel, position, stop, limit), position)


def _safely(source: Source[Any], chunks: Iterator[Chunk[Any]], position: Position) -> Iterator[Chunk[Any]]:
    try:
        for chunk in chunks:
            if chunk.timestamps is not None and len(chunk.timestamps) != len(chunk.values):
                raise ValueError(
                    f"a chunk has {len(chunk.values)} values and {len(chunk.timestamps)} timestamps"
                )
            yield chunk
            position = chunk.position
    except (EmberflowError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        raise SourceFailed(
            f"the source {source.describe()} failed after position {position!r}",
            cause=describe_cause(error),
            way_out="fix the source and run the program again; it continues from the last commit",
        ) from error
