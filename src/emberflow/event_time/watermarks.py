"""Watermark strategies: how records get event time, and how event time advances.

The standard generators (monotonous, bounded out-of-orderness) keep only a running maximum, so any task may start
them from scratch: the receiver keeps the highest watermark it has seen. A custom generator has state and runs as an
operator keyed by channel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from emberflow.errors import InvalidArgument
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
class WatermarkStrategy:
    """How a stream gets timestamps and watermarks. Frozen: every `with_…` returns a new strategy."""

    delay_ms: int | None = None
    generator: Callable[[], WatermarkGenerator] | None = None
    assigner: Callable[[Any, int], int] | None = None
    idle_ms: int | None = None

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
        self, watermark_group: str, max_allowed_watermark_drift: Interval, update_interval: Interval = 1000
    ) -> WatermarkStrategy:
        """Kept for PyFlink's programs: sources are not slowed down to keep their watermarks together."""
        to_ms(max_allowed_watermark_drift, "max_allowed_watermark_drift")
        to_ms(update_interval, "update_interval")
        return self

    def with_idleness(self, idle_timeout: Interval) -> WatermarkStrategy:
        """A channel without records for this long no longer holds back the watermark of the others."""
        idle_ms = to_ms(idle_timeout, "idle_timeout")
        if idle_ms <= 0:
            raise InvalidArgument(f"idle_timeout must be positive, got {idle_ms} ms")
        return replace(self, idle_ms=idle_ms)
