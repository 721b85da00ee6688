"""Table schemas of declared types and of classes with fields, and objects of such classes from rows of tables."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from emberflow.connectors.dataframe import schema_of
from emberflow.errors import InvalidArgument
from emberflow.events.types.conversion import converter_of
from emberflow.events.types.converters import TypeMismatch
from emberflow.events.types.object_types import declared_type
from emberflow.events.types.schemas import table_schema
from emberflow.streams import Instant, StreamExecutionEnvironment, Types


@dataclass
class Item:
    name: str
    price: Decimal


class Place(NamedTuple):
    x: int
    y: float


@dataclass(frozen=True)
class Order:
    id: int
    items: list[Item]
    place: Place | None = None
    tags: dict[str, Item] | None = None
    at: dt.datetime | None = None
    seen: Instant | None = None
    pair: tuple[str, int] = ("", 0)
    numbers: tuple[int, ...] = ()


def local() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(engine="local")


def test_the_schema_of_declared_types() -> None:
    inner = Types.ROW_NAMED(["a", "b`c"], [Types.BYTE(), Types.PRIMITIVE_ARRAY(Types.BYTE())])
    declared = Types.ROW_NAMED(
        ["s", "n", "r", "m", "t"],
        [
            Types.STRING(),
            Types.SHORT(),
            inner,
            Types.MAP(Types.STRING(), Types.OBJECT_ARRAY(Types.TUPLE([Types.LONG(), Types.FLOAT()]))),
            Types.SQL_TIMESTAMP(),
        ],
    )
    assert table_schema(declared) == (
        "`s` string, `n` smallint, `r` struct<`a`: tinyint, `b``c`: binary>, "
        "`m` map<string, array<struct<`f0`: bigint, `f1`: float>>>, `t` timestamp_ntz"
    )
    assert table_schema(Types.TUPLE([Types.INT(), Types.BIG_DEC()])) == "`f0` int, `f1` decimal(38,18)"
    assert table_schema(Types.INSTANT()) == "`f0` timestamp"


def test_the_schema_of_classes() -> None:
    assert table_schema(Order) == (
        "`id` bigint, `items` array<struct<`name`: string, `price`: decimal(38,18)>>, "
        "`place` struct<`x`: bigint, `y`: double>, `tags` map<string, struct<`name`: string, `price`: decimal(38,18)>>, "
        "`at` timestamp, `seen` timestamp, `pair` struct<`f0`: string, `f1`: bigint>, `numbers` array<bigint>"
    )
    assert table_schema(Place) == "`x` bigint, `y` double"


@dataclass
class Odd:
    what: object


@pytest.mark.parametrize(
    "declared", [Odd, Types.PICKLED_BYTE_ARRAY(), Types.ROW([Types.PICKLED_BYTE_ARRAY()])]
)
def test_types_that_no_column_has(declared: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"the column '\w+' cannot have the type"):
        table_schema(declared)


def test_a_schema_is_needed() -> None:
    with pytest.raises(InvalidArgument, match="the records have no declared type"):
        local().from_collection([1]).to_dataframe()
    assert schema_of("a long", Types.INT()) == "a long"
    assert schema_of(["a"], None) == ["a"]


def test_objects_from_rows_of_a_table() -> None:
    at = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
    row = {
        "id": 1,
        "items": [{"name": "pen", "price": Decimal(2)}],
        "place": {"x": 1, "y": 2.0},
        "tags": {"a": {"name": "ink", "price": Decimal(1)}},
        "at": at,
        "seen": at,
        "pair": {"f0": "a", "f1": 2},
        "numbers": [1, 2],
    }
    [order] = local().from_dataframe([row], type_info=Order).execute_and_collect(limit=1)
    pen, ink = Item("pen", Decimal(2)), Item("ink", Decimal(1))
    expected = Order(1, [pen], Place(1, 2.0), {"a": ink}, at, Instant.of_datetime(at), ("a", 2), (1, 2))
    assert order == expected
    assert type(order.place) is Place
    assert converter_of(declared_type(Order) or Types.INT()).one(expected) is expected


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"x": 1}, "missing 1 required positional argument: 'y'"),
        ({"x": 1, "y": 2.0, "z": 3}, "unexpected keyword argument 'z'"),
        ((1, 2.0), "is not of the type Place"),
    ],
)
def test_rows_that_do_not_fit_a_class(row: Any, reason: str) -> None:
    declared = declared_type(Place)
    assert declared is not None
    with pytest.raises(TypeMismatch, match=reason):
        converter_of(declared).one(row)


def test_nested_rows_that_do_not_fit_a_class() -> None:
    declared = declared_type(Order)
    assert declared is not None
    with pytest.raises(TypeMismatch, match="field 'place': the value 5 is not of the type Place"):
        converter_of(declared).one({"id": 1, "items": [], "place": 5})


@pytest.mark.parametrize("declared", [Types.INT(), int, "a long", Types.TUPLE([Types.INT()])])
def test_types_that_rows_of_a_table_cannot_have(declared: Any) -> None:
    with pytest.raises(InvalidArgument, match="the rows of a table cannot be of the type"):
        local().from_dataframe([], type_info=declared)


def test_a_pydantic_model() -> None:
    pydantic = pytest.importorskip("pydantic", reason="B19: a Pydantic model needs pydantic")

    class Inner(pydantic.BaseModel):
        n: int

    class Model(pydantic.BaseModel):
        name: str
        inner: list[Inner]

    assert schema_of(Model, None).startswith("`name` string, `inner` array<struct<`n`: bigint>>")
    rows = [{"name": "a", "inner": [{"n": 1}]}]
    models = local().from_dataframe(rows, type_info=Model)
    frame = models.to_dataframe()
    assert frame.columns == ["name", "inner"]
    [found] = models.execute_and_collect(limit=1)
    assert found == Model(name="a", inner=[Inner(n=1)])
    declared = declared_type(Model)
    assert declared is not None
    with pytest.raises(TypeMismatch, match="valid integer"):
        converter_of(declared).one({"name": "a", "inner": [{"n": "x"}]})


def test_a_class_that_refers_to_a_local_one() -> None:
    @dataclass
    class Inner:
        n: int

    @dataclass
    class Outer:
        inner: Inner

    with pytest.raises(InvalidArgument, match="name 'Inner' is not defined"):
        table_schema(Outer)
