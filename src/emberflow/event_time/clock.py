"""Clocks. The core never reads the time itself: it is given a clock."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any, Protocol

from emberflow.errors import InvalidArgument, shorten


class Clock(Protocol):
    """Processing time in milliseconds since the epoch."""

    def now_ms(self) -> int: ...


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


class FixedClock:
    """A clock that stands still, for the time of one micro-batch."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms


class Time:
    """PyFlink's durations; `timedelta` and plain milliseconds are accepted wherever a `Time` is."""

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = milliseconds

    @staticmethod
    def milliseconds(count: int) -> Time:
        """A duration of this many milliseconds."""
        return Time(count)

    @staticmethod
    def seconds(count: float) -> Time:
        """A duration of this many seconds."""
        return Time(int(count * 1000))

    @staticmethod
    def minutes(count: float) -> Time:
        """A duration of this many minutes."""
        return Time.seconds(count * 60)

    @staticmethod
    def hours(count: float) -> Time:
        """A duration of this many hours."""
        return Time.minutes(count * 60)

    @staticmethod
    def days(count: float) -> Time:
        """A duration of this many days."""
        return Time.hours(count * 24)

    def to_milliseconds(self) -> int:
        """The whole duration in milliseconds."""
        return self._milliseconds

    def __repr__(self) -> str:
        return f"Time.milliseconds({self._milliseconds})"


Duration = Time
"""Flink 2's name for `Time`."""

LONGEST_MS = 2**63 - 1

Interval = timedelta | Time | int


def to_ms(value: Interval, what: str = "duration") -> int:
    """Milliseconds of a `timedelta`, a `Time` or an int, within 64 bits; raises InvalidArgument."""
    if isinstance(value, timedelta):
        return round(value.total_seconds() * 1000)
    given: Any = value.to_milliseconds() if isinstance(value, Time) else value
    if isinstance(given, int) and not isinstance(given, bool):
        if abs(given) > LONGEST_MS:
            raise InvalidArgument(f"{what} must be at most 2**63-1 ms, not {shorten(given)} ms")
        return given
    raise InvalidArgument(
        f"{what} must be a timedelta, Time or milliseconds, not {value!r}",
        way_out="write timedelta(seconds=5), Time.seconds(5) or 5000",
    )
