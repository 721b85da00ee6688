"""Converts Python values to what pyarrow expects for a column of a Spark type, with checks where pyarrow is lenient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, tzinfo
from typing import Any

from emberflow.connectors.table_rows import as_row
from emberflow.errors import NotSerializable, shorten
from emberflow.events.types.instant import Instant

Convert = Callable[[Any], Any]


class Misfit(Exception):
    """A value that does not fit its column; the message says why."""


_PLAIN: dict[str, type] = {
    "ByteType": int,
    "ShortType": int,
    "IntegerType": int,
    "LongType": int,
    "StringType": str,
    "BinaryType": bytes,
    "DateType": date,
}


def plain_types(spark_type: Any) -> frozenset[type]:
    """Types of values that `converter` leaves unchanged, so that a column with no others need not be converted."""
    plain = _PLAIN.get(type(spark_type).__name__)
    return frozenset() if plain is None else frozenset([plain, type(None)])


def converter(spark_type: Any, zone: tzinfo) -> Convert | None:
    """A converter for values of a type. None: pyarrow accepts them as they are and checks them well enough."""
    kind = type(spark_type).__name__
    if kind == "TimestampType":
        return _or_none(lambda value: _instant(value, zone))
    if kind == "TimestampNTZType":
        return _or_none(_wall_time)
    if kind == "TimeType":
        return _or_none(_time_of_day)
    if kind == "DateType":
        return _or_none(_day)
    if kind in ("ByteType", "ShortType", "IntegerType", "LongType"):
        return _or_none(_whole)
    if kind in ("StringType", "VarcharType", "CharType"):
        return _or_none(lambda value: _of_class(value, str, "a string"))
    if kind == "BinaryType":
        return _or_none(lambda value: _of_class(value, (bytes, bytearray, memoryview), "bytes"))
    if kind == "ArrayType":
        return _array(spark_type, zone)
    if kind == "MapType":
        return _map(spark_type, zone)
    if kind == "StructType":
        return _struct(spark_type, zone)
    return None


def _or_none(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _instant(value: Any, zone: tzinfo) -> datetime:
    if isinstance(value, Instant):
        return value.to_datetime()
    if not isinstance(value, datetime):
        raise Misfit(f"{shorten(value)} is not a datetime")
    aware = value.replace(tzinfo=zone) if value.tzinfo is None else value
    return aware.astimezone(UTC)


def _wall_time(value: Any) -> datetime:
    if not isinstance(value, datetime):
        raise Misfit(f"{shorten(value)} is not a datetime")
    if value.tzinfo is not None:
        raise Misfit(
            f"{shorten(value)} has a time zone and timestamp_ntz has none: use the type timestamp, or "
            "value.replace(tzinfo=None)"
        )
    return value


def _day(value: Any) -> date:
    if isinstance(value, datetime) or not isinstance(value, date):
        raise Misfit(f"{shorten(value)} is not a date without a time of day: use value.date()")
    return value


def _time_of_day(value: Any) -> time:
    if not isinstance(value, time) or value.tzinfo is not None:
        raise Misfit(f"{shorten(value)} is not a time of day without a time zone")
    return value


def _whole(value: Any) -> Any:
    if isinstance(value, float | bool):
        raise Misfit(f"{shorten(value)} is not a whole number: use int()")
    return value


def _of_class(value: Any, wanted: Any, name: str) -> Any:
    if not isinstance(value, wanted):
        raise Misfit(f"{shorten(value)} is not {name}")
    return value


def _array(spark_type: Any, zone: tzinfo) -> Convert:
    of_item = _checked(converter(spark_type.elementType, zone), spark_type.containsNull, "element")

    def convert(value: Any) -> list[Any]:
        if isinstance(value, str | bytes | dict) or not hasattr(value, "__iter__"):
            raise Misfit(f"{shorten(value)} is not a list")
        return [of_item(item) for item in value]

    return _or_none(convert)


def _map(spark_type: Any, zone: tzinfo) -> Convert:
    of_key = _checked(converter(spark_type.keyType, zone), False, "key")
    of_value = _checked(converter(spark_type.valueType, zone), spark_type.valueContainsNull, "value")

    def convert(value: Any) -> list[tuple[Any, Any]]:
        if not isinstance(value, dict):
            raise Misfit(f"{shorten(value)} is not a dictionary")
        pairs: list[tuple[Any, Any]] = list(value.items())
        return [(of_key(key), of_value(item)) for key, item in pairs]

    return _or_none(convert)


def _struct(spark_type: Any, zone: tzinfo) -> Convert:
    names: Sequence[str] = spark_type.names
    fields = {
        field.name: _checked(converter(field.dataType, zone), field.nullable, f"field {field.name!r}")
        for field in spark_type.fields
    }

    def convert(value: Any) -> dict[str, Any]:
        try:
            row = as_row(value, names)
        except NotSerializable as error:
            raise Misfit(error.message) from error
        return {name: of_field(row[name]) for name, of_field in fields.items()}

    return _or_none(convert)


def _checked(convert: Convert | None, nullable: bool, what: str) -> Convert:
    def checked(value: Any) -> Any:
        if value is None and not nullable:
            raise Misfit(f"its {what} is None, but it is not null in the schema")
        return value if convert is None else convert(value)

    return checked
