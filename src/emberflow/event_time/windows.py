"""Windows and their assigners: start inclusive, end exclusive, aligned to the epoch plus an offset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from emberflow.errors import InvalidArgument
from emberflow.event_time.clock import Interval, to_ms
from emberflow.events.stored_types import stored_type


@stored_type(write=tuple, read=lambda _, bounds: TimeWindow(*bounds))
class TimeWindow(NamedTuple):
    """[start, end) in milliseconds."""

    start: int
    end: int

    def max_timestamp(self) -> int:
        """The last millisecond that belongs to the window."""
        return self.end - 1


W = TypeVar("W", covariant=True)


class WindowAssigner(Protocol[W]):
    """Assigns windows to a record; given to `KeyedStream.window()`."""

    def assign(self, timestamp: int) -> Sequence[W]:
        """The windows of a record with this timestamp."""
        ...


@dataclass(frozen=True, slots=True)
class TumblingEventTimeWindows:
    """Windows of one size that follow each other without gaps; every record is in exactly one."""

    size_ms: int
    offset_ms: int = 0

    @staticmethod
    def of(size: Interval, offset: Interval = 0) -> TumblingEventTimeWindows:
        """Aligned to the epoch plus `offset`; a size that is not positive, or a larger offset, raises `InvalidArgument`."""
        size_ms, offset_ms = to_ms(size, "size"), to_ms(offset, "offset")
        _check("size", size_ms)
        if abs(offset_ms) >= size_ms:
            raise InvalidArgument(
                f"the offset ({offset_ms} ms) must be smaller than the window ({size_ms} ms)"
            )
        return TumblingEventTimeWindows(size_ms, offset_ms)

    def assign(self, timestamp: int) -> Sequence[TimeWindow]:
        """The window of a record with this timestamp."""
        start = timestamp - (timestamp - self.offset_ms) % self.size_ms
        return (TimeWindow(start, start + self.size_ms),)


@dataclass(frozen=True, slots=True)
class SlidingEventTimeWindows:
    """Windows of one size that start every `slide`; a record is in each window that covers its timestamp."""

    size_ms: int
    slide_ms: int
    offset_ms: int = 0

    @staticmethod
    def of(size: Interval, slide: Interval, offset: Interval = 0) -> SlidingEventTimeWindows:
        """Aligned to the epoch plus `offset`; a size or slide that is not positive raises `InvalidArgument`."""
        size_ms, slide_ms, offset_ms = to_ms(size, "size"), to_ms(slide, "slide"), to_ms(offset, "offset")
        _check("size", size_ms)
        _check("slide", slide_ms)
        if abs(offset_ms) >= slide_ms:
            raise InvalidArgument(
                f"the offset ({offset_ms} ms) must be smaller than the slide ({slide_ms} ms)"
            )
        return SlidingEventTimeWindows(size_ms, slide_ms, offset_ms)

    def assign(self, timestamp: int) -> Sequence[TimeWindow]:
        """The windows of a record with this timestamp, latest first."""
        last = timestamp - (timestamp - self.offset_ms) % self.slide_ms
        first = timestamp - self.size_ms
        return [TimeWindow(start, start + self.size_ms) for start in range(last, first, -self.slide_ms)]


def _check(name: str, value_ms: int) -> None:
    if value_ms <= 0:
        raise InvalidArgument(f"a window's {name} must be positive, got {value_ms} ms")
