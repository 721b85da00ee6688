"""Window assigners: which windows a record belongs to. Windows of time are aligned to the epoch plus an offset."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from emberflow.errors import InvalidArgument
from emberflow.event_time.clock import Interval, to_ms
from emberflow.windowing.triggers import EventTimeTrigger, NeverTrigger, ProcessingTimeTrigger, Trigger
from emberflow.windowing.windows import GlobalWindow, TimeWindow

T = TypeVar("T", contravariant=True)
W = TypeVar("W", covariant=True)
W2 = TypeVar("W2")
W3 = TypeVar("W3", contravariant=True)


class WindowAssignerContext(Protocol):
    """What an assigner may ask for."""

    def get_current_processing_time(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def get_runtime_context(self) -> Any:
        """The step's runtime context; its state belongs to the record's key."""
        ...


class WindowAssigner(ABC, Generic[T, W]):
    """Assigns windows to records; given to `KeyedStream.window()`.

    Assigners of your own override `assign_windows`, `get_default_trigger` and `is_event_time`.
    """

    WindowAssignerContext = WindowAssignerContext

    @abstractmethod
    def assign_windows(self, element: T, timestamp: int, context: WindowAssignerContext) -> Collection[W]:
        """The windows of a record. `timestamp` is -2**63 for a record without event time."""

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        """The trigger of these windows where `trigger()` is not called."""

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether windows end by event time; if not, they end by processing time."""

    def get_window_serializer(self) -> Any:
        """Not called: windows are pickled. Here because assigners written for PyFlink override it."""
        return None


class MergeCallback(Protocol[W3]):
    """What `merge_windows` reports to."""

    def merge(self, to_be_merged: Iterable[W3], merge_result: W3) -> None:
        """These windows become one."""
        ...


class MergingWindowAssigner(WindowAssigner[T, W2]):
    """Windows that may become one as records arrive, such as sessions."""

    MergeCallback = MergeCallback

    @abstractmethod
    def merge_windows(self, windows: Iterable[W2], callback: MergeCallback[W2]) -> None:
        """Calls `callback.merge(windows, result)` for each group of windows that become one."""


@dataclass(frozen=True, slots=True)
class TumblingEventTimeWindows(WindowAssigner[object, TimeWindow]):
    """Windows of one size that follow each other without gaps; every record is in exactly one."""

    size_ms: int
    offset_ms: int = 0

    @staticmethod
    def of(size: Interval, offset: Interval | None = 0) -> TumblingEventTimeWindows:
        """Aligned to the epoch plus `offset`; a size that is not positive, or a larger offset, raises `InvalidArgument`."""
        return TumblingEventTimeWindows(*_tumbling(size, offset))

    def assign(self, timestamp: int) -> Sequence[TimeWindow]:
        """The window of a record with this timestamp."""
        start = timestamp - (timestamp - self.offset_ms) % self.size_ms
        return (TimeWindow(start, start + self.size_ms),)

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssignerContext
    ) -> Sequence[TimeWindow]:
        """The window that covers the timestamp."""
        return self.assign(timestamp)

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        """Fires when the watermark passes the end."""
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        """True."""
        return True


@dataclass(frozen=True, slots=True)
class TumblingProcessingTimeWindows(WindowAssigner[object, TimeWindow]):
    """As `TumblingEventTimeWindows`, by the time at which a record is processed."""

    size_ms: int
    offset_ms: int = 0

    @staticmethod
    def of(size: Interval, offset: Interval | None = 0) -> TumblingProcessingTimeWindows:
        """Aligned to the epoch plus `offset`; raises as `TumblingEventTimeWindows.of`."""
        return TumblingProcessingTimeWindows(*_tumbling(size, offset))

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssignerContext
    ) -> Sequence[TimeWindow]:
        """The window that covers the current processing time."""
        now_ms = context.get_current_processing_time()
        start = now_ms - (now_ms - self.offset_ms) % self.size_ms
        return (TimeWindow(start, start + self.size_ms),)

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        """Fires when processing time passes the end."""
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        """False."""
        return False


@dataclass(frozen=True, slots=True)
class SlidingEventTimeWindows(WindowAssigner[object, TimeWindow]):
    """Windows of one size that start every `slide`; a record is in each window that covers its timestamp."""

    size_ms: int
    slide_ms: int
    offset_ms: int = 0

    @staticmethod
    def of(size: Interval, slide: Interval, offset: Interval | None = 0) -> SlidingEventTimeWindows:
        """Aligned to the epoch plus `offset`; a size or slide that is not positive raises `InvalidArgument`."""
        return SlidingEventTimeWindows(*_sliding(size, slide, offset))

    def assign(self, timestamp: int) -> Sequence[TimeWindow]:
        """The windows of a record with this timestamp, latest first."""
        return _covering(timestamp, self.size_ms, self.slide_ms, self.offset_ms)

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssignerContext
    ) -> Sequence[TimeWindow]:
        """The windows that cover the timestamp, latest first."""
        return _covering(timestamp, self.size_ms, self.slide_ms, self.offset_ms)

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        """Fires when the watermark passes the end."""
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        """True."""
        return True


@dataclass(frozen=True, slots=True)
class SlidingProcessingTimeWindows(WindowAssigner[object, TimeWindow]):
    """As `SlidingEventTimeWindows`, by the time at which a record is processed."""

    size_ms: int
    slide_ms: int
    offset_ms: int = 0

    @staticmethod
    def of(size: Interval, slide: Interval, offset: Interval | None = 0) -> SlidingProcessingTimeWindows:
        """Aligned to the epoch plus `offset`; raises as `SlidingEventTimeWindows.of`."""
        return SlidingProcessingTimeWindows(*_sliding(size, slide, offset))

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssignerContext
    ) -> Sequence[TimeWindow]:
        """The windows that cover the current processing time, latest first."""
        now_ms = context.get_current_processing_time()
        return _covering(now_ms, self.size_ms, self.slide_ms, self.offset_ms)

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        """Fires when processing time passes the end."""
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        """False."""
        return False


@dataclass(frozen=True, slots=True)
class GlobalWindows(WindowAssigner[object, GlobalWindow]):
    """One window for all records of a key. It never ends, so it needs a `trigger()`."""

    @staticmethod
    def create() -> GlobalWindows:
        """The assigner."""
        return GlobalWindows()

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssignerContext
    ) -> Sequence[GlobalWindow]:
        """The one window."""
        return (GlobalWindow(),)

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        """Never fires."""
        return NeverTrigger()

    def is_event_time(self) -> bool:
        """False."""
        return False


def _covering(time_ms: int, size_ms: int, slide_ms: int, offset_ms: int) -> list[TimeWindow]:
    last = time_ms - (time_ms - offset_ms) % slide_ms
    return [TimeWindow(start, start + size_ms) for start in range(last, time_ms - size_ms, -slide_ms)]


def _tumbling(size: Interval, offset: Interval | None) -> tuple[int, int]:
    size_ms, offset_ms = to_ms(size, "size"), to_ms(offset or 0, "offset")
    check_positive("size", size_ms)
    if abs(offset_ms) >= size_ms:
        raise InvalidArgument(f"the offset ({offset_ms} ms) must be smaller than the window ({size_ms} ms)")
    return size_ms, offset_ms


def _sliding(size: Interval, slide: Interval, offset: Interval | None) -> tuple[int, int, int]:
    size_ms, slide_ms = to_ms(size, "size"), to_ms(slide, "slide")
    offset_ms = to_ms(offset or 0, "offset")
    check_positive("size", size_ms)
    check_positive("slide", slide_ms)
    if abs(offset_ms) >= slide_ms:
        raise InvalidArgument(f"the offset ({offset_ms} ms) must be smaller than the slide ({slide_ms} ms)")
    return size_ms, slide_ms, offset_ms


def check_positive(name: str, value: int, unit: str = " ms") -> None:
    if value <= 0:
        raise InvalidArgument(f"a window's {name} must be positive, got {value}{unit}")
