"""State handles: what `ctx.get_state(...)` returns. All of them read and write the current key's entry.

A handle with a time to live (`ttl_handles.py`) stores (value, refreshed at) pairs in the entry; one without stores plain
values. Large lists and maps are paged when their entry is stored (`entry.py`); handles use both forms alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from emberflow.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
)
from emberflow.state.entry import PAGED, Cursor

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class _Handle:
    __slots__ = ("_cursor", "_name")

    def __init__(self, name: str, cursor: Cursor) -> None:
        self._name = name
        self._cursor = cursor

    def clear(self) -> None:
        """Removes the current key's value."""
        entry = self._cursor.entry
        value = entry.pop(self._name, None)
        if value is not None:
            entry.dirty = True
            if value.__class__ in PAGED:
                self._cursor.dropped.append(value)


class ValueState(_Handle, Generic[T]):
    """One value per key; None if there is none."""

    __slots__ = ()

    def value(self) -> T | None:
        """The current key's value."""
        return self._cursor.entry.get(self._name)

    def update(self, value: T | None) -> None:
        """Replaces the current key's value; None removes it."""
        if value is None:
            self.clear()
            return
        entry = self._cursor.entry
        entry[self._name] = value
        entry.dirty = True


class ListState(_Handle, Generic[T]):
    """A list per key."""

    __slots__ = ()

    def get(self) -> Iterable[T]:
        """The current key's elements, as a copy."""
        return list(self._cursor.entry.get(self._name, ()))

    def add(self, value: T) -> None:
        """Appends an element."""
        entry = self._cursor.entry
        items = entry.get(self._name)
        if items is None:
            entry[self._name] = [value]
        else:
            items.append(value)
        entry.dirty = True

    def add_all(self, values: Iterable[T]) -> None:
        """Appends elements."""
        for value in values:
            self.add(value)

    def update(self, values: Iterable[T]) -> None:
        """Replaces the list."""
        items = list(values)
        self.clear()
        self.add_all(items)

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class MapState(_Handle, Generic[K, V]):
    """A dictionary per key."""

    __slots__ = ()

    def _map(self) -> dict[Any, Any]:
        return self._cursor.entry.get(self._name) or {}

    def get(self, key: K) -> V | None:
        """The value of `key`; None if there is none."""
        return self._map().get(key)

    def put(self, key: K, value: V) -> None:
        """Stores a value for `key`."""
        entry = self._cursor.entry
        items = entry.get(self._name)
        if items is None:
            entry[self._name] = {key: value}
        else:
            items[key] = value
        entry.dirty = True

    def put_all(self, dict_value: dict[K, V] | Iterable[tuple[K, V]]) -> None:
        """Stores several values."""
        for key, value in dict(dict_value).items():
            self.put(key, value)

    def remove(self, key: K) -> None:
        """Removes the value of `key`, if there is one."""
        items = self._map()
        if key in items:
            del items[key]
            self._cursor.entry.dirty = True
            if not items:
                self.clear()

    def contains(self, key: K) -> bool:
        """Whether there is a value for `key`."""
        return key in self._map()

    def items(self) -> Iterable[tuple[K, V]]:
        """Keys and values, as a copy."""
        return list(self._map().items())

    def keys(self) -> Iterable[K]:
        """The keys, as a copy."""
        return list(self._map())

    def values(self) -> Iterable[V]:
        """The values, as a copy."""
        return list(self._map().values())

    def is_empty(self) -> bool:
        """Whether there are no values."""
        return not self._map()

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class ReducingState(Generic[T]):
    """A running value per key, combined with the descriptor's function."""

    __slots__ = ("_reduce", "_value")

    def __init__(self, descriptor: ReducingStateDescriptor[T], value: ValueState[T]) -> None:
        self._reduce = descriptor.reduce
        self._value = value

    def get(self) -> T | None:
        """The running value; None before the first."""
        return self._value.value()

    def add(self, value: T) -> None:
        """Combines a value with the current key's."""
        seen = self._value.value()
        self._value.update(value if seen is None else self._reduce(seen, value))

    def clear(self) -> None:
        """Starts over for the current key."""
        self._value.clear()


class AggregatingState(Generic[T, V]):
    """A running accumulator per key; `get` returns the aggregate's result."""

    __slots__ = ("_aggregate", "_value")

    def __init__(self, descriptor: AggregatingStateDescriptor[T, Any, V], value: ValueState[Any]) -> None:
        self._aggregate = descriptor.aggregate
        self._value = value

    def get(self) -> V | None:
        """The aggregate's result; None before the first value."""
        seen = self._value.value()
        return None if seen is None else self._aggregate.get_result(seen)

    def add(self, value: T) -> None:
        """Combines a value with the current key's."""
        seen = self._value.value()
        accumulator = self._aggregate.create_accumulator() if seen is None else seen
        self._value.update(self._aggregate.add(value, accumulator))

    def clear(self) -> None:
        """Starts over for the current key."""
        self._value.clear()


def make_handle(descriptor: StateDescriptor, cursor: Cursor, *, lasting: bool = True) -> Any:
    """The handle for a descriptor, bound to an operator's cursor. State that is not `lasting` has a name of its own for each
    window, so the cursor does not remember it: it is neither paged nor cleaned up in the background."""
    from emberflow.state import typed_handles  # It extends the handles of this module.

    return typed_handles.typed(_untyped_handle(descriptor, cursor, lasting=lasting), descriptor)


def _untyped_handle(descriptor: StateDescriptor, cursor: Cursor, *, lasting: bool) -> Any:
    from emberflow.state import ttl_handles  # As above.

    name, ttl = descriptor.name, descriptor.ttl
    given: Any = descriptor
    is_list, is_map = isinstance(given, ListStateDescriptor), isinstance(given, MapStateDescriptor)
    if lasting:
        cursor.forms.declare(name, given)
        if is_list or is_map:
            cursor.pageable.add(name)
    if ttl is not None:
        made: Any = ttl_handles.make_handle(given, cursor, ttl, lasting=lasting)
    else:
        kind: Any = ListState if is_list else MapState if is_map else ValueState
        made = kind(name, cursor)
    if isinstance(descriptor, ReducingStateDescriptor):
        return ReducingState[Any](given, made)
    if isinstance(descriptor, AggregatingStateDescriptor):
        return AggregatingState[Any, Any](given, made)
    return made
