"""From a JSON object, or the texts of a CSV row, to a row of a table. The rules are those of Flink's formats, except that a
missing column and a fraction in a whole number are errors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any, cast

from emberflow.errors import did_you_mean, shorten
from emberflow.events.types.instant import Instant
from emberflow.events.types.row import Row, RowShape
from emberflow.streams.tables.data_types import DataType, Kind
from emberflow.streams.tables.schema import Column

_DIGITS = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)
_LENIENT = " (with the option 'json.fail-on-missing-field' = 'false' it is NULL)"
_TRUTH = {"true": True, "false": False}


class Misfit(ValueError):
    """A value that is not of its column's type; `place` says where in the column it is."""

    def __init__(self, value: Any, expected: DataType, place: str = "") -> None:
        super().__init__(shorten(value))
        self.value = value
        self.expected = expected
        self.place = place

    def inside(self, place: str) -> Misfit:
        """The same, seen from the value that contains this one."""
        return Misfit(self.value, self.expected, place + self.place)


class RowReader:
    """Makes rows of one table."""

    def __init__(self, table: str, columns: Sequence[Column], *, missing_is_null: bool = False) -> None:
        self._table = table
        self._columns = [(column.name, column.data_type) for column in columns]
        self._shape = RowShape(tuple(column.name for column in columns))
        self._missing_is_null = missing_is_null

    def row(self, record: Any) -> Row:
        """The row of a record; raises ValueError, which names the table, the column and the value."""
        if not isinstance(record, dict):
            raise ValueError(f"table {self._table!r} needs JSON objects, not {shorten(record)}")
        fields = cast("dict[Any, Any]", record)
        values: list[Any] = []
        for name, data_type in self._columns:
            if name not in fields and not self._missing_is_null:
                near = did_you_mean(name, [str(key) for key in fields])
                raise ValueError(f"column {name!r} of table {self._table!r} is missing{near}{_LENIENT}")
            try:
                values.append(read_value(fields.get(name), data_type, self._missing_is_null))
            except Misfit as found:
                raise ValueError(
                    f"column {name!r} of table {self._table!r} is {data_type}, but{_where(found)} the value is "
                    f"{shorten(found.value)}"
                ) from None
        return self._shape(tuple(values))


def _where(found: Misfit) -> str:
    return f" at {found.place}, which is {found.expected}," if found.place else ""


def read_value(value: Any, data_type: DataType, missing_is_null: bool) -> Any:
    """The value of a column; raises Misfit."""
    if value is None:
        if data_type.is_nullable:
            return None
        raise Misfit(value, data_type)
    nested = _NESTED.get(data_type.kind)
    return (
        _PLAIN[data_type.kind](value, data_type)
        if nested is None
        else nested(value, data_type, missing_is_null)
    )


def _string(value: Any, data_type: DataType) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _truth(value: Any, data_type: DataType) -> bool:
    found = value if isinstance(value, bool) else _TRUTH.get(str(value).strip().lower())
    if found is None:
        raise Misfit(value, data_type)
    return found


def _whole(value: Any, data_type: DataType) -> int:
    is_text = isinstance(value, str) and _DIGITS.fullmatch(value) is not None
    if is_text or (isinstance(value, float) and value.is_integer()):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise Misfit(value, data_type)
    if not -(1 << data_type.bits - 1) <= value < 1 << data_type.bits - 1:
        raise Misfit(value, data_type)
    return value


def _number(value: Any, data_type: DataType) -> float:
    if isinstance(value, bool | list | dict) or (isinstance(value, str) and "_" in value):
        raise Misfit(value, data_type)
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise Misfit(value, data_type) from None


def _day(value: Any, data_type: DataType) -> date:
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise Misfit(value, data_type) from None


def _timestamp(value: Any, data_type: DataType) -> datetime:
    found = _datetime(value, data_type)
    if found.tzinfo is not None:
        raise Misfit(value, data_type)
    return found


def _instant(value: Any, data_type: DataType) -> Instant:
    found = _datetime(value, data_type)
    if found.tzinfo is None:
        raise Misfit(value, data_type)
    return Instant.of_datetime(found)


def _datetime(value: Any, data_type: DataType) -> datetime:
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise Misfit(value, data_type) from None


def _array(value: Any, data_type: DataType, missing_is_null: bool) -> list[Any]:
    if not isinstance(value, list):
        raise Misfit(value, data_type)
    element = data_type.parts[0]
    items = enumerate(cast("list[Any]", value))
    return [_part(item, element, f"[{at}]", missing_is_null) for at, item in items]


def _map(value: Any, data_type: DataType, missing_is_null: bool) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise Misfit(value, data_type)
    found: dict[Any, Any] = {}
    for key, item in cast("dict[Any, Any]", value).items():
        place = f"[{key!r}]"
        read_key = _part(key, data_type.parts[0], place, missing_is_null)
        found[read_key] = _part(item, data_type.parts[1], place, missing_is_null)
    return found


def _row(value: Any, data_type: DataType, missing_is_null: bool) -> Row:
    if not isinstance(value, dict):
        raise Misfit(value, data_type)
    fields = cast("dict[Any, Any]", value)
    if not missing_is_null and any(name not in fields for name in data_type.names):
        raise Misfit(value, data_type)
    named = zip(data_type.names, data_type.parts, strict=True)
    parts = [_part(fields.get(name), part, f"[{name!r}]", missing_is_null) for name, part in named]
    return RowShape(data_type.names)(tuple(parts))


def _part(value: Any, data_type: DataType, place: str, missing_is_null: bool) -> Any:
    try:
        return read_value(value, data_type, missing_is_null)
    except Misfit as found:
        raise found.inside(place) from None


_PLAIN: dict[Kind, Callable[[Any, DataType], Any]] = {
    Kind.STRING: _string,
    Kind.BOOLEAN: _truth,
    Kind.WHOLE: _whole,
    Kind.SINGLE: _number,
    Kind.DOUBLE: _number,
    Kind.DATE: _day,
    Kind.TIMESTAMP: _timestamp,
    Kind.INSTANT: _instant,
}
_NESTED: dict[Kind, Callable[[Any, DataType, bool], Any]] = {
    Kind.ARRAY: _array,
    Kind.MAP: _map,
    Kind.ROW: _row,
}
