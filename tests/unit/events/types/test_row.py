"""`Row` behaves as PyFlink's; what differs is said in the test."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from emberflow.events.codecs import decode, encode
from emberflow.events.identity import identity_of
from emberflow.events.key_groups import stable_hash
from emberflow.events.types.row import Row, RowKind, RowShape


def test_named_fields() -> None:
    row = Row(name="Ann", age=11)
    assert (row.name, row["age"], row[0], row[-1], row[0:2]) == ("Ann", 11, "Ann", 11, ("Ann", 11))
    assert ("name" in row, "Ann" in row) == (True, False)
    assert (list(row), len(row)) == (["Ann", 11], 2)
    assert repr(row) == str(row) == "Row(name='Ann', age=11)"
    assert row.as_dict() == {"name": "Ann", "age": 11}


def test_positional_fields() -> None:
    row = Row("Ann", 11)
    assert (row[1], list(row), "Ann" in row) == (11, ["Ann", 11], True)
    assert repr(row) == "<Row('Ann', 11)>"
    with pytest.raises(AttributeError, match="no field 'name'"):
        _ = row.name
    with pytest.raises(TypeError, match="without field names"):
        row.as_dict()
    row.set_field_names(["name", "age"])
    assert (row.name, row.as_dict()) == ("Ann", {"name": "Ann", "age": 11})


def test_a_row_creates_rows() -> None:
    Person = Row("name", "age")
    assert Person("Ann", 11) == Row(name="Ann", age=11)
    assert Person("Ann") == Row(name="Ann")
    with pytest.raises(ValueError, match="has 2 fields, but got the values"):
        Person("Ann", 11, "x")


def test_both_kinds_of_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="not both"):
        Row(1, name="Ann")


def test_values_can_be_changed_and_attributes_cannot() -> None:
    row = Row(name="Ann", age=11)
    row[1] = 12
    row["name"] = "Bob"
    assert row == Row(name="Bob", age=12)
    for change in (lambda: setattr(row, "age", 1), lambda: setattr(row, "more", 1)):
        with pytest.raises(AttributeError):
            change()
    with pytest.raises(KeyError, match="town"):
        row["town"] = "Rome"
    with pytest.raises(KeyError, match="town"):
        _ = row["town"]
    with pytest.raises(IndexError):
        _ = row[2]


def test_kinds() -> None:
    row = Row.of_kind(RowKind.DELETE, name="Ann")
    assert row.get_row_kind() is RowKind.DELETE
    assert row != Row(name="Ann")
    row.set_row_kind(RowKind.INSERT)
    assert row == Row(name="Ann")
    assert [str(kind) for kind in RowKind] == ["+I", "-U", "+U", "-D"]
    assert Row("name")("Ann").get_row_kind() is RowKind.INSERT


def test_the_order_of_named_fields_does_not_count() -> None:
    one, other = Row(a=1, b=2), Row(b=2, a=1)
    assert one == other
    assert hash(one) == hash(other)
    assert stable_hash(one) == stable_hash(other)
    assert identity_of(one) == identity_of(other)


@pytest.mark.parametrize(
    "other", [Row(1, 2), Row(a=1, c=2), Row(a=2, b=1), Row(a=1), (1, 2), {"a": 1, "b": 2}, None]
)
def test_what_a_row_is_not_equal_to(other: Any) -> None:
    row = Row(a=1, b=2)
    assert row != other
    if isinstance(other, Row):
        assert identity_of(row) != identity_of(other)


def test_equal_numbers_make_equal_rows() -> None:
    assert Row(a=1) == Row(a=1.0) == Row(a=True)
    assert hash(Row(a=1)) == hash(Row(a=True))
    assert stable_hash(Row(a=1)) == stable_hash(Row(a=1.0))
    assert identity_of(Row(1)) == identity_of(Row(True))


def test_rows_are_spread_over_key_groups() -> None:
    assert len({stable_hash(Row(a=number)) for number in range(100)}) > 90
    assert len({stable_hash(Row(number)) for number in range(100)}) > 90


def test_fields_by_names() -> None:
    row = Row(a=1, b=2, c=3)
    assert row.get_fields_by_names(["c", "a"]) == [3, 1]
    assert Row(1, 2).get_fields_by_names(["x", "y"]) == [1, 2]
    with pytest.raises(KeyError, match="'z'"):
        row.get_fields_by_names(["a", "z"])


def test_dictionaries_of_rows_in_rows() -> None:
    row = Row(key=1, value=Row(a=2), items=[Row(a=3)], named={"x": Row(a=4)})
    assert row.as_dict()["value"] == Row(a=2)
    assert row.as_dict(recursive=True) == {
        "key": 1,
        "value": {"a": 2},
        "items": [{"a": 3}],
        "named": {"x": {"a": 4}},
    }


@pytest.mark.parametrize("row", [Row(), Row(1, "a"), Row(a=[1]), Row.of_kind(RowKind.DELETE, a=Row(b=None))])
def test_copies_and_pickles(row: Row) -> None:
    for made in (copy.copy(row), copy.deepcopy(row), pickle.loads(pickle.dumps(row)), decode(encode(row))):
        assert type(made) is Row
        assert made == row
        assert made.get_row_kind() is row.get_row_kind()
        assert repr(made) == repr(row)


def test_a_copy_is_changed_apart() -> None:
    row = Row(a=1)
    other = copy.copy(row)
    other[0] = 2
    assert (row.a, other.a) == (1, 2)


def test_stored_rows_share_their_names_and_name_no_module() -> None:
    shape = RowShape(("a_rather_long_name", "another_long_name"))
    data = encode([shape((number, number)) for number in range(100)])
    assert b"emberflow." not in data
    assert data.count(b"a_rather_long_name") == 1
    assert len(data) < 100 * 20


def test_a_field_may_have_the_name_of_a_method() -> None:
    """As in PyFlink, the method wins; the field is found by name."""
    row = Row(as_dict=1, _hidden=2)
    assert callable(row.as_dict)
    assert (row["as_dict"], row["_hidden"]) == (1, 2)
    with pytest.raises(AttributeError):
        _ = row._hidden
