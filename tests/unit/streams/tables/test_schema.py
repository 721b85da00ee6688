"""Schemas of tables: types, the two expressions, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from emberflow.errors import InvalidArgument, NotSupported
from emberflow.events.types.instant import Instant
from emberflow.streams import Types
from emberflow.streams.tables import DataTypes, Schema
from emberflow.streams.tables.data_types import data_type_of
from emberflow.streams.tables.time_expressions import behind, to_timestamp

BUILDER = Schema.new_builder


def test_columns_have_the_types_of_streams() -> None:
    nested = DataTypes.ROW([DataTypes.FIELD("x", DataTypes.INT()), DataTypes.FIELD("y", DataTypes.DOUBLE())])
    schema = (
        BUILDER()
        .column("id", DataTypes.STRING().not_null())
        .column("n", "bigint not null")
        .column("tags", DataTypes.ARRAY(DataTypes.STRING()))
        .column("by_name", DataTypes.MAP(DataTypes.STRING(), DataTypes.FLOAT()))
        .column("point", nested)
        .column("at", "TIMESTAMP(3)")
        .build()
    )
    assert schema.row_type == Types.ROW_NAMED(
        ["id", "n", "tags", "by_name", "point", "at"],
        [
            Types.STRING(),
            Types.LONG(),
            Types.OBJECT_ARRAY(Types.STRING()),
            Types.MAP(Types.STRING(), Types.FLOAT()),
            Types.ROW_NAMED(["x", "y"], [Types.INT(), Types.DOUBLE()]),
            Types.SQL_TIMESTAMP(),
        ],
    )
    assert str(schema) == (
        "(`id` STRING NOT NULL, `n` BIGINT NOT NULL, `tags` ARRAY<STRING>, `by_name` MAP<STRING, FLOAT>, "
        "`point` ROW<`x` INT, `y` DOUBLE>, `at` TIMESTAMP(3))"
    )
    assert data_type_of(schema.row_type, "row").type_info == schema.row_type
    assert BUILDER().from_schema(schema).build() == schema


@pytest.mark.parametrize(
    ("text", "value", "millis"),
    [
        ("TO_TIMESTAMP_LTZ(`ts` * 1000, 3)", 7, 7_000),
        ("TO_TIMESTAMP_LTZ(ts, 3)", 7, 7),
        ("to_timestamp_ltz( ts , 0 )", 7, 7_000),
        ("TO_TIMESTAMP_LTZ(ts)", -1, -1),
    ],
)
def test_a_number_becomes_a_point_in_time(text: str, value: int, millis: int) -> None:
    compute = to_timestamp(text, "rowtime")
    assert compute.column == "ts"
    assert compute(value) == Instant.of_epoch_milli(millis)
    assert compute(None) is None


@pytest.mark.parametrize(
    ("text", "delay_ms"),
    [
        ("rowtime", 0),
        ("`rowtime` - INTERVAL '0' SECOND", 0),
        ("rowtime - INTERVAL '0.001' SECOND", 1),
        ("rowtime - interval '5' minutes", 300_000),
        ("rowtime - INTERVAL '2' DAY", 172_800_000),
    ],
)
def test_a_watermark_is_behind_its_column(text: str, delay_ms: int) -> None:
    assert behind(text, "rowtime").delay_ms == delay_ms


def timed() -> Any:
    return BUILDER().column("ts", DataTypes.BIGINT()).column("s", DataTypes.STRING())


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "expression": (lambda: timed().column_by_expression("u", "UPPER(s)"), NotSupported, "'UPPER\\(s\\)'"),
    "precision": (lambda: timed().column_by_expression("r", "TO_TIMESTAMP_LTZ(ts, 6)"), NotSupported, "'r'"),
    "watermark": (lambda: timed().watermark("r", "r - INTERVAL '1' MONTH"), NotSupported, "MONTH"),
    "watermark of another column": (lambda: timed().watermark("r", "ts"), NotSupported, "'r'"),
    "metadata": (lambda: timed().column_by_metadata("m", DataTypes.INT()), NotSupported, "metadata"),
    "key": (lambda: timed().primary_key("s"), NotSupported, "primary key"),
    "decimal": (lambda: DataTypes.DECIMAL(10, 2), NotSupported, "DECIMAL"),
    "named type": (lambda: BUILDER().column("a", "VARCHAR(3)"), NotSupported, "VARCHAR"),
    "type without parentheses": (
        lambda: BUILDER().column("a", DataTypes.INT),  # pyright: ignore[reportArgumentType]
        InvalidArgument,
        "parentheses",
    ),
    "two of one name": (lambda: timed().column("s", DataTypes.INT()), InvalidArgument, "'s'"),
    "no column": (lambda: BUILDER().build(), InvalidArgument, "needs a column"),
    "computed from a string": (
        lambda: timed().column_by_expression("r", "TO_TIMESTAMP_LTZ(s, 3)").build(),
        InvalidArgument,
        "'s', which is STRING",
    ),
    "computed from nothing": (
        lambda: timed().column_by_expression("r", "TO_TIMESTAMP_LTZ(tss, 3)").build(),
        InvalidArgument,
        "did you mean 'ts'",
    ),
    "watermark of a number": (
        lambda: timed().watermark("ts", "ts").build(),
        InvalidArgument,
        "'ts' is BIGINT",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_schema_cannot_have_is_refused(case: str) -> None:
    do, error, text = REFUSED[case]
    with pytest.raises(error, match=text):
        do()
