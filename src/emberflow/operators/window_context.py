"""The context of a `ProcessWindowFunction`."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from emberflow.event_time.windows import TimeWindow
from emberflow.operators.keyed import KeyedOperator

W = TypeVar("W")


class WindowContext(Generic[W]):
    """`window()`, and the times a window function may ask for."""

    __slots__ = ("_operator", "_window")

    def __init__(self, window: TimeWindow, operator: KeyedOperator) -> None:
        self._window = window
        self._operator = operator

    def window(self) -> Any:
        return self._window

    def current_watermark(self) -> int:
        return self._operator.scope.watermark

    def current_processing_time(self) -> int:
        return self._operator.scope.clock.now_ms()
