"""Watermark strategies: how records get event time, and how event time advances.

The standard generators (monotonous, bounded out-of-orderness) keep only a running maximum, so any task may start
them from scratch: the receiver keeps the highest watermark it has seen. A custom generator has state and runs as an
operator keyed by channel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from emberflow.errors import InvalidArgument, shorten
from emberflow.event_time.clock import Interval, to_ms


class TimestampAssigner:
    """PyFlink's form of a timestamp assigner; a plain `lambda value, timestamp: …` works too."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """The record's event time in milliseconds; `record_timestamp` is the one it had before."""
        raise NotImplementedError("extract_timestamp() must be overridden")


@dataclass(frozen=True, slots=True)
class Watermark:
    """Event time has reached this point, in milliseconds: no earlier records are expected."""

    timestamp: int


class WatermarkOutput(Protocol):
    def emit_watermark(self, watermark: Watermark | int) -> None: ...


class WatermarkGenerator:
    """A custom generator. `on_event` sees every record; `on_periodic_emit` is also called after every record, so that
    results do not depend on when a timer fired. Its attributes are checkpointed."""

    def on_event(self, value: Any, timestamp: int, output: WatermarkOutput) -> None:
        """Called for every record; emit here if the record itself determines the watermark (punctuated)."""

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Called after every record; emit what the records so far allow (periodic)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkAlignment:
    """The sources of one group stay together in event time: one that is ahead of the slowest by more than the drift is not
    read until the others have caught up."""

    group: str
    max_drift_ms: int
    update_interval_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkStrategy:
    """How a stream gets timestamps and watermarks. Frozen: every `with_…` returns a new strategy."""

    delay_ms: int | None = None
    generator: Callable[[], WatermarkGenerator] | None = None
    assigner: Callable[[Any, int], int] | None = None
    idle_ms: int | None = None
    alignment: WatermarkAlignment | None = None

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """Timestamps never decrease within a channel."""
        return WatermarkStrategy(delay_ms=0)

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Interval) -> WatermarkStrategy:
        """A record is at most this late: the watermark is `highest timestamp - delay - 1 ms`."""
        delay_ms = to_ms(max_out_of_orderness, "max_out_of_orderness")
        if delay_ms < 0:
            raise InvalidArgument(f"max_out_of_orderness must not be negative, got {delay_ms} ms")
        return WatermarkStrategy(delay_ms=delay_ms)

    @staticmethod
    def for_generator(generator: Callable[[], WatermarkGenerator]) -> WatermarkStrategy:
        """A custom `WatermarkGenerator`; pass the class or a function that creates one: each channel has its own."""
        if isinstance(generator, WatermarkGenerator):
            raise InvalidArgument(
                "for_generator() needs a class or function that creates a generator, because every channel has its own",
                way_out=f"write WatermarkStrategy.for_generator({type(generator).__name__})",
            )
        return WatermarkStrategy(generator=generator)

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """Timestamps only; event time advances at the end of the input."""
        return WatermarkStrategy()

    def with_timestamp_assigner(
        self, timestamp_assigner: TimestampAssigner | Callable[[Any, int], int]
    ) -> WatermarkStrategy:
        """Event time is what `assigner(value, timestamp before)` returns, in milliseconds."""
        if isinstance(timestamp_assigner, TimestampAssigner):
            return replace(self, assigner=timestamp_assigner.extract_timestamp)
        return replace(self, assigner=timestamp_assigner)

    def with_watermark_alignment(
        self,
        watermark_group: str,
        max_allowed_watermark_drift: Interval,
        update_interval: Interval | None = 1000,
    ) -> WatermarkStrategy:
        """A source whose watermark is ahead of the lowest of its group by more than the drift is not read until the others
        have caught up. Idle and finished sources hold nobody back. This bounds what joins and windows must keep while one
        source is far behind; results are the same without it.

        The local engine compares before each read, so `update_interval` has no effect; Spark and batch mode read all sources
        without regard to each other. An empty group, a negative drift, an interval that is not positive, and two drifts for
        one group raise `InvalidArgument`.
        """
        group: object = watermark_group
        if not isinstance(group, str) or not group:
            raise InvalidArgument(
                f"watermark_group must be a string that is not empty, got {shorten(group)}",
                way_out="give the sources that are to stay together the same name",
            )
        drift_ms = to_ms(max_allowed_watermark_drift, "max_allowed_watermark_drift")
        if drift_ms < 0:
            raise InvalidArgument(f"max_allowed_watermark_drift must not be negative, got {drift_ms} ms")
        interval_ms = to_ms(1000 if update_interval is None else update_interval, "update_interval")
        if interval_ms <= 0:
            raise InvalidArgument(f"update_interval must be positive, got {interval_ms} ms")
        alignment = WatermarkAlignment(group=group, max_drift_ms=drift_ms, update_interval_ms=interval_ms)
        return replace(self, alignment=alignment)

    def with_idleness(self, idle_timeout: Interval) -> WatermarkStrategy:
        """A channel without records for this long no longer holds back the watermark of the others."""
        idle_ms = to_ms(idle_timeout, "idle_timeout")
        if idle_ms <= 0:
            raise InvalidArgument(f"idle_timeout must be positive, got {idle_ms} ms")
        return replace(self, idle_ms=idle_ms)
