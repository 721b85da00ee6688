"""State of a declared type: what is written is converted first; what is read has been converted already.

`make_handle` wraps a handle whose descriptor declares type information; all others are used as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from emberflow.events.types.conversion import converter_of
from emberflow.events.types.converters import AnyConverter, PlainConverter, TypeMismatch, WholeConverter
from emberflow.events.types.type_information import TypeInformation
from emberflow.state.descriptors import StateDescriptor
from emberflow.state.handles import AggregatingState, ListState, MapState, ReducingState, ValueState

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
Convert = Callable[[Any], Any]


def typed(handle: Any, descriptor: StateDescriptor) -> Any:
    """The handle, converting what is written to the types that the descriptor declares."""
    name, declared = descriptor.name, descriptor.type_info
    if isinstance(handle, MapState):
        key_type, value_type = declared
        key, value = _convert(key_type, f"a key of state {name!r}"), _convert(value_type, f"state {name!r}")
        return handle if key is None and value is None else TypedMapState[Any, Any](handle, key, value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    convert = _convert(declared, f"state {name!r}")
    if convert is None:
        return handle
    if isinstance(handle, ListState):
        return TypedListState[Any](handle, convert)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(handle, ReducingState | AggregatingState):
        handle._value = TypedValueState[Any](handle._value, convert)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        return handle  # pyright: ignore[reportUnknownVariableType]
    kind = TypedPlainValueState[Any] if handle.__class__ is ValueState else TypedValueState[Any]
    return kind(handle, convert)


def _convert(declared: Any, place: str) -> Convert | None:
    """None where nothing is to be converted."""
    if not isinstance(declared, TypeInformation):
        return None
    converter = converter_of(declared)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(converter, AnyConverter):
        return None
    one = converter.one
    # Nearly all values are right already: found out here, without further calls for each write.
    if isinstance(converter, WholeConverter):
        right, low, high = int, converter.low, converter.high
    else:
        # Subclasses also look at the values themselves.
        right, low, high = converter.kind if type(converter) is PlainConverter else None, None, 0

    def convert(value: Any) -> Any:
        if value.__class__ is right and (low is None or low <= value <= high):
            return value
        try:
            return one(value)
        except TypeMismatch as error:
            raise error.inside(place) from None

    return convert


class TypedValueState(ValueState[T]):
    """A value of a declared type."""

    __slots__ = ("_convert", "_inner")

    def __init__(self, inner: ValueState[T], convert: Convert) -> None:
        super().__init__(inner._name, inner._cursor)
        self._inner = inner
        self._convert = convert

    def value(self) -> T | None:
        return self._inner.value()

    def update(self, value: T | None) -> None:
        self._inner.update(None if value is None else self._convert(value))

    def clear(self) -> None:
        self._inner.clear()


class TypedPlainValueState(TypedValueState[T]):
    """The same without a time to live: the value is read and written in the entry itself."""

    __slots__ = ()

    def value(self) -> T | None:
        return self._cursor.entry.get(self._name)

    def update(self, value: T | None) -> None:
        if value is None:
            self.clear()
            return
        entry = self._cursor.entry
        entry[self._name] = self._convert(value)
        entry.dirty = True


class TypedListState(ListState[T]):
    """A list of elements of a declared type."""

    __slots__ = ("_convert", "_inner")

    def __init__(self, inner: ListState[T], convert: Convert) -> None:
        super().__init__(inner._name, inner._cursor)
        self._inner = inner
        self._convert = convert

    def get(self) -> Iterable[T]:
        return self._inner.get()

    def add(self, value: T) -> None:
        self._inner.add(self._convert(value))

    def add_all(self, values: Iterable[T]) -> None:
        self._inner.add_all([self._convert(value) for value in values])

    def update(self, values: Iterable[T]) -> None:
        self._inner.update([self._convert(value) for value in values])

    def clear(self) -> None:
        self._inner.clear()

    def __iter__(self) -> Iterator[T]:
        return iter(self._inner)


class TypedMapState(MapState[K, V]):
    """A dictionary with keys and values of declared types."""

    __slots__ = ("_inner", "_key", "_value")

    def __init__(self, inner: MapState[K, V], key: Convert | None, value: Convert | None) -> None:
        super().__init__(inner._name, inner._cursor)
        self._inner = inner
        self._key = key or _as_it_is
        self._value = value or _as_it_is

    def get(self, key: K) -> V | None:
        return self._inner.get(self._key(key))

    def put(self, key: K, value: V) -> None:
        self._inner.put(self._key(key), None if value is None else self._value(value))  # pyright: ignore[reportArgumentType]

    def remove(self, key: K) -> None:
        self._inner.remove(self._key(key))

    def contains(self, key: K) -> bool:
        return self._inner.contains(self._key(key))

    def items(self) -> Iterable[tuple[K, V]]:
        return self._inner.items()

    def keys(self) -> Iterable[K]:
        return self._inner.keys()

    def values(self) -> Iterable[V]:
        return self._inner.values()

    def is_empty(self) -> bool:
        return self._inner.is_empty()

    def clear(self) -> None:
        self._inner.clear()

    def __iter__(self) -> Iterator[K]:
        return iter(self._inner)


def _as_it_is(value: Any) -> Any:
    return value
