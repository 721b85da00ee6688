"""What triggers, assigners and evictors are handed."""

from __future__ import annotations

from typing import Any

from emberflow.errors import InvalidArgument
from emberflow.operators.contexts import TimeDomain
from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.windows.window_context import TRIGGER_STATE, WindowStateStore
from emberflow.operators.windows.window_timers import WindowTimers
from emberflow.state.descriptors import StateDescriptor, ValueStateDescriptor


class Times:
    """The two clocks of a step."""

    def __init__(self, operator: KeyedOperator) -> None:
        self._operator = operator

    def get_current_processing_time(self) -> int:
        return self._operator.scope.clock.now_ms()

    def get_current_watermark(self) -> int:
        return self._operator.scope.watermark


class AssignerContext(Times):
    """For `WindowAssigner.assign_windows`."""

    runtime_context: Any = None

    def get_runtime_context(self) -> Any:
        return self.runtime_context


class OperatorTriggerContext(Times):
    """For a trigger's methods; `window` and `merged` are set before each call."""

    def __init__(self, operator: KeyedOperator, timers: WindowTimers) -> None:
        super().__init__(operator)
        self.runtime_context: Any = None
        self.states = WindowStateStore(operator.cursor, TRIGGER_STATE)
        self.window: Any = None
        self.merged: list[Any] = []
        """Windows that were merged into `window`."""
        self._timers = timers

    def register_processing_time_timer(self, time: int) -> None:
        self._timers.register(TimeDomain.PROCESSING_TIME, time, self.window)

    def register_event_time_timer(self, time: int) -> None:
        self._timers.register(TimeDomain.EVENT_TIME, time, self.window)

    def delete_processing_time_timer(self, time: int) -> None:
        self._timers.delete(TimeDomain.PROCESSING_TIME, time, self.window)

    def delete_event_time_timer(self, time: int) -> None:
        self._timers.delete(TimeDomain.EVENT_TIME, time, self.window)

    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
        return self.states.handle(state_descriptor, self.window)

    def get_metric_group(self) -> Any:
        return self.runtime_context.get_metrics_group()

    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        kind = state_descriptor.kind
        if kind not in ("list", "reducing", "aggregating"):
            raise InvalidArgument(
                f"the state {state_descriptor.name!r} of a trigger cannot be merged",
                way_out="use list, reducing or aggregating state, or merge it in on_merge() yourself",
            )
        into = self.get_partitioned_state(state_descriptor)
        for window in self.merged:
            found = self.states.handle(state_descriptor, window)
            if kind == "list":
                into.add_all(list(found.get()))
            elif kind == "aggregating":
                self._merge_accumulators(state_descriptor, window)
            elif (value := found.get()) is not None:
                into.add(value)
            found.clear()

    def _merge_accumulators(self, descriptor: Any, window: Any) -> None:
        raw: ValueStateDescriptor[Any] = ValueStateDescriptor(descriptor.name)
        raw.ttl = descriptor.ttl
        into, other = self.get_partitioned_state(raw), self.states.handle(raw, window).value()
        one = into.value()
        if one is not None and other is not None:
            into.update(descriptor.aggregate.merge(one, other))
        elif other is not None:
            into.update(other)
