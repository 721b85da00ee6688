"""Any nested declared type: values that fit are stable under conversion, pickling and copying, and are printed as by a slow,
obvious model; columns give what single values give."""

from __future__ import annotations

import copy
import datetime as dt
import math
import pickle
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from emberflow.connectors.dataframe import DataFrameSource, LocalFrame, column_names, schema_of
from emberflow.connectors.table_rows import as_row
from emberflow.events.codecs import decode, encode
from emberflow.events.types.conversion import converter_of
from emberflow.events.types.converters import TypeMismatch
from emberflow.events.types.printing import printer_of
from emberflow.streams import Instant, Row, Types

TIMES = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1))
FINITE = st.floats(allow_nan=False, width=32)
LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (Types.STRING(), st.text(max_size=5)),
    (Types.CHAR(), st.text(max_size=1)),
    (Types.BYTE(), st.integers(-128, 127)),
    (Types.SHORT(), st.integers(-(2**15), 2**15 - 1)),
    (Types.INT(), st.integers(-(2**31), 2**31 - 1)),
    (Types.LONG(), st.integers(-(2**63), 2**63 - 1)),
    (Types.BIG_INT(), st.integers()),
    (Types.BOOLEAN(), st.booleans()),
    (Types.FLOAT(), FINITE),
    (Types.DOUBLE(), st.floats(allow_nan=False)),
    (Types.BIG_DEC(), st.decimals(allow_nan=False, allow_infinity=False)),
    (Types.SQL_DATE(), st.dates()),
    (Types.SQL_TIME(), st.times()),
    (Types.SQL_TIMESTAMP(), TIMES),
    (Types.INSTANT(), st.builds(Instant, st.integers(0, 10**9), st.integers(0, 10**9 - 1))),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), st.binary(max_size=4)),
    (Types.BASIC_ARRAY(Types.INT()), st.lists(st.none() | st.integers(-9, 9), max_size=3)),
]
HASHABLE = [leaf for leaf in LEAVES if leaf[0] not in (LEAVES[-1][0],)]
NAMES = ["a", "word", "n"]


@st.composite
def declared(draw: st.DrawFn, depth: int = 3) -> tuple[Any, st.SearchStrategy[Any]]:
    """A type, and a strategy for values that are of exactly this type."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(LEAVES))
    kind = draw(st.sampled_from(["tuple", "row", "named", "list", "array", "map"]))
    if kind in ("tuple", "row", "named"):
        fields = draw(st.lists(declared(depth - 1), min_size=1, max_size=3))
        types, values = [field[0] for field in fields], [field[1] for field in fields]
        if kind == "tuple":
            return Types.TUPLE(types), st.tuples(*values)
        names = NAMES[: len(types)] if kind == "named" else [f"f{at}" for at in range(len(types))]
        rows = st.tuples(*[st.none() | value for value in values]).map(_row(names))
        return (Types.ROW_NAMED(names, types) if kind == "named" else Types.ROW(types)), rows
    inner, values = draw(declared(depth - 1))
    if kind == "list" and inner != Types.BYTE():
        return Types.LIST(inner), st.lists(values, max_size=3)
    if kind == "map":
        key, keys = draw(st.sampled_from(HASHABLE))
        return Types.MAP(key, inner), st.dictionaries(keys, st.none() | values, max_size=3)
    return Types.OBJECT_ARRAY(inner), st.lists(st.none() | values, max_size=3)


def _row(names: list[str]) -> Any:
    return lambda values: Row(*names)(*values)


TYPED = declared().flatmap(
    lambda found: st.tuples(st.just(found[0]), st.lists(found[1], min_size=1, max_size=4))
)


def loosened(value: Any) -> Any:
    """The value as users write it: rows as dictionaries or tuples, tuples as lists."""
    if isinstance(value, Row):
        return {name: loosened(item) for name, item in value.as_dict().items()}
    if isinstance(value, tuple):
        return [loosened(item) for item in value]
    if isinstance(value, list):
        return tuple(loosened(item) for item in value)
    if isinstance(value, dict):
        return {key: loosened(item) for key, item in value.items()}
    return value


def kinds(value: Any) -> Any:
    """The classes of a value and of what is in it."""
    if isinstance(value, Row | tuple | list):
        return type(value), [kinds(item) for item in value]
    if isinstance(value, dict):
        return dict, [(kinds(key), kinds(item)) for key, item in value.items()]
    return type(value)


@given(TYPED)
def test_values_of_a_type_stay_as_they_are(typed: tuple[Any, list[Any]]) -> None:
    kind, values = typed
    converter = converter_of(kind)
    for found in ([converter.one(value) for value in values], list(converter.column(values))):
        assert found == values
        assert [kinds(value) for value in found] == [kinds(value) for value in values]


@given(TYPED)
def test_loose_values_become_values_of_the_type(typed: tuple[Any, list[Any]]) -> None:
    kind, values = typed
    converter = converter_of(kind)
    loose = [loosened(value) for value in values]
    for found in ([converter.one(value) for value in loose], list(converter.column(loose))):
        assert found == values
        assert [kinds(value) for value in found] == [kinds(value) for value in values]


@given(TYPED)
def test_values_come_back_from_storage(typed: tuple[Any, list[Any]]) -> None:
    kind, values = typed
    converted = list(converter_of(kind).column(values))
    for made in (decode(encode(converted)), pickle.loads(pickle.dumps(converted)), copy.deepcopy(converted)):
        assert made == converted
        assert list(converter_of(kind).column(made)) == converted
    assert b"emberflow." not in encode(converted)
    assert pickle.loads(pickle.dumps(kind)) == kind


@given(
    TYPED,
    st.lists(st.none() | st.integers() | st.text(max_size=2) | st.floats() | st.tuples(st.text(max_size=1))),
)
def test_columns_decide_as_single_values(typed: tuple[Any, list[Any]], others: list[Any]) -> None:
    kind, values = typed
    mixed = [*values, *others]
    converter = converter_of(kind)

    def single(value: Any) -> Any:
        try:
            return converter.one(value)
        except TypeMismatch:
            return TypeMismatch

    expected = [single(value) for value in mixed]
    try:
        found = list(converter.column(mixed))
    except TypeMismatch:
        assert TypeMismatch in expected
    else:
        assert repr(found) == repr(expected)


@given(TYPED)
def test_records_are_printed_on_one_line_each(typed: tuple[Any, list[Any]]) -> None:
    kind, values = typed
    printed = printer_of(kind) or str
    for value in values:
        text = printed(value)
        assert isinstance(text, str)
        if isinstance(value, tuple):
            assert (text[0], text[-1]) == ("(", ")")
        if isinstance(value, Row):
            assert text == f"+I[{','.join(map(str, value))}]"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_printed_numbers_are_the_numbers(number: float) -> None:
    text = (printer_of(Types.DOUBLE()) or str)(number)
    assert float(text) == number
    assert ("E" in text) == (number != 0 and not 1e-3 <= abs(number) < 1e7)


@given(FINITE.filter(math.isfinite))
def test_printed_single_numbers_are_the_numbers(number: float) -> None:
    text = (printer_of(Types.FLOAT()) or str)(number)
    assert converter_of(Types.FLOAT()).one(float(text)) == number
    assert len(text) <= len("-1.17549435E-38")


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_decimals_are_converted_by_their_text(number: Decimal) -> None:
    assert converter_of(Types.BIG_DEC()).one(str(number)) == number


@given(TYPED)
def test_values_come_back_from_a_table(typed: tuple[Any, list[Any]]) -> None:
    kind, values = typed
    declared = Types.ROW_NAMED(["value", "again"], [kind, Types.OBJECT_ARRAY(kind)])
    rows = [Row(value=value, again=[value, None]) for value in values]
    # Sources and sinks of the local engine, without a job around them.
    columns = column_names(schema_of(None, declared))
    frame = LocalFrame(columns, [as_row(value, columns) for value in rows])
    [chunk] = DataFrameSource(frame).read(0, 0, 100)
    assert list(converter_of(declared).column(chunk.values)) == rows
