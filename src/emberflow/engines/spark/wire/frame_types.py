"""Which Spark types a program can read and write, and the time zone of a session. Runs on the driver, before the query."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from emberflow.errors import InvalidArgument, NotSupported

_INTERVAL = "cast it to a number of months or to a string"
_REFUSED = {
    "VariantType": "use to_json() or variant_get() on the way in, a string and parse_json() on the way out",
    "YearMonthIntervalType": _INTERVAL,
    "CalendarIntervalType": _INTERVAL,
    "GeometryType": "use its binary form: ST_AsBinary() on the way in, ST_GeomFromWKB() on the way out",
    "GeographyType": "use its binary form: ST_AsBinary() on the way in, ST_GeogFromWKB() on the way out",
}
"""Types that Arrow does not convert to Python and back as plain values."""
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?")


def check_types(schema: Any, *, into_spark: bool) -> None:
    """Raises NotSupported for a StructType with a column of an unsupported type."""
    names: list[str] = schema.names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise NotSupported(
            f"a table with two columns named {twice[0]!r} cannot be a table of records",
            way_out="rename one of them: a record is a dictionary, column name -> value",
        )
    for path, found in _types(schema, ""):
        kind = type(found).__name__
        if kind in _REFUSED:
            raise _refused(path, found, _REFUSED[kind])
        if into_spark and hasattr(found, "sqlType"):
            raise _refused(path, found, "give to_dataframe() a schema of Spark's own types")
        if kind == "MapType" and type(found.keyType).__name__ in ("StructType", "ArrayType"):
            raise _refused(
                path, found, "use map_entries(), which turns it into an array: keys must be plain values"
            )


def _types(found: Any, path: str) -> Iterator[tuple[str, Any]]:
    """A type and all types nested in it, each with the path of its column."""
    yield path, found
    for field in getattr(found, "fields", ()):
        yield from _types(field.dataType, f"{path}.{field.name}" if path else field.name)
    for inner in ("elementType", "keyType", "valueType"):
        if hasattr(found, inner):
            yield from _types(getattr(found, inner), path)


def _refused(path: str, found: Any, way_out: str) -> NotSupported:
    return NotSupported(
        f"the column {path!r} has the type {found.simpleString()}, which records cannot represent",
        way_out=way_out,
    )


def zone_of(name: str) -> tzinfo:
    """The value of `spark.sql.session.timeZone`; raises InvalidArgument if Python does not know it."""
    if name in ("Z", "UTC", "GMT", "UT"):
        return UTC
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        sign, *parts = offset.groups("0")
        hours, minutes, seconds = (int(part) for part in parts)
        ahead = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return timezone(ahead if sign == "+" else -ahead)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise InvalidArgument(
            f"the session's time zone {name!r} is not known to Python",
            way_out='set spark.sql.session.timeZone to the name of a region ("Europe/Paris") or an offset ("+02:00")',
        ) from error
