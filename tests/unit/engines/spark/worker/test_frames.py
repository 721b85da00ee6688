"""Records to rows of a DataFrame and back: every type, time zones, nulls, and the errors for values that do not fit."""

from __future__ import annotations

import math
from collections import namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="B19: types of DataFrames are Spark's")

from pyspark.sql import Row
from pyspark.sql import types as T

from emberflow.connectors.arrow_records import arrow_records
from emberflow.engines.spark.wire.frame_types import check_types, zone_of
from emberflow.engines.spark.worker.frames import RowEncoder
from emberflow.errors import InvalidArgument, NotSerializable, NotSupported

PARIS = "Europe/Paris"
AWARE = datetime(2026, 3, 29, 1, 30, 0, 123456, tzinfo=UTC)


def struct(**columns: Any) -> Any:
    return T.StructType([T.StructField(name, kind) for name, kind in columns.items()])


def through(kind: Any, value: Any, time_zone: str = "UTC") -> Any:
    """A value written to a row and read back."""
    batch = RowEncoder(struct(x=kind), time_zone).encode([{"x": value}])
    [record] = arrow_records(batch)
    return record["x"]


NESTED = struct(
    when=T.TimestampType(),
    tags=T.MapType(T.StringType(), T.ArrayType(T.TimestampType())),
    inner=struct(d=T.DateType(), m=T.MapType(T.IntegerType(), struct(b=T.BinaryType()))),
)
NESTED_VALUE = {
    "when": AWARE,
    "tags": {"a": [AWARE, None], "b": [], "c": None},
    "inner": {"d": date(2026, 1, 2), "m": {7: {"b": b"\0\xff"}, 8: None}},
}
VALUES: dict[str, tuple[Any, Any]] = {
    "boolean": (T.BooleanType(), True),
    "byte": (T.ByteType(), -128),
    "short": (T.ShortType(), 32767),
    "int": (T.IntegerType(), -(2**31)),
    "long": (T.LongType(), 2**63 - 1),
    "float": (T.FloatType(), 1.5),
    "double": (T.DoubleType(), 0.1),
    "infinite": (T.DoubleType(), math.inf),
    "decimal": (T.DecimalType(20, 3), Decimal("-12345678901234567.125")),
    "string": (T.StringType(), "ä\0\u2028😀"),
    "empty string": (T.StringType(), ""),
    "binary": (T.BinaryType(), b"\xff\0"),
    "date": (T.DateType(), date(1, 1, 1)),
    "timestamp": (T.TimestampType(), AWARE),
    "old timestamp": (T.TimestampType(), datetime(1, 1, 1, tzinfo=UTC)),
    "timestamp_ntz": (T.TimestampNTZType(), datetime(2026, 3, 29, 2, 30, 0, 1)),
    "interval": (T.DayTimeIntervalType(), timedelta(days=-3, microseconds=7)),
    "void": (T.NullType(), None),
    "array": (T.ArrayType(T.LongType()), [1, None, 3]),
    "map": (T.MapType(T.StringType(), T.LongType()), {"a": 1, "b": None}),
    "empty map": (T.MapType(T.StringType(), T.LongType()), {}),
    "map of dates": (T.MapType(T.DateType(), T.DecimalType(4, 2)), {date(2026, 1, 1): Decimal("1.25")}),
    "array of maps": (T.ArrayType(T.MapType(T.LongType(), T.StringType())), [{1: "x"}, {}, None]),
    "struct": (struct(a=T.LongType(), b=T.StringType()), {"a": 1, "b": None}),
    "nested": (NESTED, NESTED_VALUE),
}
if hasattr(T, "TimeType"):
    VALUES["time"] = (T.TimeType(6), time(23, 59, 59, 999999))


@pytest.mark.parametrize("name", VALUES)
def test_a_value_survives_a_round_trip(name: str) -> None:
    kind, value = VALUES[name]
    assert through(kind, value) == value
    assert through(kind, value, PARIS) == value, "whatever the session's time zone is"
    assert through(kind, None) is None


@pytest.mark.parametrize("name", VALUES)
def test_the_arrow_schema_is_the_one_that_spark_expects(name: str) -> None:
    from pyspark.sql.pandas.types import from_arrow_schema

    kind, value = VALUES[name]
    batch = RowEncoder(struct(x=kind), PARIS).encode([{"x": value}])
    assert from_arrow_schema(batch.schema, prefer_timestamp_ntz=True) == struct(x=kind)


def test_an_aware_datetime_is_an_instant() -> None:
    here = AWARE.astimezone(timezone(timedelta(hours=-7)))
    for session in ("UTC", PARIS, "+05:30"):
        found = through(T.TimestampType(), here, session)
        assert (found, found.tzinfo) == (AWARE, UTC)


@pytest.mark.parametrize(
    ("session", "hour"), [("UTC", 12), (PARIS, 10), ("America/New_York", 16), ("+05:30", 6), ("GMT-3", 15)]
)
def test_a_naive_datetime_is_in_the_sessions_time_zone(session: str, hour: int) -> None:
    naive = datetime(2026, 7, 1, 12, 15)
    found = through(T.TimestampType(), naive, session)
    assert found.hour == hour
    assert found == naive.replace(tzinfo=zone_of(session))


def test_an_hour_that_occurs_twice() -> None:
    naive = datetime(2026, 10, 25, 2, 30)
    assert through(T.TimestampType(), naive, PARIS).hour == 0
    assert through(T.TimestampType(), naive.replace(fold=1), PARIS).hour == 1


def test_timestamps_in_the_sessions_time_zone_arrive_in_utc() -> None:
    array = pa.array([AWARE, None], pa.timestamp("us", tz=PARIS))
    nested = pa.array([[("a", AWARE)], None], pa.map_(pa.string(), pa.timestamp("us", tz=PARIS)))
    first, second = arrow_records(pa.RecordBatch.from_arrays([array, nested], ["t", "m"]))
    assert first["t"].isoformat() == first["m"]["a"].isoformat() == "2026-03-29T01:30:00.123456+00:00"
    assert second == {"t": None, "m": None}
    assert arrow_records(pa.Table.from_arrays([array, nested], ["t", "m"])) == [first, second]


WHO = struct(id=T.LongType(), name=T.StringType())
Named = namedtuple("Named", ["name", "id"])


@dataclass
class Person:
    id: int
    name: str


@pytest.mark.parametrize(
    "record",
    [
        {"id": 1, "name": "Ann"},
        {"name": "Ann", "id": 1},
        (1, "Ann"),
        [1, "Ann"],
        Named("Ann", 1),
        Row(name="Ann", id=1),
        Person(1, "Ann"),
    ],
    ids=["dict", "other order", "tuple", "list", "named tuple", "Row", "object"],
)
def test_forms_of_a_record(record: Any) -> None:
    assert arrow_records(RowEncoder(WHO, "UTC").encode([record])) == [{"id": 1, "name": "Ann"}]


def message(schema: Any, *records: Any) -> list[str]:
    with pytest.raises(NotSerializable) as caught:
        RowEncoder(schema, "UTC").encode(list(records))
    return str(caught.value).splitlines()


NAMES_WAY_OUT = (
    "  what to do: emit dictionaries with exactly the schema's columns (a value may be None), or tuples in the order "
    "of the schema"
)


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ({"idd": 5, "name": "Ann"}, "missing 'id'; unexpected 'idd'; did it write 'idd' for 'id'?"),
        ({"ID": 5, "name": "Ann"}, "missing 'id'; unexpected 'ID'; did it write 'ID' for 'id'?"),
        ({"id": 5}, "missing 'name'"),
        ({"id": 5, "name": "x", "age": 3}, "unexpected 'age'"),
        ({}, "missing 'id', 'name'"),
        ({"x": 1, "y": 2}, "missing 'id', 'name'; unexpected 'x', 'y'"),
        (Row(id=5, title="x"), "missing 'name'; unexpected 'title'"),
    ],
)
def test_names_that_do_not_match_the_schema(record: Any, says: str) -> None:
    first, *rest = message(WHO, {"id": 1, "name": "fine"}, record)
    assert (
        first
        == f"NotSerializable [EF2103]: the record {record!r} does not match the schema's columns: {says}"
    )
    assert rest == [NAMES_WAY_OUT]


def test_a_record_without_names_of_another_length() -> None:
    assert message(WHO, (1, "Ann", True)) == [
        "NotSerializable [EF2103]: the record (1, 'Ann', True) has 3 fields, the schema 2",
        NAMES_WAY_OUT,
    ]


def test_an_object_without_the_attribute() -> None:
    assert message(WHO, 5)[0].endswith(
        "the record 5 does not match the schema's columns: it has no 'id', 'name'"
    )


def test_names_of_a_nested_record_are_checked_too() -> None:
    schema = struct(who=WHO)
    first, cause, _ = message(schema, {"who": {"id": 1, "nme": "Ann"}})
    assert first == (
        "NotSerializable [EF2103]: the record {'who': {'id': 1, 'nme': 'Ann'}} does not fit the column 'who' "
        "(struct<id:bigint,name:string>)"
    )
    assert cause == (
        "  cause: the record {'id': 1, 'nme': 'Ann'} does not match the schema's columns: missing 'name'; "
        "unexpected 'nme'; did it write 'nme' for 'name'?"
    )


NOT_NULL = T.StructType([T.StructField("x", T.LongType(), nullable=False)])
FULL = struct(x=T.ArrayType(T.LongType(), containsNull=False))


@pytest.mark.parametrize(
    ("schema", "value", "cause"),
    [
        (
            struct(x=T.LongType()),
            "5",
            "ArrowInvalid: Could not convert '5' with type str: tried to convert to int64",
        ),
        (struct(x=T.LongType()), 2.0, "2.0 is not a whole number: use int()"),
        (struct(x=T.LongType()), True, "True is not a whole number: use int()"),
        (struct(x=T.LongType()), 2**63, "OverflowError: "),
        (struct(x=T.ByteType()), 128, "ArrowInvalid: Value 128 too large to fit in C integer type"),
        (struct(x=T.StringType()), 5, "5 is not a string"),
        (struct(x=T.BinaryType()), "x", "'x' is not bytes"),
        (struct(x=T.BooleanType()), 1, "ArrowInvalid: Could not convert 1 with type int"),
        (struct(x=T.DecimalType(4, 2)), Decimal("1.234"), "ArrowInvalid: Rescaling Decimal"),
        (struct(x=T.DateType()), AWARE, f"{AWARE!r} is not a date without a time of day: use value.date()"),
        (struct(x=T.TimestampType()), "2026-01-01", "'2026-01-01' is not a datetime"),
        (struct(x=T.TimestampType()), date(2026, 1, 1), "datetime.date(2026, 1, 1) is not a datetime"),
        (
            struct(x=T.TimestampNTZType()),
            AWARE,
            f"{AWARE!r} has a time zone and timestamp_ntz has none: use the type timestamp, or "
            "value.replace(tzinfo=None)",
        ),
        (struct(x=T.MapType(T.StringType(), T.LongType())), [("a", 1)], "[('a', 1)] is not a dictionary"),
        (
            struct(x=T.MapType(T.StringType(), T.LongType())),
            {None: 1},
            "its key is None, but it is not null in the",
        ),
        (struct(x=T.ArrayType(T.StringType())), "abc", "'abc' is not a list"),
        (FULL, [1, None], "its element is None, but it is not null in the schema"),
        (NOT_NULL, None, "None, but the column is not null"),
    ],
)
def test_values_that_do_not_fit(schema: Any, value: Any, cause: str) -> None:
    fine: Any = {"LongType": 1, "ArrayType": [1]}.get(type(schema.fields[0].dataType).__name__)
    records = [{"x": fine}, {"x": value}] if fine is not None else [{"x": value}]
    if schema.fields[0].dataType == T.ArrayType(T.StringType()):
        records = [{"x": value}]
    first, why, way_out = message(schema, *records)
    kind = schema.fields[0].dataType.simpleString()
    assert (
        first
        == f"NotSerializable [EF2103]: the record {{'x': {value!r}}} does not fit the column 'x' ({kind})"
    )
    assert why.startswith(f"  cause: {cause}")
    assert (
        way_out
        == "  what to do: give to_dataframe() a schema that matches the records, or map them before it"
    )


@pytest.mark.parametrize("into_spark", [True, False])
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (T.VariantType(), "variant"),
        (T.YearMonthIntervalType(), "interval year to month"),
        (T.CalendarIntervalType(), "interval"),
        (T.MapType(struct(a=T.LongType()), T.LongType()), "map<struct<a:bigint>,bigint>"),
    ],
)
def test_unsupported_types_are_rejected_before_the_query(kind: Any, text: str, into_spark: bool) -> None:
    for schema, place in (
        (struct(ok=T.LongType(), v=kind), "v"),
        (struct(s=struct(v=T.ArrayType(kind))), "s.v"),
    ):
        with pytest.raises(NotSupported) as caught:
            check_types(schema, into_spark=into_spark)
        assert (
            caught.value.message
            == f"the column {place!r} has the type {text}, which records cannot represent"
        )
        assert caught.value.way_out


def test_two_columns_with_the_same_name_are_rejected() -> None:
    twice = T.StructType([T.StructField("a", T.LongType()), T.StructField("a", T.StringType())])
    with pytest.raises(NotSupported, match="two columns named 'a'"):
        check_types(twice, into_spark=False)


def test_time_zones_as_spark_writes_them() -> None:
    assert zone_of("Z") is UTC
    assert zone_of(PARIS) == ZoneInfo(PARIS)
    for name, hours in (("+01:00", 1), ("-08:30", -8.5), ("UTC+2", 2), ("GMT-03:00", -3)):
        assert zone_of(name).utcoffset(None) == timedelta(hours=hours)
    for name in ("Mars/Base", "", "../etc/passwd"):
        with pytest.raises(InvalidArgument, match="is not known to Python"):
            zone_of(name)
