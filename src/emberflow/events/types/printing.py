"""How records of a declared type are printed: as PyFlink prints them, which is as Java does.

`(And,5)` for a tuple, `+I[And,5]` for a row. Values inside rows are printed as Python prints them, as in PyFlink. Records
without a declared type are printed with `str`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

from emberflow.events.types.instant import Instant
from emberflow.events.types.row import Row
from emberflow.events.types.type_information import (
    ArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    MapTypeInfo,
    PickledBytesTypeInfo,
    RowTypeInfo,
    SqlTimeType,
    SqlTimeTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)

Print = Callable[[Any], str]


def printer_of(declared: TypeInformation[Any] | None) -> Print | None:
    """A function that prints records of the type; None if `str` does."""
    if isinstance(declared, RowTypeInfo):
        return _row
    if declared is None or isinstance(declared, PickledBytesTypeInfo):
        return None
    return _printer(declared)


def java_form_of(declared: TypeInformation[Any] | None) -> Print | None:
    """A function that writes records of the type as Java does, which is how Flink's file sinks write them; None if `str` does.
    Rows differ from `print()`: `+I[And, 5]`."""
    if declared is None or isinstance(declared, PickledBytesTypeInfo):
        return None
    return _printer(declared)


def _row(value: Row) -> str:
    return f"{value.get_row_kind()}[{','.join(map(str, value))}]"


def _printer(declared: TypeInformation[Any]) -> Print:
    if isinstance(declared, TupleTypeInfo):
        return _or_null(_tuple(declared))
    if isinstance(declared, RowTypeInfo):
        return _or_null(_nested_row(declared))
    if isinstance(declared, ArrayTypeInfo):
        element = _printer(declared.element_type)
        return _or_null(lambda items: f"[{', '.join([element(item) for item in items])}]")
    if isinstance(declared, MapTypeInfo):
        key, item = _printer(declared.key_type), _printer(declared.value_type)
        return _or_null(lambda found: f"{{{', '.join([f'{key(k)}={item(v)}' for k, v in found.items()])}}}")
    if isinstance(declared, BasicTypeInfo):
        return _or_null(_BASIC.get(declared.basic_type, str))
    if isinstance(declared, SqlTimeTypeInfo) and declared.time_type is SqlTimeType.TIMESTAMP:
        return _or_null(_timestamp)
    return _or_null(str)


def _or_null(printed: Print) -> Print:
    return lambda value: "null" if value is None else printed(value)


def _tuple(declared: TupleTypeInfo) -> Print:
    fields = [_printer(field) for field in declared.field_types]
    return lambda value: f"({','.join([field(item) for field, item in zip(fields, value, strict=True)])})"


def _nested_row(declared: RowTypeInfo) -> Print:
    fields = [_printer(field) for field in declared.field_types]

    def printed(value: Row) -> str:
        items = ", ".join([field(item) for field, item in zip(fields, value, strict=True)])
        return f"{value.get_row_kind()}[{items}]"

    return printed


# Java's forms of plain values


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _double(value: float) -> str:
    return _java_float(value, repr(float(value)))


def _single(value: float) -> str:
    rounded = array("f", [value])[0]
    for digits in range(1, 10):
        text = f"{rounded:.{digits}g}"
        if array("f", [float(text)])[0] == rounded:
            return _java_float(rounded, text)
    return _java_float(rounded, repr(rounded))


def _java_float(value: float, text: str) -> str:
    """The digits of `text` as Java writes them: plain from 0.001 to 10,000,000, otherwise with an exponent."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    sign, found, exponent = Decimal(text).as_tuple()
    minus = "-" if sign else ""
    if not value:
        return f"{minus}0.0"
    digits = "".join(map(str, found)).rstrip("0")
    # The number is 0.DIGITS times ten to the power of `point`.
    point = len(found) + int(exponent)
    if -3 < point <= 7:
        if point <= 0:
            return f"{minus}0.{'0' * -point}{digits}"
        digits = digits.ljust(point, "0")
        return f"{minus}{digits[:point]}.{digits[point:] or '0'}"
    return f"{minus}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def _timestamp(value: datetime) -> str:
    """As java.sql.Timestamp: at least one digit of the second's fraction."""
    fraction = f"{value.microsecond:06d}".rstrip("0") or "0"
    return f"{value:%Y-%m-%d %H:%M:%S}.{fraction}"


def _instant(value: Instant) -> str:
    text = f"{value.to_datetime():%Y-%m-%dT%H:%M:%S}"
    fraction = f"{value.nanos:09d}"
    while fraction.endswith("000"):
        fraction = fraction[:-3]
    return f"{text}.{fraction}Z" if fraction else f"{text}Z"


_BASIC: dict[BasicType, Print] = {
    BasicType.BOOLEAN: _truth,
    BasicType.FLOAT: _single,
    BasicType.DOUBLE: _double,
    BasicType.INSTANT: _instant,
}
