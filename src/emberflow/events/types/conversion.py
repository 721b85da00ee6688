"""From type information to a converter: rows, tuples, arrays and maps of any depth.

Built once per step with a declared type and per typed state; a step without one has no converter.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import Any

from emberflow.errors import shorten
from emberflow.events.types.converters import (
    AnyConverter,
    Converter,
    TypeMismatch,
    bytes_converter,
    kinds_of,
    plain_converter,
)
from emberflow.events.types.object_types import ObjectConverter, ObjectTypeInfo
from emberflow.events.types.row import Row, RowShape
from emberflow.events.types.type_information import (
    ArrayKind,
    ArrayTypeInfo,
    BasicTypeInfo,
    MapTypeInfo,
    RowTypeInfo,
    SqlTimeTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)


class NullableConverter(Converter):
    """None, or what another converter takes: fields of rows, elements of boxed arrays, values of maps."""

    def __init__(self, inner: Converter) -> None:
        super().__init__(inner.expected)
        self._inner = inner

    def one(self, value: Any) -> Any:
        return None if value is None else self._inner.one(value)

    def is_right(self, values: Sequence[Any], kinds: set[type[Any]]) -> bool:
        # By class: user values may compare in ways of their own.
        if NoneType in kinds:
            values, kinds = [value for value in values if value is not None], kinds - {NoneType}
        return not values or self._inner.is_right(values, kinds)

    def column(self, values: Sequence[Any]) -> Sequence[Any]:
        if NoneType in kinds_of(values):
            return super().column(values)
        return self._inner.column(values)


class ArrayConverter(Converter):
    """Lists; tuples become lists."""

    def __init__(self, expected: ArrayTypeInfo[Any]) -> None:
        super().__init__(expected)
        element = converter_of(expected.element_type)
        boxed = expected.kind in (ArrayKind.BASIC, ArrayKind.OBJECT)
        self._element = NullableConverter(element) if boxed else element

    def one(self, value: Any) -> Any:
        if value.__class__ is not list:
            if not isinstance(value, list | tuple):
                raise self.misfit(value)
            value = list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        if not value:
            return value
        try:
            found = self._element.column(value)
        except TypeMismatch:
            for at, item in enumerate(value):
                try:
                    self._element.one(item)
                except TypeMismatch as error:
                    raise error.inside(f"element {at}") from None
            raise
        return found if found.__class__ is list else list(found)


class MapConverter(Converter):
    """Dictionaries."""

    def __init__(self, expected: MapTypeInfo[Any]) -> None:
        super().__init__(expected)
        self._key = converter_of(expected.key_type)
        self._value = NullableConverter(converter_of(expected.value_type))

    def one(self, value: Any) -> Any:
        if not isinstance(value, dict):
            raise self.misfit(value)
        items: dict[Any, Any] = value  # pyright: ignore[reportUnknownVariableType]
        if not items:
            return items
        keys, values = list(items), list(items.values())
        if type(items) is dict and self._are_right(keys, values):
            return items
        return {self._of_key(key): self._of_value(key, item) for key, item in items.items()}

    def _are_right(self, keys: list[Any], values: list[Any]) -> bool:
        return self._key.is_right(keys, kinds_of(keys)) and self._value.is_right(values, kinds_of(values))

    def _of_key(self, key: Any) -> Any:
        try:
            return self._key.one(key)
        except TypeMismatch as error:
            raise error.inside("a key") from None

    def _of_value(self, key: Any, item: Any) -> Any:
        try:
            return self._value.one(item)
        except TypeMismatch as error:
            raise error.inside(f"the value of key {shorten(key)}") from None


class FieldsConverter(Converter):
    """What rows and tuples share: one converter for each field."""

    def __init__(
        self, expected: TypeInformation[Any], fields: Sequence[Converter], names: Sequence[str]
    ) -> None:
        super().__init__(expected)
        self._fields = fields
        self._places = [f"field {name!r}" for name in names]

    def _items(self, items: Sequence[Any], value: Any) -> list[Any]:
        """Converts the fields of one value."""
        if len(items) != len(self._fields):
            raise self.misfit(value, f"it has {len(items)} fields")
        found: list[Any] = []
        for field, item, place in zip(self._fields, items, self._places, strict=True):
            try:
                found.append(field.one(item))
            except TypeMismatch as error:
                raise error.inside(place) from None
        return found

    def _columns(self, rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]] | None:
        """One column for each field; None if a row has another number of fields, or there are none."""
        try:
            columns = list(zip(*rows, strict=True))
        except ValueError:
            return None
        return columns if columns and len(columns) == len(self._fields) else None

    def _converted(self, columns: list[tuple[Any, ...]]) -> list[Sequence[Any]] | None:
        """The converted columns; None if nothing had to be converted."""
        found: list[Sequence[Any]] | None = None
        for at, (field, column) in enumerate(zip(self._fields, columns, strict=True)):
            if not field.is_right(column, kinds_of(column)):
                found = list(columns) if found is None else found
                found[at] = field.column(column)
        return found


class TupleConverter(FieldsConverter):
    """Tuples; lists and rows become tuples."""

    def __init__(self, expected: TupleTypeInfo) -> None:
        fields = [converter_of(field) for field in expected.field_types]
        super().__init__(expected, fields, [f"f{at}" for at in range(len(fields))])

    def one(self, value: Any) -> Any:
        if not isinstance(value, tuple | list | Row):
            raise self.misfit(value)
        return tuple(self._items(list(value), value))  # pyright: ignore[reportUnknownArgumentType]

    def column(self, values: Sequence[Any]) -> Sequence[Any]:
        columns = self._columns(values) if kinds_of(values) == {tuple} else None
        if columns is None:
            return [self.one(value) for value in values]
        converted = self._converted(columns)
        return values if converted is None else list(zip(*converted, strict=True))


class RowConverter(FieldsConverter):
    """Rows; tuples, lists, dictionaries and objects with the fields as attributes become rows."""

    def __init__(self, expected: RowTypeInfo) -> None:
        fields = [NullableConverter(converter_of(field)) for field in expected.field_types]
        self._names = tuple(expected.get_field_names())
        self._shape = RowShape(self._names)
        super().__init__(expected, fields, self._names)

    def one(self, value: Any) -> Any:
        values = tuple(self._items(self._values_of(value), value))
        kind = value.get_row_kind() if isinstance(value, Row) else self._shape.kind
        shape = self._shape if kind is self._shape.kind else RowShape(self._names, kind)
        return shape(values)

    def column(self, values: Sequence[Any]) -> Sequence[Any]:
        kinds = kinds_of(values)
        if kinds == {Row} and all([row._shape.fields == self._names for row in values]):  # noqa: C419 - faster
            return self._of_rows(values)
        columns = self._columns(values) if kinds == {tuple} else None
        if columns is None:
            return [self.one(value) for value in values]
        converted = self._converted(columns)
        return self._shape.rows(values if converted is None else zip(*converted, strict=True))

    def _of_rows(self, rows: Sequence[Row]) -> Sequence[Any]:
        columns = self._columns([row._values for row in rows])
        # A row that is right already is passed on as it is, as every other value.
        if columns is not None and self._converted(columns) is None:
            return rows
        return [self.one(row) for row in rows]

    def _values_of(self, value: Any) -> Sequence[Any]:
        names = self._names
        if isinstance(value, Row):
            found = value._shape.fields
            if found is None or found == names:
                return value._values
            self._check_names(found, value)
            return value.get_fields_by_names(names)
        if isinstance(value, dict):
            fields: dict[Any, Any] = value  # pyright: ignore[reportUnknownVariableType]
            self._check_names(tuple(fields), value)
            return [fields[name] for name in names]
        if isinstance(value, tuple | list):
            named: Any = getattr(value, "_fields", None)  # pyright: ignore[reportUnknownArgumentType]
            if named is not None and named != names and set(named) == set(names):
                return [getattr(value, name) for name in names]  # pyright: ignore[reportUnknownArgumentType]
            return value  # pyright: ignore[reportUnknownVariableType]
        if not hasattr(value, "__dict__") and not hasattr(value, "__dataclass_fields__"):
            raise self.misfit(value)
        missing = [name for name in names if not hasattr(value, name)]
        if missing:
            raise self.misfit(value, f"it has no {', '.join(map(repr, missing))}")
        return [getattr(value, name) for name in names]

    def _check_names(self, found: Sequence[Any], value: Any) -> None:
        missing = [name for name in self._names if name not in found]
        unexpected = [name for name in found if name not in self._names]
        if missing or unexpected:
            parts = [f"missing {', '.join(map(repr, missing))}"] if missing else []
            parts += [f"unexpected {', '.join(map(repr, unexpected))}"] if unexpected else []
            raise self.misfit(value, "; ".join(parts))


def converter_of(expected: TypeInformation[Any]) -> Converter:
    """The converter of a declared type."""
    if isinstance(expected, RowTypeInfo):
        return RowConverter(expected)
    if isinstance(expected, TupleTypeInfo):
        return TupleConverter(expected)
    if isinstance(expected, ArrayTypeInfo):
        return bytes_converter(expected) if expected.is_bytes else ArrayConverter(expected)
    if isinstance(expected, MapTypeInfo):
        return MapConverter(expected)
    if isinstance(expected, BasicTypeInfo | SqlTimeTypeInfo):
        return plain_converter(expected)
    if isinstance(expected, ObjectTypeInfo):
        return ObjectConverter(expected)
    return AnyConverter(expected)
