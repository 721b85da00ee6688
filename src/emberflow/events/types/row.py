"""`Row` and `RowKind`: records with named or positional fields, with PyFlink's semantics.

A row is its values and a `RowShape`, which holds what all rows of a stream have in common: the names of the fields and the
kind. So a row costs little more than a tuple to create and to store.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Any

from emberflow.events.stored_types import stored_type


class RowKind(Enum):
    """What a row means in a changelog."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    def __str__(self) -> str:
        return _SHORT[self.value]


_SHORT = ("+I", "-U", "+U", "-D")


def _write(shape: RowShape) -> Any:
    return shape.fields, shape.kind.value


def _read(version: int, stored: Any) -> RowShape:
    return RowShape(stored[0], RowKind(stored[1]))


@stored_type(write=_write, read=_read)
class RowShape:
    """The field names and the kind of rows; `shape(values)` creates one. Stored rows name it as their constructor."""

    __slots__ = ("fields", "kind", "places")

    def __init__(self, fields: tuple[str, ...] | None, kind: RowKind = RowKind.INSERT) -> None:
        self.fields = fields
        self.kind = kind
        self.places = {name: at for at, name in enumerate(fields or ())}

    def __call__(self, values: tuple[Any, ...]) -> Row:
        row: Row = _make(Row)
        row._shape = self
        row._values = values
        return row

    def rows(self, columns: Iterable[tuple[Any, ...]]) -> list[Row]:
        """A row for each tuple of values; without a call for each."""
        made: list[Row] = []
        append, make = made.append, _make
        for values in columns:
            row = make(Row)
            row._shape = self
            row._values = values
            append(row)
        return made

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowShape):
            return NotImplemented
        return self.fields == other.fields and self.kind is other.kind

    def __hash__(self) -> int:
        return hash((self.fields, self.kind.value))


_POSITIONAL = RowShape(None)


class Row:
    """A record with fields, read as `row[0]`, `row["name"]` or `row.name`.

    Keyword arguments create a row with named fields, in the order given; positional arguments one without names. A row
    without names also creates rows that have its values as field names. Rows are equal if they are of the same kind and have
    the same values under the same names, in any order. A row that is used as a key must not be changed.

    ```python
    from emberflow.streams import Row

    ann = Row(name="Ann", age=11)
    assert (ann.name, ann["age"], ann[1]) == ("Ann", 11, 11)
    assert "age" in ann and ann.as_dict() == {"name": "Ann", "age": 11}

    Person = Row("name", "age")
    assert Person("Ann", 11) == ann
    ```
    """

    __slots__ = ("_shape", "_values")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError("a Row takes positional or keyword arguments, not both")
        self._shape = RowShape(tuple(kwargs)) if kwargs else _POSITIONAL
        self._values = tuple(kwargs.values()) if kwargs else args

    @staticmethod
    def of_kind(row_kind: RowKind, *args: Any, **kwargs: Any) -> Row:
        """A row of a kind; the other arguments are those of `Row`."""
        row = Row(*args, **kwargs)
        row.set_row_kind(row_kind)
        return row

    def as_dict(self, recursive: bool = False) -> dict[str, Any]:
        """Field names and values; with `recursive`, rows inside become dictionaries too, also in lists and dictionaries.

        Raises `TypeError` for a row without field names.
        """
        fields = self._shape.fields
        if fields is None:
            raise TypeError("a Row without field names is not a dictionary: call set_field_names() first")
        values = [_plain(value) for value in self._values] if recursive else self._values
        return dict(zip(fields, values, strict=False))

    def get_row_kind(self) -> RowKind:
        """What the row means in a changelog; `INSERT` unless set."""
        return self._shape.kind

    def set_row_kind(self, row_kind: RowKind) -> None:
        """Sets what the row means in a changelog."""
        if row_kind is not self._shape.kind:
            self._shape = RowShape(self._shape.fields, row_kind)

    def set_field_names(self, field_names: Sequence[str]) -> None:
        """Names the fields, in order."""
        self._shape = RowShape(tuple(field_names), self._shape.kind)

    def get_fields_by_names(self, names: Sequence[str]) -> list[Any]:
        """The values of these fields, in the order of `names`; all values of a row without field names.

        Raises `KeyError` with the names that the row does not have.
        """
        fields, values = self._shape.fields, self._values
        if fields is None:
            return list(values)
        places = self._shape.places
        missing = [name for name in names if name not in places]
        if missing:
            raise KeyError(f"the row has no fields {missing!r}, only {list(fields)!r}")
        return [values[places[name]] for name in names]

    def __call__(self, *args: Any) -> Row:
        """A row with this row's values as field names."""
        if len(args) > len(self._values):
            raise ValueError(f"{self!r} has {len(self._values)} fields, but got the values {args!r}")
        return RowShape(self._values, self._shape.kind)(args)

    def __contains__(self, item: Any) -> bool:
        fields = self._shape.fields
        return item in (self._values if fields is None else fields)

    def __getitem__(self, item: Any) -> Any:
        if item.__class__ is str:
            return self._values[self._shape.places[item]]
        return self._values[item]

    def __setitem__(self, item: Any, value: Any) -> None:
        changed = list(self._values)
        changed[self._shape.places[item] if item.__class__ is str else item] = value
        self._values = tuple(changed)

    def __getattr__(self, name: str) -> Any:
        # Called only for names that are not attributes; copy and pickle ask for some that begin with an underscore.
        if not name.startswith("_"):
            place = self._shape.places.get(name)
            if place is not None:
                return self._values[place]
        raise AttributeError(f"the row has no field {name!r}")

    @property
    def _fields(self) -> tuple[str, ...] | None:
        return self._shape.fields

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row):
            return False
        mine, theirs = self._shape, other._shape
        if mine is theirs or mine == theirs:
            return self._values == other._values
        if mine.kind is not theirs.kind or mine.fields is None or theirs.fields is None:
            return False
        return len(self._values) == len(other._values) and self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        # Equal rows may have their fields in another order.
        fields = self._shape.fields
        return hash(self._values if fields is None else frozenset(zip(fields, self._values, strict=False)))

    def __copy__(self) -> Row:
        return self._shape(self._values)

    def __repr__(self) -> str:
        fields = self._shape.fields
        if fields is None:
            return f"<Row({', '.join(map(repr, self._values))})>"
        named = zip(fields, self._values, strict=False)
        return f"Row({', '.join([f'{name}={value!r}' for name, value in named])})"


_make: Any = object.__new__


def _reduced(row: Row) -> tuple[Any, ...]:
    # The shape is one object for all rows of a batch, so pickle writes it once.
    return row._shape, (row._values,)


copyreg.pickle(Row, _reduced)


def combined(seen: Row, row: Row, field: int | str, combine: Callable[[Any, Any], Any]) -> Row:
    """A copy of a row whose field is combined with that of another row. Raises KeyError or IndexError without the field."""
    shape, values = seen._shape, list(seen._values)
    at = shape.places[field] if isinstance(field, str) else field
    values[at] = combine(values[at], row._values[at] if row._shape is shape else row[field])
    made: Row = _make(Row)
    made._shape = shape
    made._values = tuple(values)
    return made


def shared_row(row: Row) -> Row:
    """Another row with the same values."""
    made: Row = _make(Row)
    made._shape = row._shape
    made._values = row._values
    return made


def equal_parts(row: Row) -> tuple[Any, ...]:
    """What makes a row equal to others, the same for equal rows: for hashes and identities that survive a restart."""
    fields, kind = row._shape.fields, row._shape.kind.value
    if fields is None:
        return kind, row._values
    return kind, *sorted(zip(fields, row._values, strict=False), key=lambda field: field[0])


def _plain(value: Any) -> Any:
    """The value with dictionaries instead of rows, also in lists and dictionaries."""
    if isinstance(value, Row):
        return value.as_dict(True)
    if isinstance(value, list):
        return [_plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value
