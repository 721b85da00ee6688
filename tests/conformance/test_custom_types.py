"""The program's own classes as values, keys and state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple

from emberflow.streams import KeyedProcessFunction, ListStateDescriptor, RuntimeContext, ValueStateDescriptor
from emberflow.testing import SPARK, Host, on_every_host, per_key


class Kind(Enum):
    CLICK = "click"
    VIEW = "view"


@dataclass(frozen=True)
class User:
    name: str
    region: int


@dataclass
class Event:
    user: User
    kind: Kind
    amount: Decimal
    at: datetime
    tags: set[str] = field(default_factory=set)


class Point(NamedTuple):
    x: int
    y: int


class Slotted:
    __slots__ = ("total",)

    def __init__(self, total: int) -> None:
        self.total = total

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slotted) and other.total == self.total

    def __hash__(self) -> int:
        return hash(self.total)

    def __repr__(self) -> str:
        return f"Slotted({self.total})"


NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
ANN, BOB = User("ann", 1), User("bob", 2)
EVENTS = [
    Event(ANN, Kind.CLICK, Decimal("1.10"), NOON, {"x"}),
    Event(BOB, Kind.VIEW, Decimal("2"), NOON),
    Event(ANN, Kind.VIEW, Decimal("0.90"), NOON),
]


class Profile(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._total = runtime_context.get_state(ValueStateDescriptor("total"))
        self._events = runtime_context.get_list_state(ListStateDescriptor("events"))

    def process_element(self, value: Event, ctx: Any) -> Iterable[Any]:
        assert isinstance(value, Event)
        total = self._total.value() or Slotted(0)
        self._total.update(Slotted(total.total + int(value.amount * 100)))
        self._events.add(value)
        yield ctx.get_current_key(), self._total.value(), [event.kind for event in self._events.get()]


@on_every_host(nightly=[SPARK])
def test_objects_as_values(host: Host) -> None:
    assert host.run(lambda env: env.from_collection(EVENTS).map(lambda event: event)) == EVENTS


@on_every_host(nightly=[SPARK])
def test_objects_as_keys_and_state(host: Host) -> None:
    out = host.run(
        lambda env: env.from_collection(EVENTS).key_by(lambda event: event.user).process(Profile())
    )
    assert per_key(out) == {
        ANN: [(ANN, Slotted(110), [Kind.CLICK]), (ANN, Slotted(200), [Kind.CLICK, Kind.VIEW])],
        BOB: [(BOB, Slotted(200), [Kind.VIEW])],
    }


@on_every_host(nightly=[SPARK])
def test_enums_named_tuples_and_slots_as_keys(host: Host) -> None:
    keys = [Kind.CLICK, Kind.VIEW, Point(1, 2), Slotted(3), NOON, Decimal("1.5")]
    records = [(key, 1) for key in keys for _ in range(3)]
    out = host.run(lambda env: env.from_collection(records).key_by(lambda v: v[0]).sum(1))
    assert {key: [n for _, n in found] for key, found in per_key(out).items()} == {
        key: host.emitted([1, 2, 3]) for key in keys
    }


@on_every_host
def test_classes_defined_inside_a_function(host: Host) -> None:
    @dataclass(frozen=True)
    class Inner:
        n: int

    out = host.run(
        lambda env: (
            env.from_collection([1, 2, 3]).map(Inner).key_by(lambda v: v.n % 2).map(lambda v: v.n * 10)
        )
    )
    assert sorted(out) == [10, 20, 30]


@on_every_host
def test_functions_may_close_over_names_of_the_program(host: Host) -> None:
    table = {"a": 1, "b": 2}
    out = host.run(lambda env: env.from_collection(["a", "b", "a"]).map(lambda key: table[key]).map(str))
    assert out == ["1", "2", "1"]
