"""Key groups: equal keys are in the same group, in every process, whatever Python's own hash seed is."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from emberflow.events.codecs import decode, encode
from emberflow.events.identity import identity_of
from emberflow.events.key_groups import KeyGroups, stable_hash
from emberflow.state.paged_map import place_of


class Level(IntEnum):
    LOW = 0


class Colour(StrEnum):
    RED = "red"


class Shape(Enum):
    RED = "red"


class Pair(NamedTuple):
    x: float
    y: str


@dataclass(frozen=True)
class User:
    name: str
    other: str
    note: str = field(default="", compare=False)


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a: str, b: int) -> None:
        self.a, self.b = a, b


class Plain:
    def __init__(self, a: str) -> None:
        self.a = a
        self.tags = {"x", "y", "z"}


keys = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary()),
    lambda inner: st.one_of(st.tuples(inner), st.tuples(inner, inner), st.frozensets(inner, max_size=4)),
    max_leaves=6,
)

SAMPLES: list[Any] = [
    "a",
    "ü",
    "",
    0,
    1,
    -1,
    2**70,
    1.5,
    -0.0,
    1e300,
    None,
    b"b",
    ("a", 1),
    ("a", ("b", None)),
    frozenset({"x", "y", "z", 1, 2}),
    (frozenset({"p", "q"}), "r"),
    User("a", "b"),
    Slotted("a", 1),
    Plain("a"),
    Shape.RED,
    Decimal("1.5"),
    date(2026, 1, 31),
    datetime(2026, 1, 31, 12, tzinfo=UTC),
    uuid.UUID(int=7),
    float("inf"),
    float("nan"),
    1 + 2j,
]


@given(keys)
def test_a_hash_has_32_bits_and_survives_a_round_trip(key: Any) -> None:
    assert 0 <= stable_hash(key) < 2**32
    assert stable_hash(decode(encode(key))) == stable_hash(key)


@given(st.one_of(st.integers(-(2**62), 2**62), st.booleans()))
def test_equal_numbers_have_equal_hashes(number: int) -> None:
    same: list[float] = [number, int(number)]
    if float(number) == number:
        same.append(float(number))
    if number in (0, 1):
        same.append(bool(number))
    assert len({stable_hash(item) for item in same}) == 1
    assert len({stable_hash((item, "x")) for item in same}) == 1


def test_equal_numbers_of_every_size_and_type() -> None:
    groups: list[list[Any]] = [
        [0, 0.0, -0.0, False, Decimal(0), Decimal("0.00"), Level.LOW],
        [2**80, float(2**80), Decimal(2**80)],
        [Fraction(1, 2), 0.5, Decimal("0.5"), Decimal("0.50")],
        [-1, -1.0, Decimal(-1)],
        [(1, "a"), Pair(1.0, "a")],
        ["red", Colour.RED],
        [datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 1, 13, tzinfo=timezone(timedelta(hours=1)))],
        [datetime(2026, 10, 25, 2), datetime(2026, 10, 25, 2, fold=1)],
        [time(12, tzinfo=UTC), time(11, 30, tzinfo=timezone(-timedelta(minutes=30)))],
        [time(12), time(12, fold=1)],
    ]
    for group in groups:
        assert len(set(group)) == 1
        assert len({stable_hash(item) for item in group}) == 1, group
        assert len({place_of(item) for item in group}) == 1, group
        assert len({identity_of(item) for item in group}) == 1, group


def test_equal_objects_have_equal_hashes_however_they_were_created() -> None:
    shared = "name" * 3
    copied = "".join(["name", "name", "name"])
    assert shared is not copied
    assert stable_hash(User(shared, shared)) == stable_hash(User(shared, copied))
    assert stable_hash(User("a", "b")) != stable_hash(User("b", "a"))
    assert stable_hash(User("a", "b", note="ignored")) == stable_hash(User("a", "b", note="other"))
    assert stable_hash(Slotted("a", 1)) == stable_hash(Slotted("a", 1)) != stable_hash(Slotted("a", 2))
    assert stable_hash(Plain("a")) == stable_hash(Plain("a")) != stable_hash(Plain("b"))
    assert stable_hash(Colour.RED) != stable_hash(Shape.RED)
    key = uuid.UUID(int=5)
    assert stable_hash(key) == stable_hash(uuid.UUID(str(key)))
    assert stable_hash(date(2026, 1, 1)) == stable_hash(date(2026, 1, 1)) != stable_hash(date(2026, 1, 2))


def test_another_process_with_another_seed_agrees() -> None:
    code = (
        "from tests.property.test_stable_hash import SAMPLES\n"
        "from emberflow.events.key_groups import stable_hash\n"
        "print([stable_hash(key) for key in SAMPLES])"
    )
    here = [stable_hash(key) for key in SAMPLES]
    for seed in ("1", "2"):
        environ = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": os.pathsep.join(["src", ".", *sys.path]),
        }
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ, timeout=500
        )
        assert done.stdout.strip() == str(here)


def test_keys_spread_over_the_groups() -> None:
    for make in (lambda i: i, lambda i: f"user-{i}", lambda i: (i, "x"), lambda i: i * 64):
        counts = Counter(KeyGroups(64)[make(i)] for i in range(6400))
        assert len(counts) == 64
        assert max(counts.values()) < 160


def test_groups_are_cached_and_evicted() -> None:
    groups = KeyGroups(8)
    assert groups["a"] == groups["a"]
    assert len(groups) == 1
