"""Windows of a number of records, for `count_window()`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from emberflow.state.descriptors import ValueStateDescriptor
from emberflow.windowing.assigners import WindowAssigner, WindowAssignerContext, check_positive
from emberflow.windowing.repeating_triggers import CountTrigger
from emberflow.windowing.triggers import PurgingTrigger, Trigger
from emberflow.windowing.windows import CountWindow

_TUMBLING: ValueStateDescriptor[int] = ValueStateDescriptor("tumble-count-assigner")
_SLIDING: ValueStateDescriptor[int] = ValueStateDescriptor("slide-count-assigner")


@dataclass(frozen=True, slots=True)
class CountTumblingWindowAssigner(WindowAssigner[object, CountWindow]):
    """Each key's records in groups of `window_size`. A group that is not complete at the end of the input is dropped."""

    window_size: int

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        """A size that is not positive raises `InvalidArgument`."""
        check_positive("size", window_size, " records")
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssignerContext
    ) -> Sequence[CountWindow]:
        """The group that the key's next record belongs to."""
        return (CountWindow(_next(context, _TUMBLING) // self.window_size),)

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        """Fires when the group is complete."""
        return PurgingTrigger.of(CountTrigger.of(self.window_size))

    def is_event_time(self) -> bool:
        """False."""
        return False


@dataclass(frozen=True, slots=True)
class CountSlidingWindowAssigner(WindowAssigner[object, CountWindow]):
    """Groups of `window_size` records of a key, one beginning with every `window_slide`-th record."""

    window_size: int
    window_slide: int

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        """A size or slide that is not positive raises `InvalidArgument`."""
        check_positive("size", window_size, " records")
        check_positive("slide", window_slide, " records")
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssignerContext
    ) -> Sequence[CountWindow]:
        """The groups that the key's next record belongs to, latest first."""
        number = _next(context, _SLIDING)
        first = max(0, (number - self.window_size) // self.window_slide + 1)
        return [CountWindow(id) for id in range(number // self.window_slide, first - 1, -1)]

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        """Fires when a group is complete."""
        return PurgingTrigger.of(CountTrigger.of(self.window_size))

    def is_event_time(self) -> bool:
        """False."""
        return False


def _next(context: WindowAssignerContext, descriptor: ValueStateDescriptor[int]) -> int:
    """The number of the key's record, from 0."""
    count = context.get_runtime_context().get_state(descriptor)
    number = count.value() or 0
    count.update(number + 1)
    return number
