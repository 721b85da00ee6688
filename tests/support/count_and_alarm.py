"""A keyed function with list state, value state and timers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from emberflow.streams import (
    KeyedProcessFunction,
    ListStateDescriptor,
    RuntimeContext,
    ValueStateDescriptor,
)


def first(value: Any) -> Any:
    return value[0]


class CountAndAlarm(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._seen = runtime_context.get_list_state(ListStateDescriptor("seen"))
        self._total = runtime_context.get_state(ValueStateDescriptor("total"))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self._seen.add(value[1])
        self._total.update((self._total.value() or 0) + value[1])
        ctx.timer_service().register_event_time_timer(value[1] + 3)
        yield value[0], "total", self._total.value()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield ctx.get_current_key(), "timer", timestamp, list(self._seen.get())
        self._seen.clear()
