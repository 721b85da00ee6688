"""Triggers: when a window's contents are given to the window function.

A trigger keeps nothing in `self`: one object serves all keys and windows. What it has to remember it keeps in
`ctx.get_partitioned_state(...)`, which belongs to the key and window at hand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from emberflow.errors import InvalidArgument
from emberflow.state.descriptors import StateDescriptor

T = TypeVar("T", contravariant=True)
W = TypeVar("W", contravariant=True)


class TriggerResult(Enum):
    """What happens to a window: its function is called (fire), its contents are removed (purge), both or neither."""

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Whether the window function is called."""
        return self.value[0]

    def is_purge(self) -> bool:
        """Whether the contents are removed."""
        return self.value[1]


class TriggerContext(Protocol):
    """Times, timers and state of one window of one key."""

    def get_current_processing_time(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def get_current_watermark(self) -> int:
        """How far event time has come, in milliseconds since the epoch."""
        ...

    def register_processing_time_timer(self, time: int) -> None:
        """Calls `on_processing_time` for the window at this time."""
        ...

    def register_event_time_timer(self, time: int) -> None:
        """Calls `on_event_time` for the window when the watermark reaches this time."""
        ...

    def delete_processing_time_timer(self, time: int) -> None:
        """Removes the window's timer for this time, if there is one."""
        ...

    def delete_event_time_timer(self, time: int) -> None:
        """Removes the window's timer for this time, if there is one."""
        ...

    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
        """State of the trigger for this window."""
        ...

    def get_metric_group(self) -> Any:
        """The metric group of the step."""
        ...


class OnMergeContext(TriggerContext, Protocol):
    """As `TriggerContext`, for the window that others were merged into."""

    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        """Moves the state of the merged windows into that of the new one: list, reducing and aggregating state."""
        ...


class Trigger(ABC, Generic[T, W]):
    """Decides when windows fire; given to `WindowedStream.trigger()`.

    Timers that a trigger registers and state that it keeps should be removed in `clear`.
    """

    TriggerContext = TriggerContext
    OnMergeContext = OnMergeContext

    @abstractmethod
    def on_element(self, element: T, timestamp: int, window: W, ctx: TriggerContext) -> TriggerResult:
        """Called for every record, after it was added to the window. `timestamp` is -2**63 if it has none."""

    @abstractmethod
    def on_processing_time(self, time: int, window: W, ctx: TriggerContext) -> TriggerResult:
        """Called when a processing-time timer of the window is due."""

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: TriggerContext) -> TriggerResult:
        """Called when an event-time timer of the window is due."""

    def can_merge(self) -> bool:
        """Whether the trigger overrides `on_merge` and may be used with windows that merge."""
        return False

    def on_merge(self, window: W, ctx: OnMergeContext) -> None:
        """Called when windows have been merged into `window`; `clear` is called for each of them afterwards."""
        raise InvalidArgument(
            f"{type(self).__name__} does not support windows that merge",
            way_out="override can_merge() and on_merge()",
        )

    def clear(self, window: W, ctx: TriggerContext) -> None:
        """Called when the window is removed: delete timers and state."""


_CONTINUE, _FIRE = TriggerResult.CONTINUE, TriggerResult.FIRE


@dataclass(frozen=True, slots=True)
class EventTimeTrigger(Trigger[object, Any]):
    """Fires when the watermark passes the end of the window; then again for every late record that is allowed."""

    @staticmethod
    def create() -> EventTimeTrigger:
        """The trigger."""
        return EventTimeTrigger()

    def on_element(self, element: object, timestamp: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Fires for a late record."""
        last_ms = window.max_timestamp()
        if last_ms <= ctx.get_current_watermark():
            return _FIRE
        ctx.register_event_time_timer(last_ms)
        return _CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Fires at the end of the window."""
        return _FIRE if time == window.max_timestamp() else _CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Does nothing."""
        return _CONTINUE

    def can_merge(self) -> bool:
        """True."""
        return True

    def on_merge(self, window: Any, ctx: OnMergeContext) -> None:
        """Sets the timer for the end of the new window."""
        last_ms = window.max_timestamp()
        if last_ms > ctx.get_current_watermark():
            ctx.register_event_time_timer(last_ms)

    def clear(self, window: Any, ctx: TriggerContext) -> None:
        """Removes the timer."""
        ctx.delete_event_time_timer(window.max_timestamp())


@dataclass(frozen=True, slots=True)
class ProcessingTimeTrigger(Trigger[object, Any]):
    """Fires when processing time passes the end of the window."""

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        """The trigger."""
        return ProcessingTimeTrigger()

    def on_element(self, element: object, timestamp: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Sets the timer for the end of the window."""
        ctx.register_processing_time_timer(window.max_timestamp())
        return _CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Does nothing."""
        return _CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Fires."""
        return _FIRE

    def can_merge(self) -> bool:
        """True."""
        return True

    def on_merge(self, window: Any, ctx: OnMergeContext) -> None:
        """Sets the timer for the end of the new window."""
        last_ms = window.max_timestamp()
        if last_ms > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(last_ms)

    def clear(self, window: Any, ctx: TriggerContext) -> None:
        """Removes the timer."""
        ctx.delete_processing_time_timer(window.max_timestamp())


@dataclass(frozen=True, slots=True)
class NeverTrigger(Trigger[object, Any]):
    """Never fires; the default of `GlobalWindows`."""

    def on_element(self, element: object, timestamp: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Does nothing."""
        return _CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Does nothing."""
        return _CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Does nothing."""
        return _CONTINUE

    def on_merge(self, window: Any, ctx: OnMergeContext) -> None:
        """Does nothing."""


@dataclass(frozen=True, slots=True)
class PurgingTrigger(Trigger[object, Any]):
    """Wherever another trigger fires, also removes the contents of the window."""

    nested_trigger: Trigger[Any, Any]

    @staticmethod
    def of(nested_trigger: Trigger[Any, Any]) -> PurgingTrigger:
        """Wraps a trigger."""
        return PurgingTrigger(nested_trigger)

    def on_element(self, element: object, timestamp: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """As the nested trigger, and purges."""
        return _purging(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_event_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """As the nested trigger, and purges."""
        return _purging(self.nested_trigger.on_event_time(time, window, ctx))

    def on_processing_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """As the nested trigger, and purges."""
        return _purging(self.nested_trigger.on_processing_time(time, window, ctx))

    def can_merge(self) -> bool:
        """As the nested trigger."""
        return self.nested_trigger.can_merge()

    def on_merge(self, window: Any, ctx: OnMergeContext) -> None:
        """As the nested trigger."""
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: Any, ctx: TriggerContext) -> None:
        """As the nested trigger."""
        self.nested_trigger.clear(window, ctx)


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result.is_fire() else result
