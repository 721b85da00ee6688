from __future__ import annotations

import functools
import subprocess
import sys
import threading
import uuid
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag, IntEnum, StrEnum
from fractions import Fraction
from typing import Any, NamedTuple

import pytest

from emberflow.errors import InvalidArgument
from emberflow.events.identity import fingerprint, identity_of, text_identity


class Level(IntEnum):
    LOW = 1


class Colour(StrEnum):
    RED = "red"


class Shape(Enum):
    RED = "red"
    BLUE = "blue"


class Rights(Flag):
    READ = 1
    WRITE = 2


class Pair(NamedTuple):
    x: float
    y: str


@dataclass(frozen=True)
class User:
    name: str
    other: str = ""
    note: str = field(default="", compare=False)
    counted: int = field(default=0, hash=False)


@dataclass(frozen=True)
class Guest:
    name: str
    other: str = ""


class Money(int):
    """Equal in amount and currency."""

    currency: str

    def __new__(cls, amount: int, currency: str) -> Money:
        made = super().__new__(cls, amount)
        made.currency = currency
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and (int(self), self.currency) == (int(other), other.currency)

    def __hash__(self) -> int:
        return hash((int(self), self.currency))

    def __reduce__(self) -> Any:
        return Money, (int(self), self.currency)


class Point:
    def __init__(self, x: int) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and self.x == other.x

    def __hash__(self) -> int:
        return hash(self.x)

    def __call__(self) -> int:
        return self.x


class Lonely:
    """Equal to itself only."""

    def __init__(self, x: int) -> None:
        self.x = x


EQUAL: list[list[Any]] = [
    [0, 0.0, -0.0, False, Decimal(0), Decimal("-0.00"), 0j],
    [1, 1.0, True, Decimal("1.0"), Fraction(1), 1 + 0j, Level.LOW],
    [2**80, float(2**80), Decimal(2**80)],
    [Fraction(1, 2), 0.5, Decimal("0.50")],
    [float("inf"), Decimal("Infinity")],
    [(1, "a"), Pair(1.0, "a")],
    ["red", Colour.RED],
    [datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 1, 13, tzinfo=timezone(timedelta(hours=1)))],
    [User("a", note="x"), User("a", note="y")],
    [frozenset({1, "x", None}), frozenset({None, "x", True})],
    [uuid.UUID(int=5), uuid.UUID(int=5, is_safe=uuid.SafeUUID.safe)],
]

DIFFERENT: list[Any] = [
    None, "", b"", (), frozenset(), 0, "0", b"0", (0,), "None", (None,), ((),), "plumless", "buckeroo", 1, 2**32, 0.1,
    Decimal("0.1"), Fraction(1, 3), 1j, "a", ("a", ""), ("", "a"), ("a", "b"), ("ab", ""), (("a", "b"),), ("a", ("b",)),
    frozenset({"a", "b"}), frozenset({("a", "b")}), "\ud800", "\udc80", "1.5", 1.5, Shape.RED, Shape.BLUE, "red",
    Rights.READ, Rights.READ | Rights.WRITE, User("a", "b"), User("b", "a"), User("a", counted=1), Guest("a", "b"),
    Money(5, "EUR"), Money(5, "USD"), 5, Point(5), Point(6), date(2026, 1, 1), datetime(2026, 1, 1),
    datetime(2026, 1, 1, tzinfo=UTC), timedelta(1), uuid.UUID(int=1), int, len, max, Pair, Decimal("1E+999999999"),
    Decimal("1E-999999999"), Decimal("9" * 60 + "E+99999"), Decimal("9" * 59 + "8E+99999"), float("-inf"), ...,
]  # fmt: skip


@pytest.mark.parametrize("group", EQUAL, ids=range(len(EQUAL)))
def test_keys_that_share_an_entry_share_an_identity(group: list[Any]) -> None:
    assert len(set(group)) == 1
    assert len({identity_of(item) for item in group}) == 1
    assert len({identity_of((item, "x")) for item in group}) == 1


def test_different_keys_have_different_identities() -> None:
    assert len({identity_of(item) for item in DIFFERENT}) == len(set(DIFFERENT)) == len(DIFFERENT)
    assert len({identity_of((item,)) for item in DIFFERENT}) == len(DIFFERENT)


def test_owners_have_separate_identities() -> None:
    assert identity_of("k", "one") != identity_of("k", "two") != identity_of("k")
    assert text_identity("a", "bc") != text_identity("ab", "c")


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (float("nan"), "NaN is not equal to itself"),
        ((1, Decimal("nan")), "NaN is not equal to itself"),
        (Lonely(1), "equal only to themselves"),
        (("a", Lonely(1)), "equal only to themselves"),
        (lambda: 1, "cannot be distinguished from others"),
        (threading.Lock(), "cannot pickle"),
    ],
    ids=["nan", "nan inside", "no __eq__", "no __eq__ inside", "lambda", "lock"],
)
def test_keys_without_an_identity(key: Any, reason: str) -> None:
    with pytest.raises(InvalidArgument, match="has no identity that survives a restart") as raised:
        identity_of(key)
    assert reason in raised.value.cause


def test_arguments_that_cannot_be_keys() -> None:
    lock, other = threading.Lock(), threading.Lock()
    assert fingerprint((lock, 1)) == fingerprint((other, 1)) != fingerprint((lock, 2))
    assert fingerprint([1, 2]) != fingerprint((1, 2)) != fingerprint({1, 2})
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1}) != fingerprint({"a": 2, "b": 1})
    assert fingerprint(Lonely(1)) == fingerprint(Lonely(1)) != fingerprint(Lonely(2))
    assert fingerprint(float("nan")) == fingerprint(float("nan"))
    assert fingerprint(functools.partial(max, 1)) != fingerprint(functools.partial(max, 2))
    assert fingerprint(Point(1).__call__) != fingerprint(Point(2).__call__)
    endless: list[Any] = []
    endless.append(endless)
    assert fingerprint(endless) == fingerprint(endless)


def test_scalars_of_numpy_are_the_numbers_they_equal() -> None:
    numpy = pytest.importorskip("numpy", reason="B4: a key may be a number of NumPy")
    for scalar, plain in (
        (numpy.int64(7), 7),
        (numpy.float64(0.5), 0.5),
        (numpy.bool_(True), True),
        (numpy.str_("a"), "a"),
    ):
        assert identity_of(scalar) == identity_of(plain)
    assert (
        fingerprint(numpy.array([1, 2]))
        == fingerprint(numpy.array([1, 2]))
        != fingerprint(numpy.array([2, 1]))
    )


def test_identities_do_not_depend_on_the_process() -> None:
    code = (
        "from emberflow.events.identity import identity_of\n"
        "print(identity_of(('a', frozenset({'x', 'y', 'z', 1, 2}))))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {identity_of(("a", frozenset({"x", "y", "z", 1, 2}))) + "\n"}
