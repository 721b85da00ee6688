from __future__ import annotations

import threading
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from emberflow.agents import Event, InputEvent
from emberflow.events.copies import copied, copied_event


class Colour(Enum):
    RED = 1


class Pair(NamedTuple):
    x: int
    y: list[int]


@dataclass
class Mutable:
    items: list[int] = field(default_factory=list[int])


@dataclass(frozen=True)
class Frozen:
    name: str
    items: Any = ()


class Slotted(Event):
    __slots__ = ("extra",)


plain = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.binary()),
    lambda inner: st.one_of(
        st.lists(inner), st.tuples(inner, inner), st.dictionaries(st.text(), inner), st.sets(st.integers())
    ),
    max_leaves=20,
)


def shares(one: Any, other: Any) -> bool:
    """Whether the two share a mutable object."""
    if isinstance(one, (list, dict, set)) and one is other:
        return True
    if isinstance(one, dict):
        return any(shares(one[name], other[name]) for name in one)
    if isinstance(one, (list, tuple)):
        return any(shares(left, right) for left, right in zip(one, other, strict=True))
    return False


@given(plain)
def test_a_copy_is_equal_and_shares_nothing_mutable(value: Any) -> None:
    made = copied(value)
    assert made == value
    assert not shares(made, value)


def test_immutable_values_are_their_own_copies() -> None:
    for value in ("a", 1, None, (1, "a"), frozenset({1}), Colour.RED, Frozen("a", 1), int, len):
        assert copied(value) is value


def test_objects_are_copied_in_depth() -> None:
    for value in (Mutable([1]), Frozen("a", [1]), Pair(1, [2]), [Mutable([1])], {"a": Mutable([1])}):
        made = copied(value)
        assert made == value
        assert made is not value
    pair = Pair(1, [2])
    copied(pair).y.append(3)
    assert pair.y == [2]


def test_cyclic_structures_and_uncopyable_values() -> None:
    endless: list[Any] = [1]
    endless.append(endless)
    made = copied(endless)
    assert made is not endless
    assert made[1] is made
    deep: Any = []
    for _ in range(50_000):
        deep = [deep]
    assert copied(deep) is not None
    lock = threading.Lock()
    assert copied(lock) is lock


def test_events() -> None:
    event = Event("e", {"items": [1], "inner": InputEvent({"a": [2]})}, id="7")
    made = copied_event(event)
    assert (type(made), made.id, made) == (Event, "7", event)
    made.attributes["items"].append(2)
    made.attributes["inner"].attributes["input"]["a"].append(3)
    assert event.attributes["items"] == [1]
    assert event.attributes["inner"].input == {"a": [2]}
    slotted = Slotted()
    slotted.extra = [1]
    again = copied_event(slotted)
    again.extra.append(2)
    assert slotted.extra == [1]
