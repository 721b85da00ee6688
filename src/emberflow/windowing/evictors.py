"""Evictors: which elements of a window are removed before, or after, the window function is called.

A window with an evictor keeps all of its elements, even where the function is incremental.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from emberflow.errors import InvalidArgument
from emberflow.event_time.clock import Interval, to_ms

T = TypeVar("T")
W = TypeVar("W", contravariant=True)


class TimestampedValue(NamedTuple, Generic[T]):
    """An element of a window; `timestamp` is None if the record had none."""

    value: T
    timestamp: int | None

    def get_value(self) -> T:
        """The record."""
        return self.value

    def get_timestamp(self) -> int | None:
        """Its event time in milliseconds."""
        return self.timestamp

    def has_timestamp(self) -> bool:
        """Whether it has event time."""
        return self.timestamp is not None


class EvictorContext(Protocol):
    """The times an evictor may ask for."""

    def get_current_processing_time(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def get_current_watermark(self) -> int:
        """How far event time has come, in milliseconds since the epoch."""
        ...


class Evictor(ABC, Generic[T, W]):
    """Removes elements from a window that fires; given to `WindowedStream.evictor()`.

    Evictors of your own override one or both methods and remove what they want from the list they are given.
    """

    EvictorContext = EvictorContext

    def evict_before(
        self, elements: list[TimestampedValue[T]], size: int, window: W, evictor_context: EvictorContext
    ) -> None:
        """Called before the window function: changes `elements`, which are in order of arrival."""

    def evict_after(
        self, elements: list[TimestampedValue[T]], size: int, window: W, evictor_context: EvictorContext
    ) -> None:
        """The same after the window function; what is left stays in the window."""


class OneSidedEvictor(Evictor[Any, object]):
    """Removes the same elements before the window function, or after it if `do_evict_after` is true."""

    do_evict_after: bool

    def evict_before(
        self, elements: list[Any], size: int, window: object, evictor_context: EvictorContext
    ) -> None:
        """Removes elements, unless that is done after the function."""
        if not self.do_evict_after:
            self._evict(elements)

    def evict_after(
        self, elements: list[Any], size: int, window: object, evictor_context: EvictorContext
    ) -> None:
        """Removes elements, if that is not done before the function."""
        if self.do_evict_after:
            self._evict(elements)

    @abstractmethod
    def _evict(self, elements: list[Any]) -> None: ...


@dataclass(frozen=True, slots=True)
class CountEvictor(OneSidedEvictor):
    """Keeps the last `max_count` elements."""

    max_count: int
    do_evict_after: bool = False

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor:
        """A negative count raises `InvalidArgument`."""
        if max_count < 0:
            raise InvalidArgument(f"a CountEvictor needs a count of at least 0, not {max_count}")
        return CountEvictor(max_count, do_evict_after)

    def _evict(self, elements: list[Any]) -> None:
        del elements[: max(0, len(elements) - self.max_count)]


@dataclass(frozen=True, slots=True)
class TimeEvictor(OneSidedEvictor):
    """Keeps the elements whose timestamps are less than `window_size` older than the newest one's."""

    window_size_ms: int
    do_evict_after: bool = False

    @staticmethod
    def of(window_size: Interval, do_evict_after: bool = False) -> TimeEvictor:
        """A size that is not positive raises `InvalidArgument`."""
        size_ms = to_ms(window_size, "window_size")
        if size_ms <= 0:
            raise InvalidArgument(f"a TimeEvictor needs a positive size, not {size_ms} ms")
        return TimeEvictor(size_ms, do_evict_after)

    def _evict(self, elements: list[TimestampedValue[Any]]) -> None:
        if not elements or elements[0].timestamp is None:
            return
        stamps = [item.timestamp for item in elements if item.timestamp is not None]
        oldest = max(stamps) - self.window_size_ms
        elements[:] = [item for item in elements if item.timestamp is None or item.timestamp > oldest]
