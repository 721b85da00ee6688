"""`Instant`: a point on the time line in seconds and nanoseconds, with PyFlink's names."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from emberflow.events.stored_types import stored_type

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@stored_type()
@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """Seconds since 1970-01-01T00:00:00Z, and nanoseconds within the second (never negative)."""

    seconds: int
    nanos: int

    def to_epoch_milli(self) -> int:
        """Milliseconds since 1970, rounded down."""
        return self.seconds * 1000 + self.nanos // 1_000_000

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        """The instant of a number of milliseconds since 1970."""
        seconds, millis = divmod(epoch_milli, 1000)
        return Instant(seconds, millis * 1_000_000)

    @staticmethod
    def of_datetime(value: datetime) -> Instant:
        """The instant of a datetime with a time zone."""
        since = value - _EPOCH
        return Instant(since.days * 86_400 + since.seconds, since.microseconds * 1_000)

    def to_datetime(self) -> datetime:
        """A datetime in UTC, rounded down to microseconds. Years outside 1 to 9999 raise `OverflowError`."""
        return _EPOCH + timedelta(seconds=self.seconds, microseconds=self.nanos // 1_000)

    def __repr__(self) -> str:
        return f"Instant<{self.seconds}, {self.nanos}>"
