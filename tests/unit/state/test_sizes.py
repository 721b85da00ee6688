"""Sizes of values: near enough for limits, and a refusal for what cannot be stored."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberflow.errors import NotSerializable
from emberflow.events.codecs import encode
from emberflow.state.sizes import measure

PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**40), 2**40), st.floats(), st.text(), st.binary()),
    lambda inner: st.one_of(
        st.lists(inner),
        st.tuples(inner, inner),
        st.dictionaries(st.text(), inner),
        st.frozensets(st.integers()),
    ),
    max_leaves=30,
)


@dataclass
class Point:
    x: int
    y: int


@given(PLAIN)
def test_a_size_is_never_negative_and_near_what_is_stored(value: Any) -> None:
    size = measure(value)
    assert size >= 0
    # Texts count characters, which take up to four bytes; containers themselves count nothing.
    assert size <= 8 * len(encode(value))


@pytest.mark.parametrize(
    ("value", "size"),
    [("abc", 3), (b"abcd", 4), (7, 8), (None, 8), ([1, "ab"], 10), ({"ab": 1.5}, 10), ((), 0), ({1, 2}, 16)],
)
def test_plain_values(value: Any, size: int) -> None:
    assert measure(value) == size


def test_other_objects_count_as_they_are_stored() -> None:
    assert measure(Point(1, 2)) == len(encode(Point(1, 2)))
    assert measure([Point(1, 2)] * 2) == 2 * measure(Point(1, 2))


def test_a_structure_that_contains_itself() -> None:
    circle: list[Any] = []
    circle.append(circle)
    assert measure(circle) > 0


def test_deep_structures() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(NotSerializable):
        measure(deep)


@pytest.mark.parametrize("value", [threading.Lock(), (number for number in [1]), {"a": [threading.Lock()]}])
def test_what_cannot_be_stored(value: Any) -> None:
    with pytest.raises(NotSerializable, match="cannot be serialized"):
        measure(value)
