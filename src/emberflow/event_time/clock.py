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
    """A clock that is stopped, for the time of one micro-batch."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms


class Time:
    """PyFlink's durations; `timedelta` and plain milliseconds are accepted wherever a `Time` is."""

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = milliseconds

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        """A duration of this many milliseconds."""
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: float) -> Time:
        """A duration of this many seconds."""
        return Time(int(seconds * 1000))

    @staticmethod
    def minutes(minutes: float) -> Time:
        """A duration of this many minutes."""
        return Time.seconds(minutes * 60)

    @staticmethod
    def hours(hours: float) -> Time:
        """A duration of this many hours."""
        return Time.minutes(hours * 60)

    @staticmethod
    def days(days: float) -> Time:
        """A duration of this many days."""
        return Time.hours(days * 24)

    def to_milliseconds(self) -> int:
        """The whole duration in milliseconds."""
        return self._milliseconds

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Time) and self._milliseconds == other._milliseconds

    def __hash__(self) -> int:
        return hash(self._milliseconds)

    def __repr__(self) -> str:
        return f"Time.milliseconds({self._milliseconds})"


class Duration(Time):
    """Flink 2's durations; equal to a `Time` of the same length."""

    @staticmethod
    def of_millis(millis: int) -> Duration:
        """A duration of this many milliseconds."""
        return Duration(millis)

    @staticmethod
    def of_seconds(seconds: float) -> Duration:
        """A duration of this many seconds."""
        return Duration(int(seconds * 1000))

    @staticmethod
    def of_minutes(minutes: float) -> Duration:
        """A duration of this many minutes."""
        return Duration.of_seconds(minutes * 60)

    @staticmethod
    def of_hours(hours: float) -> Duration:
        """A duration of this many hours."""
        return Duration.of_minutes(hours * 60)

    @staticmethod
    def of_days(days: float) -> Duration:
        """A duration of this many days."""
        return Duration.of_hours(days * 24)

    @staticmethod
    def of_nanos(nanos: int) -> Duration:
        """A duration of this many nanoseconds, in whole milliseconds: event time has no smaller unit."""
        return Duration(nanos // 1_000_000)

    def __repr__(self) -> str:
        return f"Duration.of_millis({self._milliseconds})"


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
