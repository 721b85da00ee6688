"""How PyFlink prints records of declared types; the forms were compared with PyFlink 2.3."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from emberflow.events.types.printing import printer_of
from emberflow.streams import Instant, Row, RowKind, TypeInformation, Types

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
NAMED = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])


@pytest.mark.parametrize(
    ("declared", "value", "expected"),
    [
        (PAIR, ("And", 5), "(And,5)"),
        (NAMED, Row(word="And", n=5), "+I[And,5]"),
        (NAMED, Row.of_kind(RowKind.UPDATE_AFTER, word="And", n=None), "+U[And,None]"),
        (Types.ROW([PAIR, Types.BOOLEAN()]), Row(("a", 1), True), "+I[('a', 1),True]"),
        (Types.TUPLE([PAIR, Types.DOUBLE()]), (("a", 1), 1.0), "((a,1),1.0)"),
        (Types.STRING(), "it's", "it's"),
        (Types.INT(), 5, "5"),
        (Types.BOOLEAN(), True, "true"),
        (Types.DOUBLE(), 0.1, "0.1"),
        (Types.DOUBLE(), 1e10, "1.0E10"),
        (Types.DOUBLE(), 1.5e-5, "1.5E-5"),
        (Types.DOUBLE(), 0.001, "0.001"),
        (Types.DOUBLE(), 9999999.5, "9999999.5"),
        (Types.DOUBLE(), -12345678.0, "-1.2345678E7"),
        (Types.DOUBLE(), float("nan"), "NaN"),
        (Types.DOUBLE(), float("-inf"), "-Infinity"),
        (Types.DOUBLE(), -0.0, "-0.0"),
        (Types.FLOAT(), 0.10000000149011612, "0.1"),
        (Types.BIG_DEC(), Decimal("1.50"), "1.50"),
        (Types.SQL_DATE(), dt.date(2026, 1, 2), "2026-01-02"),
        (Types.SQL_TIME(), dt.time(3, 4, 5), "03:04:05"),
        (Types.SQL_TIMESTAMP(), dt.datetime(2026, 1, 2, 3, 4, 5), "2026-01-02 03:04:05.0"),
        (Types.SQL_TIMESTAMP(), dt.datetime(2026, 1, 2, 3, 4, 5, 120000), "2026-01-02 03:04:05.12"),
        (Types.INSTANT(), Instant(0, 0), "1970-01-01T00:00:00Z"),
        (Types.INSTANT(), Instant(1, 5_000_000), "1970-01-01T00:00:01.005Z"),
        (Types.LIST(Types.INT()), [1, 2], "[1, 2]"),
        (Types.MAP(Types.STRING(), Types.BOOLEAN()), {"a": True, "b": None}, "{a=true, b=null}"),
        (Types.TUPLE([NAMED, Types.BASIC_ARRAY(Types.STRING())]), (Row("a", 1), ["x", None]), "(+I[a, 1],[x, null])"),
    ],
)  # fmt: skip
def test_printed(declared: TypeInformation[Any], value: Any, expected: str) -> None:
    printed = printer_of(declared) or str
    assert printed(value) == expected


def test_what_is_undeclared_is_printed_by_str() -> None:
    assert printer_of(None) is None
    assert printer_of(Types.PICKLED_BYTE_ARRAY()) is None
