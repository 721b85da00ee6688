"""Broadcast state as functions see it: a map in the entry that every scope of a step has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from emberflow.operators.keyed import KeyedOperator
from emberflow.state.descriptors import MapStateDescriptor
from emberflow.state.entry import Cursor, SharedKey
from emberflow.state.handles import MapState, make_handle

K = TypeVar("K")
V = TypeVar("V")


class ReadOnlyBroadcastState(Generic[K, V]):
    """Broadcast state as the other input sees it."""

    __slots__ = ("_cursor", "_operator", "_state")

    def __init__(self, descriptor: MapStateDescriptor[K, V], operator: KeyedOperator) -> None:
        self._operator = operator
        operator.cursor.forms.declare(f"$broadcast/{descriptor.name}", descriptor)
        self._cursor = Cursor()
        self._state: MapState[K, V] = make_handle(descriptor, self._cursor)

    def _here(self) -> MapState[K, V]:
        scope = self._operator.scope
        self._cursor.entry, self._cursor.clock = scope.entry(SharedKey.BROADCAST), scope.clock
        return self._state

    def get(self, key: K) -> V | None:
        """The value of `key`; None if there is none."""
        return self._here().get(key)

    def contains(self, key: K) -> bool:
        """Whether there is a value for `key`."""
        return self._here().contains(key)

    def items(self) -> Iterable[tuple[K, V]]:
        """Keys and values, as a copy."""
        return self._here().items()

    def keys(self) -> Iterable[K]:
        """The keys, as a copy."""
        return self._here().keys()

    def values(self) -> Iterable[V]:
        """The values, as a copy."""
        return self._here().values()

    def is_empty(self) -> bool:
        """Whether there are no values."""
        return self._here().is_empty()

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class BroadcastState(ReadOnlyBroadcastState[K, V]):
    """Broadcast state as the broadcast input sees it. Every task must make the same changes: they may depend on the record
    only."""

    __slots__ = ()

    def put(self, key: K, value: V) -> None:
        """Stores a value for `key`."""
        self._here().put(key, value)

    def put_all(self, dict_value: dict[K, V]) -> None:
        """Stores several values."""
        self._here().put_all(dict_value)

    def remove(self, key: K) -> None:
        """Removes the value of `key`, if there is one."""
        self._here().remove(key)

    def clear(self) -> None:
        """Removes all values."""
        self._here().clear()

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)
