"""Triggers that fire a window more than once: every so many records, or in intervals of time."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from emberflow.errors import InvalidArgument
from emberflow.event_time.clock import Interval, to_ms
from emberflow.state.descriptors import ReducingStateDescriptor
from emberflow.windowing.triggers import OnMergeContext, Trigger, TriggerContext, TriggerResult

_CONTINUE, _FIRE = TriggerResult.CONTINUE, TriggerResult.FIRE


def _sum(one: int, other: int) -> int:
    return one + other


_COUNT: ReducingStateDescriptor[int] = ReducingStateDescriptor("count", _sum)
_NEXT_FIRE: ReducingStateDescriptor[int] = ReducingStateDescriptor("fire-time", min)


@dataclass(frozen=True, slots=True)
class CountTrigger(Trigger[object, Any]):
    """Fires for every `max_count` records of a window; not at the window's end."""

    max_count: int

    @staticmethod
    def of(window_size: int) -> CountTrigger:
        """A count below 1 raises `InvalidArgument`."""
        if window_size < 1:
            raise InvalidArgument(f"a CountTrigger needs a count of at least 1, not {window_size}")
        return CountTrigger(window_size)

    def on_element(self, element: object, timestamp: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Counts, and fires when the count is reached."""
        count = ctx.get_partitioned_state(_COUNT)
        if (count.get() or 0) + 1 < self.max_count:
            count.add(1)
            return _CONTINUE
        count.clear()
        return _FIRE

    def on_event_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Does nothing."""
        return _CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Does nothing."""
        return _CONTINUE

    def can_merge(self) -> bool:
        """True."""
        return True

    def on_merge(self, window: Any, ctx: OnMergeContext) -> None:
        """Adds up the counts."""
        ctx.merge_partitioned_state(_COUNT)

    def clear(self, window: Any, ctx: TriggerContext) -> None:
        """Removes the count."""
        ctx.get_partitioned_state(_COUNT).clear()


@dataclass(frozen=True, slots=True)
class IntervalTrigger(Trigger[object, Any]):
    """Fires in intervals of one kind of time, which the subclasses choose; keeps when it fires next as state."""

    interval_ms: int

    @abstractmethod
    def _register(self, time_ms: int, ctx: TriggerContext) -> None: ...

    @abstractmethod
    def _delete(self, time_ms: int, ctx: TriggerContext) -> None: ...

    def can_merge(self) -> bool:
        """True."""
        return True

    def on_merge(self, window: Any, ctx: OnMergeContext) -> None:
        """Continues with the earliest interval of the merged windows."""
        ctx.merge_partitioned_state(_NEXT_FIRE)
        next_ms = ctx.get_partitioned_state(_NEXT_FIRE).get()
        if next_ms is not None:
            self._register(next_ms, ctx)

    def clear(self, window: Any, ctx: TriggerContext) -> None:
        """Removes the timer of the interval."""
        fire = ctx.get_partitioned_state(_NEXT_FIRE)
        next_ms = fire.get()
        if next_ms is not None:
            self._delete(next_ms, ctx)
            fire.clear()

    def _begin(self, time_ms: int, window: Any, ctx: TriggerContext) -> None:
        """Sets the first timer of a window."""
        if ctx.get_partitioned_state(_NEXT_FIRE).get() is None:
            self._register_next(time_ms - time_ms % self.interval_ms, window, ctx)

    def _on_time(self, time_ms: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Fires at the end of an interval, and sets the timer of the next."""
        fire = ctx.get_partitioned_state(_NEXT_FIRE)
        if fire.get() != time_ms:
            return _CONTINUE
        fire.clear()
        self._register_next(time_ms, window, ctx)
        return _FIRE

    def _register_next(self, time_ms: int, window: Any, ctx: TriggerContext) -> None:
        next_ms = min(time_ms + self.interval_ms, window.max_timestamp())
        ctx.get_partitioned_state(_NEXT_FIRE).add(next_ms)
        if next_ms > time_ms:
            # Not once more for the end of the window, which a timer of its own tells.
            self._register(next_ms, ctx)


class ContinuousEventTimeTrigger(IntervalTrigger):
    """Fires in intervals of event time while the window is open, and at its end."""

    __slots__ = ()

    @staticmethod
    def of(interval: Interval) -> ContinuousEventTimeTrigger:
        """An interval that is not positive raises `InvalidArgument`."""
        return ContinuousEventTimeTrigger(_interval(interval))

    def on_element(self, element: object, timestamp: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Fires for a late record; otherwise sets the timers."""
        if window.max_timestamp() <= ctx.get_current_watermark():
            return _FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        self._begin(timestamp, window, ctx)
        return _CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Fires at the end of the window and of each interval."""
        return _FIRE if time == window.max_timestamp() else self._on_time(time, window, ctx)

    def on_processing_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Does nothing."""
        return _CONTINUE

    def clear(self, window: Any, ctx: TriggerContext) -> None:
        """Removes the timers."""
        super().clear(window, ctx)
        ctx.delete_event_time_timer(window.max_timestamp())

    def _register(self, time_ms: int, ctx: TriggerContext) -> None:
        ctx.register_event_time_timer(time_ms)

    def _delete(self, time_ms: int, ctx: TriggerContext) -> None:
        ctx.delete_event_time_timer(time_ms)


class ContinuousProcessingTimeTrigger(IntervalTrigger):
    """Fires in intervals of processing time while the window is open."""

    __slots__ = ()

    @staticmethod
    def of(interval: Interval) -> ContinuousProcessingTimeTrigger:
        """An interval that is not positive raises `InvalidArgument`."""
        return ContinuousProcessingTimeTrigger(_interval(interval))

    def on_element(self, element: object, timestamp: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Sets the timer."""
        self._begin(ctx.get_current_processing_time(), window, ctx)
        return _CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Does nothing."""
        return _CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Fires at the end of each interval."""
        return self._on_time(time, window, ctx)

    def _register(self, time_ms: int, ctx: TriggerContext) -> None:
        ctx.register_processing_time_timer(time_ms)

    def _delete(self, time_ms: int, ctx: TriggerContext) -> None:
        ctx.delete_processing_time_timer(time_ms)


def _interval(interval: Interval) -> int:
    interval_ms = to_ms(interval, "interval")
    if interval_ms <= 0:
        raise InvalidArgument(f"a trigger's interval must be positive, got {interval_ms} ms")
    return interval_ms
