"""Rows as a model's output: `Types.ROW_NAMED(["score"], [Types.INT()])` as JSON Schema, and the row in its reply."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

from emberflow.agents.tools.tool_schema import JsonType, Mismatch, json_type, read_fields
from emberflow.errors import InvalidAgent, shorten
from emberflow.events.types.row import Row
from emberflow.events.types.type_information import (
    ArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    MapTypeInfo,
    RowTypeInfo,
    SqlTimeType,
    SqlTimeTypeInfo,
    TupleTypeInfo,
)

_BASIC: dict[BasicType, Any] = {
    BasicType.STRING: str,
    BasicType.CHAR: str,
    BasicType.BOOLEAN: bool,
    BasicType.FLOAT: float,
    BasicType.DOUBLE: float,
    BasicType.BIG_DEC: Decimal,
    BasicType.INSTANT: datetime,
}
"""All others are whole numbers."""

_TIMES: dict[SqlTimeType, Any] = {SqlTimeType.DATE: date, SqlTimeType.TIMESTAMP: datetime}


def row_json_type(declared: RowTypeInfo, owner: str) -> JsonType:
    """Raises InvalidAgent, naming `owner`, for a field that has no JSON representation."""
    fields = {
        name: _field_type(kind, f"{owner}, field {name!r}")
        for name, kind in zip(declared.get_field_names(), declared.get_field_types(), strict=True)
    }
    names = list(fields)

    def read(value: Any, place: str) -> Any:
        if not isinstance(value, dict):
            raise Mismatch(f"{place} must be an object, got {shorten(value)}")
        given: dict[str, Any] = {**value}
        return Row(**read_fields(fields, names, given, place))

    properties = {name: kind.schema for name, kind in fields.items()}
    return JsonType({"type": "object", "properties": properties, "required": names}, read)


def _field_type(declared: Any, owner: str) -> JsonType:
    return row_json_type(declared, owner) if isinstance(declared, RowTypeInfo) else _other(declared, owner)


def _other(declared: Any, owner: str) -> JsonType:
    hint = _hint(declared)
    if hint is None:
        raise InvalidAgent(
            f"{owner}: the type {declared!r} cannot be represented in JSON",
            way_out="use strings, numbers, booleans, times, and arrays, maps and rows of these",
        )
    return json_type(hint, owner)


def _hint(declared: Any) -> Any:
    """The Python type with the same JSON."""
    if isinstance(declared, BasicTypeInfo):
        kind: BasicType = declared.basic_type
        return _BASIC.get(kind, int)
    if isinstance(declared, SqlTimeTypeInfo):
        return _TIMES.get(declared.time_type)
    if isinstance(declared, ArrayTypeInfo):
        item = _hint(declared.element_type)
        return None if item is None else list[item]
    if isinstance(declared, MapTypeInfo):
        value = _hint(declared.value_type)
        return None if value is None or _hint(declared.key_type) is not str else dict[str, value]
    if isinstance(declared, TupleTypeInfo):
        items = tuple(_hint(item) for item in declared.get_field_types())
        return None if None in items else tuple[items]
    return None
