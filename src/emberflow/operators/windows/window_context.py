"""The context of a `ProcessWindowFunction`."""

from __future__ import annotations

from typing import Generic, TypeVar

from emberflow.operators.keyed import KeyedOperator

W = TypeVar("W", covariant=True)


class WindowContext(Generic[W]):
    """`window()`, and the times a window function may ask for."""

    __slots__ = ("_operator", "_window")

    def __init__(self, window: W, operator: KeyedOperator) -> None:
        self._window = window
        self._operator = operator

    def window(self) -> W:
        """The window that fired."""
        return self._window

    def current_watermark(self) -> int:
        """How far event time has come, in milliseconds since the epoch."""
        return self._operator.scope.watermark

    def current_processing_time(self) -> int:
        """Milliseconds since the epoch."""
        return self._operator.scope.clock.now_ms()
