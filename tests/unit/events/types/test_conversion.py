"""What fits a declared type, what is converted and what is refused: PyFlink's coders, value by value."""

from __future__ import annotations

import datetime as dt
from collections import namedtuple
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from emberflow.errors import InvalidArgument
from emberflow.events.types.conversion import converter_of
from emberflow.events.types.converters import TypeMismatch
from emberflow.streams import Instant, Row, RowKind, TypeInformation, Types

ZONED = dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.timezone(dt.timedelta(hours=2)))
ANY: Any = Types
PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
NAMED = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])


@dataclass
class Word:
    word: str
    n: int


@dataclass(slots=True)
class SlottedWord:
    word: str
    n: int


Swapped = namedtuple("Swapped", ["n", "word"])
Other = namedtuple("Other", ["x", "y"])


@pytest.mark.parametrize(
    ("declared", "value", "expected"),
    [
        (Types.INT(), True, 1),
        (Types.INT(), 1.9, 1),
        (Types.INT(), Decimal("-3.5"), -3),
        (Types.BYTE(), -128, -128),
        (Types.BIG_INT(), 10**30, 10**30),
        (Types.FLOAT(), 1, 1.0),
        (Types.FLOAT(), 0.1, 0.10000000149011612),
        (Types.FLOAT(), 1e40, float("inf")),
        (Types.DOUBLE(), 1, 1.0),
        (Types.DOUBLE(), Decimal("1.5"), 1.5),
        (Types.BOOLEAN(), 1, True),
        (Types.BOOLEAN(), 2, True),
        (Types.BOOLEAN(), 0.5, False),
        (Types.BIG_DEC(), 0.1, Decimal("0.1")),
        (Types.BIG_DEC(), "2", Decimal(2)),
        (Types.SQL_DATE(), dt.datetime(2026, 1, 2, 3), dt.date(2026, 1, 2)),
        (Types.SQL_TIME(), dt.datetime(2026, 1, 2, 3), dt.time(3)),
        (Types.SQL_TIMESTAMP(), ZONED, dt.datetime(2026, 1, 2, 3, 4, 5, 6)),
        (Types.INSTANT(), ZONED, Instant(1767315845, 6000)),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), bytearray(b"ab"), b"ab"),
        (Types.PRIMITIVE_ARRAY(Types.INT()), (1, True), [1, 1]),
        (Types.BASIC_ARRAY(Types.DOUBLE()), [1, None], [1.0, None]),
        (Types.LIST(PAIR), [["a", 1]], [("a", 1)]),
        (Types.MAP(Types.STRING(), Types.DOUBLE()), {"a": 1, "b": None}, {"a": 1.0, "b": None}),
        (PAIR, ["a", 1], ("a", 1)),
        (PAIR, Row("a", True), ("a", 1)),
        (PAIR, Other("a", 1), ("a", 1)),
        (NAMED, ("a", 1.0), Row(word="a", n=1)),
        (NAMED, ["a", None], Row(word="a", n=None)),
        (NAMED, {"n": 1, "word": "a"}, Row(word="a", n=1)),
        (NAMED, Row("a", 1), Row(word="a", n=1)),
        (NAMED, Row(n=1, word="a"), Row(word="a", n=1)),
        (NAMED, Row.of_kind(RowKind.DELETE, "a", 1), Row.of_kind(RowKind.DELETE, word="a", n=1)),
        (NAMED, Word("a", 1), Row(word="a", n=1)),
        (NAMED, SlottedWord("a", 1), Row(word="a", n=1)),
        (NAMED, Swapped(1, "a"), Row(word="a", n=1)),
        (NAMED, Other("a", 1), Row(word="a", n=1)),
        (Types.ROW([NAMED]), [("a", 1)], Row(f0=Row(word="a", n=1))),
        (Types.PICKLED_BYTE_ARRAY(), None, None),
    ],
)
def test_what_is_converted(declared: TypeInformation[Any], value: Any, expected: Any) -> None:
    converter = converter_of(declared)
    for found in (converter.one(value), converter.column([value])[0], converter.column([value, value])[1]):
        assert found == expected
        assert type(found) is type(expected)
        # What has been converted is right.
        assert converter.one(found) == expected
        assert converter.column([found])[0] == expected


def test_rows_keep_the_order_of_the_declared_fields() -> None:
    assert list(converter_of(NAMED).one({"n": 1, "word": "a"})) == ["a", 1]


@pytest.mark.parametrize(
    ("declared", "value", "message"),
    [
        (Types.INT(), "1", "the value '1' is not of the type Integer"),
        (Types.INT(), None, "the value None is not of the type Integer"),
        (Types.INT(), 2**31, "the value 2147483648 is not of the type Integer (it is not between"),
        (Types.INT(), float("nan"), "the value nan is not of the type Integer"),
        (Types.BYTE(), 128, "not between -128 and 127"),
        (Types.SHORT(), -32769, "not between -32768 and 32767"),
        (Types.LONG(), 2**63, "not between"),
        (Types.DOUBLE(), "1", "the value '1' is not of the type Double"),
        (Types.STRING(), 1, "the value 1 is not of the type String"),
        (Types.STRING(), None, "the value None is not of the type String"),
        (Types.BOOLEAN(), "", "the value '' is not of the type Boolean"),
        (Types.BIG_DEC(), "x", "the value 'x' is not of the type BigDecimal"),
        (Types.SQL_DATE(), "2026-01-01", "is not of the type DateTypeInfo"),
        (Types.SQL_TIMESTAMP(), dt.date(2026, 1, 1), "is not of the type TimestampTypeInfo"),
        (Types.INSTANT(), dt.datetime(2026, 1, 1), "with a time zone"),
        (Types.PRIMITIVE_ARRAY(Types.INT()), [1, None], "element 1: the value None is not of the type Integer"),
        (Types.LIST(Types.INT()), "ab", "the value 'ab' is not of the type ListTypeInfo<Integer>"),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), [1], "PrimitiveArrayTypeInfo<Byte>"),
        (Types.MAP(Types.STRING(), Types.INT()), {"a": "x"}, "the value of key 'a': the value 'x'"),
        (Types.MAP(Types.STRING(), Types.INT()), {None: 1}, "a key: the value None"),
        (Types.MAP(Types.STRING(), Types.INT()), [("a", 1)], "MapTypeInfo<String, Integer>"),
        (PAIR, ("a",), "TupleTypeInfo(String, Integer) (it has 1 fields)"),
        (PAIR, ("a", None), "field 'f1': the value None is not of the type Integer"),
        (PAIR, "ab", "the value 'ab' is not of the type TupleTypeInfo"),
        (NAMED, ("a", 1, 2), "(it has 3 fields)"),
        (NAMED, {"word": "a", "m": 1}, "(missing 'n'; unexpected 'm')"),
        (NAMED, Row(word="a"), "(missing 'n')"),
        (NAMED, 5, "the value 5 is not of the type RowTypeInfo(word: String, n: Integer)"),
        (NAMED, None, "the value None"),
        (Types.LIST(Types.ROW([NAMED])), [[("a", "x")]], "field 'n' of field 'f0' of element 0: the value 'x'"),
    ],
)  # fmt: skip
def test_what_does_not_fit(declared: TypeInformation[Any], value: Any, message: str) -> None:
    converter = converter_of(declared)
    with pytest.raises(TypeMismatch) as caught:
        converter.one(value)
    assert message in str(caught.value)
    with pytest.raises(TypeMismatch):
        converter.column([value])


def test_right_values_are_passed_on_as_they_are() -> None:
    values = [("a", 1), ("b", 2)]
    assert converter_of(PAIR).column(values) is values
    rows = converter_of(NAMED).column(values)
    assert converter_of(NAMED).column(rows) is rows


def test_numpy_values() -> None:
    numpy = pytest.importorskip("numpy", reason="B21: numbers of numpy need numpy")
    found = converter_of(NAMED).one(("a", numpy.int64(3)))
    assert type(found.n) is int
    assert type(converter_of(Types.DOUBLE()).one(numpy.float32(0.5))) is float


@pytest.mark.parametrize(
    "make",
    [
        lambda: ANY.LIST(Types.INT),
        lambda: ANY.TUPLE([str]),
        lambda: Types.ROW_NAMED(["a"], []),
        lambda: Types.ROW_NAMED(["a", "a"], [Types.INT(), Types.INT()]),
        lambda: Types.PRIMITIVE_ARRAY(Types.STRING()),
        lambda: Types.BASIC_ARRAY(PAIR),
        lambda: ANY.MAP(Types.STRING(), None),
    ],
)
def test_types_that_do_not_exist(make: Any) -> None:
    with pytest.raises(InvalidArgument):
        make()


def test_names_as_pyflink_shows_them() -> None:
    assert repr(NAMED) == "RowTypeInfo(word: String, n: Integer)"
    assert repr(Types.ROW([Types.LONG()])) == "RowTypeInfo(Long)"
    assert repr(PAIR) == "TupleTypeInfo(String, Integer)"
    assert (
        repr(Types.MAP(Types.STRING(), Types.LIST(Types.FLOAT())))
        == "MapTypeInfo<String, ListTypeInfo<Float>>"
    )
    assert NAMED.get_field_names() == ["word", "n"]
    assert (NAMED.get_field_index("n"), NAMED.get_field_index("x")) == (1, -1)
    assert Types.ROW([Types.INT(), Types.INT()]).get_field_names() == ["f0", "f1"]
    assert NAMED.get_field_types() == [Types.STRING(), Types.INT()]
    assert NAMED == Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()]) != PAIR
    assert hash(NAMED) == hash(Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()]))
