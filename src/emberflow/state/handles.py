"""State handles: what `ctx.get_state(...)` returns. All of them read and write the current key's entry.

A handle with a time to live stores (value, refreshed at) pairs in the entry; one without stores plain values.
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
    StateTtlConfig,
    StateVisibility,
    UpdateType,
)
from emberflow.state.entry import Cursor

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
        if entry.pop(self._name, None) is not None:
            entry.dirty = True


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
        self.clear()
        self.add_all(values)

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

    def put_all(self, mapping: dict[K, V] | Iterable[tuple[K, V]]) -> None:
        """Stores several values."""
        for key, value in dict(mapping).items():
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


class _Ttl:
    """Decides when a value has expired."""

    __slots__ = ("_cursor", "_hide", "_on_read", "_ttl_ms")

    def __init__(self, config: StateTtlConfig, cursor: Cursor) -> None:
        self._ttl_ms = config.ttl_ms
        self._on_read = config.update_type is UpdateType.ON_READ_AND_WRITE
        self._hide = config.visibility is StateVisibility.NEVER_RETURN_EXPIRED
        self._cursor = cursor

    def wrap(self, value: Any) -> tuple[Any, int]:
        return (value, self._cursor.clock.now_ms())

    def expired(self, cell: tuple[Any, int]) -> bool:
        return self._cursor.clock.now_ms() - cell[1] >= self._ttl_ms

    def visible(self, cell: tuple[Any, int]) -> bool:
        return not (self._hide and self.expired(cell))

    def refresh(self, cell: tuple[Any, int]) -> tuple[Any, int] | None:
        """A newer cell if reading refreshes it, otherwise None."""
        return (cell[0], self._cursor.clock.now_ms()) if self._on_read and not self.expired(cell) else None


class TtlValueState(ValueState[T]):
    __slots__ = ("_ttl",)

    def __init__(self, name: str, cursor: Cursor, config: StateTtlConfig) -> None:
        super().__init__(name, cursor)
        self._ttl = _Ttl(config, cursor)

    def value(self) -> T | None:
        cell: Any = super().value()
        if cell is None:
            return None
        visible = self._ttl.visible(cell)
        if self._ttl.expired(cell):
            self.clear()
        else:
            fresh = self._ttl.refresh(cell)
            if fresh is not None:
                super().update(fresh)  # pyright: ignore[reportArgumentType]
        return cell[0] if visible else None

    def update(self, value: T | None) -> None:
        super().update(None if value is None else self._ttl.wrap(value))  # pyright: ignore[reportArgumentType]


class TtlListState(ListState[T]):
    """Every element has its own time to live."""

    __slots__ = ("_ttl",)

    def __init__(self, name: str, cursor: Cursor, config: StateTtlConfig) -> None:
        super().__init__(name, cursor)
        self._ttl = _Ttl(config, cursor)

    def get(self) -> Iterable[T]:
        cells: list[Any] = list(super().get())
        shown = [cell[0] for cell in cells if self._ttl.visible(cell)]
        kept = [self._ttl.refresh(cell) or cell for cell in cells if not self._ttl.expired(cell)]
        if kept != cells:
            self.clear()
            for cell in kept:
                super().add(cell)  # pyright: ignore[reportArgumentType]
        return shown

    def add(self, value: T) -> None:
        super().add(self._ttl.wrap(value))  # pyright: ignore[reportArgumentType]


class TtlMapState(MapState[K, V]):
    """Every entry has its own time to live."""

    __slots__ = ("_ttl",)

    def __init__(self, name: str, cursor: Cursor, config: StateTtlConfig) -> None:
        super().__init__(name, cursor)
        self._ttl = _Ttl(config, cursor)

    def _map(self) -> dict[Any, Any]:
        cells: dict[Any, Any] = self._cursor.entry.get(self._name) or {}
        dead = [key for key, cell in cells.items() if self._ttl.expired(cell)]
        shown = {key: cell[0] for key, cell in cells.items() if self._ttl.visible(cell)}
        for key in dead:
            self.remove(key)
        return shown

    def get(self, key: K) -> V | None:
        cell = super()._map().get(key)
        if cell is None:
            return None
        visible = self._ttl.visible(cell)
        if self._ttl.expired(cell):
            self.remove(key)
        else:
            fresh = self._ttl.refresh(cell)
            if fresh is not None:
                super().put(key, fresh)  # pyright: ignore[reportArgumentType]
        return cell[0] if visible else None

    def put(self, key: K, value: V) -> None:
        super().put(key, self._ttl.wrap(value))  # pyright: ignore[reportArgumentType]

    def remove(self, key: K) -> None:
        cells: dict[Any, Any] = self._cursor.entry.get(self._name) or {}
        if cells.pop(key, None) is not None:
            self._cursor.entry.dirty = True
            if not cells:
                self._cursor.entry.pop(self._name, None)


def make_handle(descriptor: StateDescriptor, cursor: Cursor) -> Any:
    """The handle for a descriptor, bound to an operator's cursor."""
    name, ttl = descriptor.name, descriptor.ttl
    given: Any = descriptor
    if isinstance(descriptor, ListStateDescriptor):
        return ListState[Any](name, cursor) if ttl is None else TtlListState[Any](name, cursor, ttl)
    if isinstance(descriptor, MapStateDescriptor):
        return MapState[Any, Any](name, cursor) if ttl is None else TtlMapState[Any, Any](name, cursor, ttl)
    value: ValueState[Any] = ValueState(name, cursor) if ttl is None else TtlValueState(name, cursor, ttl)
    if isinstance(descriptor, ReducingStateDescriptor):
        return ReducingState[Any](given, value)
    if isinstance(descriptor, AggregatingStateDescriptor):
        return AggregatingState[Any, Any](given, value)
    return value
