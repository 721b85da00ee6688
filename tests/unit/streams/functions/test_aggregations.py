"""`sum`, `min`, … on values that they do not fit: the error names the step, the value, the field and the reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import numpy
import pytest
from pydantic import BaseModel

from emberflow.errors import InvalidArgument, StepFailed
from emberflow.streams import DataStream, Row, StreamExecutionEnvironment, TumblingEventTimeWindows, Types
from emberflow.testing import LOCAL, TestSource, Timed


def run(kind: str, values: list[Any], field: Any) -> list[Any]:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    keyed = env.from_collection(values).key_by(lambda _: "k")
    return getattr(keyed, kind)(field).execute_and_collect(limit=10)


@pytest.mark.parametrize(
    ("values", "field", "last"),
    [
        ([numpy.int64(3), numpy.int64(4)], 0, 7),
        ([Decimal("1.5"), Decimal(2)], 0, Decimal("3.5")),
        ([True, True], 0, 2),
        ([1, 2j], 0, 1 + 2j),
    ],
)
def test_numbers_of_every_kind(values: list[Any], field: Any, last: Any) -> None:
    assert run("sum", values, field)[-1] == last


@pytest.mark.parametrize(
    ("values", "field", "cause"),
    [
        (["a", "b"], 0, "the value 'a' has no field 0"),
        ([("a",), ("b",)], 1, "the value ('a',) has no field 1"),
        ([("a", 1), ("a", 2)], "x", "the value ('a', 1) has no field 'x'"),
        ([("a", 1), ("a", 2)], 1.0, "the value ('a', 1) has no field 1.0"),
        ([{"n": 1}, {"m": 1}], "n", "the value {'m': 1} has no field 'n'"),
        ([{1}, {2}], 0, "the value {1} has no field 0"),
        ([Row(n=1), Row(n=2)], "x", "the value Row(n=1) has no field 'x'"),
        ([Row(1), Row(2)], 3, "the value <Row(1)> has no field 3"),
        ([Row(n=1), Row(m=2)], "n", "the value Row(m=2) has no field 'n'"),
        ([("a", 1), ("a", None)], 1, "sum(1) of 1 and None failed: TypeError: unsupported operand"),
        ([("a", 1), ("a", "x")], 1, "sum(1) of 1 and 'x' failed: TypeError: unsupported operand"),
    ],
)
def test_the_error_says_what_is_wrong(values: list[Any], field: Any, cause: str) -> None:
    with pytest.raises(StepFailed) as raised:
        run("sum", values, field)
    assert "step 'sum' (sum at test_aggregations.py:" in str(raised.value)
    assert f"cause: TypeError: {cause}" in str(raised.value)


def test_values_that_cannot_be_compared() -> None:
    with pytest.raises(
        StepFailed, match=r"cause: TypeError: max_by\(1\) of 1 and 'x' failed: TypeError: '>' not"
    ):
        run("max_by", [("a", 1), ("a", "x")], 1)


@pytest.mark.parametrize("kind", ["sum", "min", "max", "min_by", "max_by"])
@pytest.mark.parametrize(("record", "field"), [({"n": 1}, "m"), (("a", 1), 2), (Row(n=1), "m")])
def test_the_first_record_of_a_key_must_have_the_field(kind: str, record: Any, field: Any) -> None:
    with pytest.raises(StepFailed, match=f"has no field {field!r}"):
        run(kind, [record], field)


def test_the_first_record_of_a_window_must_have_the_field() -> None:
    with pytest.raises(StepFailed, match="has no field 'm'"):
        LOCAL.run(
            lambda env: (
                env.add_source(TestSource([Timed({"n": 1}, 1)]))
                .key_by(lambda _: "k")
                .window(TumblingEventTimeWindows.of(timedelta(seconds=1)))
                .sum("m")
            )
        )


@dataclass
class Sale:
    user: str
    amount: int

    @property
    def half(self) -> float:
        return self.amount / 2


class Pair(NamedTuple):
    user: str
    amount: int


class Model(BaseModel):
    user: str
    amount: int


class Open(BaseModel, extra="allow"):
    user: str


@dataclass
class Computed:
    user: str

    def __post_init__(self) -> None:
        self.amout = len(self.user)


NAMED = Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.INT()])


def declared(kind: Any) -> DataStream[Any]:
    return StreamExecutionEnvironment.get_execution_environment(engine="local").from_collection([], kind)


USES: dict[str, Callable[[DataStream[Any], Any], Any]] = {
    "key_by": lambda stream, field: stream.key_by(field),
    "sum": lambda stream, field: stream.key_by(len).sum(field),
    "min": lambda stream, field: stream.key_by(len).min(field),
    "max": lambda stream, field: stream.key_by(len).max(field),
    "min_by": lambda stream, field: stream.key_by(len).min_by(field),
    "max_by": lambda stream, field: stream.key_by(len).filter(bool).key_by(len).max_by(field),
}


@pytest.mark.parametrize("method", USES)
@pytest.mark.parametrize("kind", [NAMED, Sale, Pair, Model])
def test_a_field_that_the_declared_type_lacks_is_refused_with_the_closest_name(
    method: str, kind: Any
) -> None:
    USES[method](declared(kind), "amount")
    with pytest.raises(InvalidArgument) as raised:
        USES[method](declared(kind), "amout")
    assert raised.value.message.startswith(f"{method}('amout'): the declared type of the records, ")
    assert raised.value.message.endswith(" has no field 'amout'; did you mean 'amount'?")
    assert str(raised.value.way_out).startswith("name one of its fields: user, amount")


@pytest.mark.parametrize(
    "kind", [NAMED, Types.TUPLE([Types.STRING(), Types.INT()]), Types.ROW([Types.INT()] * 2)]
)
def test_a_position_outside_of_the_declared_type_is_refused(kind: Any) -> None:
    for position in (0, 1, -1, -2):
        declared(kind).key_by(position).sum(position)
    for position in (2, -3):
        with pytest.raises(InvalidArgument, match="a position from 0 to 1"):
            declared(kind).key_by(position)
        with pytest.raises(InvalidArgument, match=f"has no field {position}"):
            declared(kind).key_by(len).max(position)


def test_windows_refuse_a_field_that_the_declared_type_lacks() -> None:
    assigner = TumblingEventTimeWindows.of(timedelta(seconds=1))
    with pytest.raises(InvalidArgument, match="did you mean 'amount'"):
        declared(NAMED).key_by("user").window(assigner).min_by("amout")


def test_a_field_that_the_declared_type_may_have_is_accepted() -> None:
    declared(Sale).key_by("half")
    declared(Open).key_by("amout")
    declared(Computed).key_by("amout")
    declared(Types.ROW([Types.INT()] * 2)).key_by("f1").sum("f0")
    declared(Types.MAP(Types.STRING(), Types.INT())).key_by("amout")
    # Numbers have no fields; what is given is ignored.
    declared(Types.INT()).key_by(str).sum("amout")
    # No type is declared for what the function returns.
    declared(NAMED).map(str).key_by("amout")
