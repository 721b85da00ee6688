"""Windows with an evictor: all elements are kept, and the function sees those that the evictor leaves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.windows.contents import ElementContents, Held, WindowContents
from emberflow.operators.windows.trigger_context import Times
from emberflow.windowing.evictors import Evictor, TimestampedValue


class Eviction:
    """Calls the evictor around a window function; `contents` is how the function sees elements. A window holds
    (value, timestamp) pairs."""

    def __init__(self, evictor: Evictor[Any, Any], contents: WindowContents, operator: KeyedOperator) -> None:
        self._evictor = evictor
        self._contents = contents
        self._context = Times(operator)
        self._operator = operator

    def before(self, window: Any, held: Held) -> tuple[Iterable[Any], list[TimestampedValue[Any]]]:
        """What the window function is given, and the elements behind it, which stay as they are if it changes its own."""
        copied = self._operator.isolation.copied
        elements = [TimestampedValue(*item) for item in held]
        self._evictor.evict_before(elements, len(elements), window, self._context)
        if isinstance(self._contents, ElementContents):
            return [copied(item.value) for item in elements], elements
        reduced: Held | None = None
        for item in elements:
            reduced = self._contents.add(reduced, copied(item.value))
        return (self._contents.result(reduced) if reduced else []), elements

    def after(self, window: Any, elements: list[TimestampedValue[Any]]) -> Held:
        """What stays in the window."""
        self._evictor.evict_after(elements, len(elements), window, self._context)
        return [(item.value, item.timestamp) for item in elements]
