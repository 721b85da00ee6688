"""DataFrames in and out (B19): batch and streaming on Spark, tables of any kind on local."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from emberflow.connectors.dataframe import column_names
from emberflow.errors import InvalidArgument, NotSerializable
from emberflow.streams import Instant, Row, RuntimeExecutionMode, StreamExecutionEnvironment, Types
from emberflow.testing.spark_session import shared_session, spark_missing

ORDERS = [{"user": "ann", "amount": 3}, {"user": "bob", "amount": 4}, {"user": "ann", "amount": 5}]
TOTALS = [("ann", 8), ("bob", 4)]
"""Of a table, which is a batch: one final value per key."""


class Order(NamedTuple):
    user: str
    amount: int


def totals(env: StreamExecutionEnvironment, table: Any) -> Any:
    return (
        env.from_dataframe(table)
        .key_by(lambda row: row["user"])
        .sum("amount")
        .map(lambda row: (row["user"], row["amount"]))
    )


def local() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(engine="local")


@pytest.fixture
def spark() -> Any:
    if spark_missing():
        pytest.skip(f"B19 on Spark: {spark_missing()}")
    return shared_session()


def on(spark: Any) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(engine="spark", spark=spark, parallelism=2)


@pytest.mark.parametrize(
    "table", [ORDERS, [Order(**row) for row in ORDERS]], ids=["dictionaries", "named tuples"]
)
def test_rows_on_local(table: Any) -> None:
    frame = totals(local(), table).to_dataframe("user string, total long")
    assert frame.columns == ["user", "total"]
    assert sorted(tuple(row.values()) for row in frame) == TOTALS


def test_pandas_and_arrow_tables_on_local() -> None:
    pandas = pytest.importorskip("pandas", reason="B19: a pandas table needs pandas")
    pyarrow = pytest.importorskip("pyarrow", reason="B19: an Arrow table needs pyarrow")
    for table in (pandas.DataFrame(ORDERS), pyarrow.Table.from_pylist(ORDERS)):
        frame = totals(local(), table).to_dataframe(["user", "total"])
        assert sorted(frame.to_pandas().itertuples(index=False, name=None)) == TOTALS


def test_rows_without_names_are_rejected_on_local() -> None:
    with pytest.raises(InvalidArgument, match="has no column names"):
        totals(local(), [1, 2]).to_dataframe("user string, total long")


def test_maps_and_times_of_an_arrow_table_on_local() -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="B19: an Arrow table needs pyarrow")
    at = datetime(2026, 7, 1, 12, tzinfo=UTC)
    table = pyarrow.table(
        {
            "tags": pyarrow.array([[("a", 1)]], pyarrow.map_(pyarrow.string(), pyarrow.int64())),
            "at": pyarrow.array([at], pyarrow.timestamp("us", tz="Asia/Tokyo")),
        }
    )
    [row] = local().from_dataframe(table).to_dataframe("tags map<string, bigint>, at timestamp")
    assert row == {"tags": {"a": 1}, "at": at}
    assert row["at"].tzinfo is UTC


def test_a_misspelt_column_is_an_error_on_local() -> None:
    with pytest.raises(NotSerializable) as caught:
        local().from_collection([{"usr": "ann", "total": 3}]).to_dataframe("user string, total long")
    assert str(caught.value).splitlines() == [
        "NotSerializable [EF2103]: the record {'usr': 'ann', 'total': 3} does not match the schema's columns: missing "
        "'user'; unexpected 'usr'; did it write 'usr' for 'user'?",
        "  what to do: emit dictionaries with exactly the schema's columns (a value may be None), or tuples in the order "
        "of the schema",
    ]


def test_names_of_columns_that_are_quoted() -> None:
    schema = "`a, b` string, c: struct<x: int, y: map<string, int>>, `d``e` decimal(3, 1)"
    assert column_names(schema) == ["a, b", "c", "d`e"]


@pytest.mark.spark
def test_a_batch_frame_in_and_out(spark: Any) -> None:
    frame = totals(on(spark), spark.createDataFrame(ORDERS)).to_dataframe("user string, total long")
    assert not frame.isStreaming
    assert sorted(tuple(row) for row in frame.where("total > 0").collect()) == TOTALS


@pytest.mark.spark
def test_records_that_do_not_fit_the_schema(spark: Any) -> None:
    frame = totals(on(spark), spark.createDataFrame(ORDERS)).to_dataframe("user long, total long")
    with pytest.raises(Exception, match=NotSerializable.__name__):
        frame.collect()


def write_orders(folder: Path) -> None:
    folder.mkdir()
    for number, order in enumerate(ORDERS):
        (folder / f"{number}.json").write_text(json.dumps(order) + "\n")


@pytest.mark.spark
def test_a_streaming_frame_in(spark: Any, tmp_path: Path) -> None:
    write_orders(tmp_path / "in")
    stream = spark.readStream.schema("user string, amount long").json(str(tmp_path / "in"))
    found = totals(on(spark), stream).execute_and_collect(limit=3)
    assert {total for _, total in found} >= {4, 8}


@pytest.mark.spark
def test_a_streaming_frame_out(spark: Any, tmp_path: Path) -> None:
    write_orders(tmp_path / "in")
    stream = spark.readStream.schema("user string, amount long").json(str(tmp_path / "in"))
    frame = totals(on(spark), stream).to_dataframe("user string, total long")
    assert frame.isStreaming
    query = (
        frame.writeStream.format("memory")
        .queryName("totals_of_a_stream")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120), "the query did not end by itself"
    found = [tuple(row) for row in spark.sql("select * from totals_of_a_stream").collect()]
    assert len(found) == 3
    assert max(total for user, total in found if user == "ann") == 8


SALE = Types.ROW_NAMED(
    ["user", "amount", "at", "tags", "items"],
    [
        Types.STRING(),
        Types.INT(),
        Types.INSTANT(),
        Types.MAP(Types.STRING(), Types.DOUBLE()),
        Types.OBJECT_ARRAY(Types.ROW_NAMED(["name", "n"], [Types.STRING(), Types.BYTE()])),
    ],
)
AT = datetime(2026, 7, 1, 12, tzinfo=UTC)
SALES = [("ann", 3, AT, {"a": 1}, [("pen", 1), None]), ("bob", None, None, None, [])]
SALE_ROWS = [
    Row(
        user="ann", amount=3, at=Instant.of_datetime(AT), tags={"a": 1.0}, items=[Row(name="pen", n=1), None]
    ),
    Row(user="bob", amount=None, at=None, tags=None, items=[]),
]


@dataclass
class Item:
    name: str
    n: int


@dataclass
class Sale:
    user: str
    amount: int | None
    at: datetime | None
    tags: dict[str, float] | None
    items: list[Item | None]


SALE_OBJECTS = [Sale("ann", 3, AT, {"a": 1.0}, [Item("pen", 1), None]), Sale("bob", None, None, None, [])]


def batch(spark: Any) -> StreamExecutionEnvironment:
    return on(spark).set_runtime_mode(RuntimeExecutionMode.BATCH)


def test_declared_types_make_a_table_and_its_rows_on_local() -> None:
    frame = local().from_collection(SALES, SALE).to_dataframe()
    assert frame.columns == ["user", "amount", "at", "tags", "items"]
    assert frame.to_arrow().num_rows == 2
    assert list(local().from_dataframe(frame, type_info=SALE).execute_and_collect()) == SALE_ROWS
    objects = local().from_collection(SALE_OBJECTS).to_dataframe(Sale)
    assert list(local().from_dataframe(objects, type_info=Sale).execute_and_collect()) == SALE_OBJECTS


@pytest.mark.spark
def test_declared_types_make_a_table_and_its_rows(spark: Any) -> None:
    """Rows and objects out to DataFrames whose schemas are derived, and in again: all of it in one batch."""
    rows = batch(spark).from_collection(SALES, SALE).to_dataframe()
    assert rows.schema.simpleString() == (
        "struct<user:string,amount:int,at:timestamp,tags:map<string,double>,items:array<struct<name:string,n:tinyint>>>"
    )
    objects = batch(spark).from_collection(SALE_OBJECTS, Sale).to_dataframe()
    assert objects.schema["items"].dataType.simpleString() == "array<struct<name:string,n:bigint>>"
    env = batch(spark)
    both = (
        env.from_dataframe(spark.createDataFrame(rows.collect(), rows.schema), type_info=SALE)
        .map(lambda row: ("rows", row))
        .union(
            env.from_dataframe(spark.createDataFrame(objects.collect(), objects.schema), type_info=Sale).map(
                lambda sale: ("objects", sale)
            )
        )
    )
    found = sorted(both.execute_and_collect(), key=lambda pair: (pair[0], pair[1].user))
    assert [value for name, value in found if name == "rows"] == SALE_ROWS
    assert [value for name, value in found if name == "objects"] == SALE_OBJECTS
