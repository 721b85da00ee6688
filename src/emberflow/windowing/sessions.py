"""Session windows: a record begins one that ends after a gap; sessions that overlap or touch become one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from emberflow.errors import shorten
from emberflow.event_time.clock import Interval, to_ms
from emberflow.windowing.assigners import (
    MergeCallback,
    MergingWindowAssigner,
    WindowAssignerContext,
    check_positive,
)
from emberflow.windowing.triggers import EventTimeTrigger, ProcessingTimeTrigger, Trigger
from emberflow.windowing.windows import TimeWindow, merge_touching


class SessionWindowTimeGapExtractor(ABC):
    """The gap after a record, for `with_dynamic_gap()`; a plain `function(record)` does as well."""

    @abstractmethod
    def extract(self, element: Any) -> int:
        """The gap in milliseconds; it must be positive."""


Extractor = SessionWindowTimeGapExtractor | Callable[[Any], int]


class _Sessions(MergingWindowAssigner[object, TimeWindow]):
    __slots__ = ()

    def gap_of(self, element: object) -> int:
        raise NotImplementedError(type(self).__name__)

    def merge_windows(self, windows: Iterable[TimeWindow], callback: MergeCallback[TimeWindow]) -> None:
        """Windows that overlap or touch become one."""
        merge_touching(windows, callback.merge)


class _EventTimeSessions(_Sessions):
    __slots__ = ()

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssignerContext
    ) -> Sequence[TimeWindow]:
        """From the timestamp to the end of the gap."""
        return (TimeWindow(timestamp, timestamp + self.gap_of(element)),)

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        """Fires when the watermark passes the end."""
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        """True."""
        return True


class _ProcessingTimeSessions(_Sessions):
    __slots__ = ()

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssignerContext
    ) -> Sequence[TimeWindow]:
        """From the current processing time to the end of the gap."""
        now_ms = context.get_current_processing_time()
        return (TimeWindow(now_ms, now_ms + self.gap_of(element)),)

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        """Fires when processing time passes the end."""
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        """False."""
        return False


@dataclass(frozen=True, slots=True)
class EventTimeSessionWindows(_EventTimeSessions):
    """Sessions that end when no record of the key has come for a gap of event time.

    Records exactly one gap apart belong to one session.
    """

    gap_ms: int

    @staticmethod
    def with_gap(size: Interval) -> EventTimeSessionWindows:
        """The same gap after every record; one that is not positive raises `InvalidArgument`."""
        return EventTimeSessionWindows(_gap(size))

    @staticmethod
    def with_dynamic_gap(extractor: Extractor) -> DynamicEventTimeSessionWindows:
        """The extractor returns the gap after each record."""
        return DynamicEventTimeSessionWindows(extractor)

    def gap_of(self, element: object) -> int:
        """The gap after a record."""
        return self.gap_ms


@dataclass(frozen=True, slots=True)
class ProcessingTimeSessionWindows(_ProcessingTimeSessions):
    """Sessions that end when no record of the key has come for a gap of processing time."""

    gap_ms: int

    @staticmethod
    def with_gap(size: Interval) -> ProcessingTimeSessionWindows:
        """The same gap after every record; one that is not positive raises `InvalidArgument`."""
        return ProcessingTimeSessionWindows(_gap(size))

    @staticmethod
    def with_dynamic_gap(extractor: Extractor) -> DynamicProcessingTimeSessionWindows:
        """The extractor returns the gap after each record."""
        return DynamicProcessingTimeSessionWindows(extractor)

    def gap_of(self, element: object) -> int:
        """The gap after a record."""
        return self.gap_ms


@dataclass(frozen=True, slots=True)
class DynamicEventTimeSessionWindows(_EventTimeSessions):
    """Event-time sessions whose gap depends on the record."""

    extractor: Extractor

    @staticmethod
    def with_dynamic_gap(extractor: Extractor) -> DynamicEventTimeSessionWindows:
        """The extractor returns the gap after each record."""
        return DynamicEventTimeSessionWindows(extractor)

    def gap_of(self, element: object) -> int:
        """The gap after a record; raises ValueError for one that is not positive."""
        return _extracted(self.extractor, element)


@dataclass(frozen=True, slots=True)
class DynamicProcessingTimeSessionWindows(_ProcessingTimeSessions):
    """Processing-time sessions whose gap depends on the record."""

    extractor: Extractor

    @staticmethod
    def with_dynamic_gap(extractor: Extractor) -> DynamicProcessingTimeSessionWindows:
        """The extractor returns the gap after each record."""
        return DynamicProcessingTimeSessionWindows(extractor)

    def gap_of(self, element: object) -> int:
        """The gap after a record; raises ValueError for one that is not positive."""
        return _extracted(self.extractor, element)


def _gap(size: Interval) -> int:
    gap_ms = to_ms(size, "the gap of a session")
    check_positive("gap", gap_ms)
    return gap_ms


def _extracted(extractor: Extractor, element: object) -> int:
    call: Any = getattr(extractor, "extract", extractor)
    gap_ms = call(element)
    if gap_ms.__class__ is not int or gap_ms <= 0:
        raise ValueError(
            f"the gap of a session must be a positive number of milliseconds, not {shorten(gap_ms)}"
        )
    return gap_ms
