"""What a window holds between records: one running value where the function is incremental, else its elements.

`held` is None or empty for a window without contents; otherwise a list, of one item where the function is incremental.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from emberflow.events.copies import UNCHANGEABLE
from emberflow.events.isolation import COPIES, Isolation
from emberflow.plan.window_specs import WindowSpec

Held = list[Any]


class WindowContents(Protocol):
    """How a window's contents grow. `add` and `merge` may change and return what they are given."""

    def add(self, held: Held | None, value: Any) -> Held:
        """The contents with one more value."""
        ...

    def merge(self, held: Held | None, other: Held | None) -> Held:
        """The contents of both."""
        ...

    def result(self, held: Held) -> Iterable[Any]:
        """What the window function is given when the window fires."""
        ...


class ElementContents:
    """Every element is kept."""

    def add(self, held: Held | None, value: Any) -> Held:
        if held is None:
            return [value]
        held.append(value)
        return held

    def merge(self, held: Held | None, other: Held | None) -> Held:
        if not held:
            return other or []
        held.extend(other or ())
        return held

    def result(self, held: Held) -> Iterable[Any]:
        return held


class ReducedContents:
    """One running value."""

    def __init__(self, combine: Callable[[Any, Any], Any]) -> None:
        self._combine = combine
        self._check_first = getattr(combine, "check_first", None)

    def add(self, held: Held | None, value: Any) -> Held:
        if held:
            return [self._combine(held[0], value)]
        if self._check_first is not None:
            self._check_first(value)
        return [value]

    def merge(self, held: Held | None, other: Held | None) -> Held:
        if not held or not other:
            return held or other or []
        return [self._combine(held[0], other[0])]

    def result(self, held: Held) -> Iterable[Any]:
        return held


class AggregatedContents:
    """One running accumulator."""

    def __init__(self, aggregate: Any) -> None:
        self._aggregate = aggregate

    def add(self, held: Held | None, value: Any) -> Held:
        accumulator = held[0] if held else self._aggregate.create_accumulator()
        return [self._aggregate.add(value, accumulator)]

    def merge(self, held: Held | None, other: Held | None) -> Held:
        if not held or not other:
            return held or other or []
        return [self._aggregate.merge(held[0], other[0])]

    def result(self, held: Held) -> Iterable[Any]:
        return [self._aggregate.get_result(held[0])]


def contents_of(spec: WindowSpec) -> WindowContents:
    """How windows of the step hold what they have."""
    if spec.reduce is not None:
        return ReducedContents(spec.reduce)
    if spec.aggregate is not None:
        return AggregatedContents(spec.aggregate)
    return ElementContents()


def own_copy(held: Held, isolation: Isolation = COPIES) -> Held:
    """Contents that a user's function may change without changing `held`; only the list may be, where objects are reused.
    What is merged is always copied: a `merge()` may change its arguments."""
    if len(held) == 1 and held[0].__class__ in UNCHANGEABLE:
        return held
    return list(map(isolation.copied, held))
