"""Columns of rows that a program lists: their types are those of their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any, cast

from emberflow.errors import InvalidArgument, shorten
from emberflow.events.types.instant import Instant
from emberflow.events.types.row import Row
from emberflow.streams.tables.data_types import DataType, DataTypes
from emberflow.streams.tables.schema import Schema, SchemaBuilder

_PLAIN: dict[type[Any], Callable[[], DataType]] = {
    str: DataTypes.STRING,
    bool: DataTypes.BOOLEAN,
    int: DataTypes.BIGINT,
    float: DataTypes.DOUBLE,
    datetime: DataTypes.TIMESTAMP,
    date: DataTypes.DATE,
    Instant: DataTypes.TIMESTAMP_LTZ,
}
_WAY_OUT = "declare the columns: schema=DataTypes.ROW([DataTypes.FIELD(name, DataTypes.INT()), …])"


def inferred_schema(rows: Sequence[Any], names: Sequence[str] | None) -> Schema:
    """The schema of rows whose columns have the given names, or those of the rows, or `_1`, `_2`, …"""
    if not rows:
        raise InvalidArgument(
            "the types of the columns of a table without rows are not known", way_out=_WAY_OUT
        )
    if isinstance(names, str):
        raise InvalidArgument(f"{names!r} is not a list of column names", way_out=f"write [{names!r}]")
    found = [_fields(row) for row in rows]
    known = (
        list(names)
        if names is not None
        else (found[0][0] or [f"_{at + 1}" for at in range(len(found[0][1]))])
    )
    builder = SchemaBuilder()
    for at, name in enumerate(known):
        column: list[Any] = []
        for own, values in found:
            if own is not None and name in own:
                column.append(values[own.index(name)])
            elif own is None and at < len(values):
                column.append(values[at])
        builder.column(name, _of_values(column, name))
    return builder.build()


def _fields(row: Any) -> tuple[list[str] | None, list[Any]]:
    """Names, if the row has any, and values."""
    if isinstance(row, dict):
        fields = cast("dict[Any, Any]", row)
        return [str(name) for name in fields], list(fields.values())
    if isinstance(row, Row):
        return (list(row._fields) if row._fields else None), list(row)
    if isinstance(row, tuple | list):
        return None, list(cast("Sequence[Any]", row))
    return None, [row]


def _of_values(values: Sequence[Any], column: str) -> DataType:
    known = [value for value in values if value is not None]
    if not known:
        raise InvalidArgument(
            f"column {column!r} has no value from which its type could be known", way_out=_WAY_OUT
        )
    kinds = set(map(type, known))
    if kinds == {int, float}:
        return DataTypes.DOUBLE()
    if len(kinds) > 1:
        raise InvalidArgument(
            f"column {column!r} has values of several types: {', '.join(sorted(kind.__name__ for kind in kinds))}",
            way_out=_WAY_OUT,
        )
    value: Any = known[0]
    kind: type[Any] = value.__class__
    made = _PLAIN.get(kind)
    if made is not None:
        return made()
    if isinstance(value, list):
        return DataTypes.ARRAY(_of_values([item for items in known for item in items], column))
    if isinstance(value, dict):
        keys = [key for items in known for key in items]
        return DataTypes.MAP(
            _of_values(keys, column), _of_values([v for items in known for v in items.values()], column)
        )
    raise InvalidArgument(f"column {column!r} cannot have the value {shorten(value)}", way_out=_WAY_OUT)
