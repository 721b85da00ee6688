"""Stored state of another form than the program declares is refused, not misread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from emberflow.errors import ProgramChanged
from emberflow.events.codecs import decode, encode
from emberflow.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from emberflow.state.ttl_config import StateTtlConfig
from emberflow.streams import (
    AggregateFunction,
    KeyedProcessFunction,
    ProcessWindowFunction,
    RuntimeContext,
    TumblingEventTimeWindows,
)
from emberflow.testing import OperatorHarness


class Total(AggregateFunction[int, int, int]):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: int, accumulator: int) -> int:
        return accumulator + value

    def get_result(self, accumulator: int) -> int:
        return accumulator


def add(first: int, second: int) -> int:
    return first + second


KINDS = {
    "value": lambda: ValueStateDescriptor("seen"),
    "list": lambda: ListStateDescriptor("seen"),
    "map": lambda: MapStateDescriptor("seen"),
    "reducing": lambda: ReducingStateDescriptor("seen", add),
    "aggregating": lambda: AggregatingStateDescriptor("seen", Total()),
}


def described(kind: str, *, ttl: bool) -> StateDescriptor:
    made = KINDS[kind]()
    if ttl:
        made.enable_time_to_live(StateTtlConfig.new_builder(60_000).build())
    return made


class Use(KeyedProcessFunction[str, Any, Any]):
    """Writes the state and emits what it reads; with `late`, it asks for the state with the first record."""

    def __init__(self, kind: str, *, ttl: bool, late: bool = False) -> None:
        self.kind, self.ttl, self.late = kind, ttl, late
        self.state: Any = None

    def open(self, runtime_context: RuntimeContext) -> None:
        self.context = runtime_context
        if not self.late:
            self._get()

    def _get(self) -> None:
        descriptor: Any = described(self.kind, ttl=self.ttl)
        name = {"value": "state"}.get(self.kind, f"{self.kind}_state")
        self.state = getattr(self.context, f"get_{name}")(descriptor)

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        if self.state is None:
            self._get()
        state: Any = self.state
        if self.kind == "value":
            state.update((state.value() or 0) + 1)
            yield state.value()
        elif self.kind == "map":
            state.put("n", (state.get("n") or 0) + 1)
            yield dict(state.items())
        else:
            state.add(1)
            found = state.get()
            yield list(found) if self.kind == "list" else found


def harness(function: Use, restore: bytes | None = None) -> OperatorHarness:
    return OperatorHarness(lambda stream: stream.key_by(str).process(function).name("use"), restore=restore)


def stored(kind: str, *, ttl: bool) -> bytes:
    made = harness(Use(kind, ttl=ttl))
    made.send(["a"])
    return made.snapshot()


def without_forms(snapshot: bytes) -> bytes:
    """As versions before stored it."""
    saved, entries = decode(snapshot)
    saved.forms = None
    return encode((saved, entries))


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ttl", [False, True])
def test_a_time_to_live_cannot_be_added_or_removed(kind: str, ttl: bool, late: bool) -> None:
    snapshot = stored(kind, ttl=ttl)
    with pytest.raises(ProgramChanged) as raised:
        harness(Use(kind, ttl=not ttl, late=late), snapshot).send(["a"])
    without, with_it = f"{kind} state without a time to live", f"{kind} state with a time to live"
    declared, before = (without, with_it) if ttl else (with_it, without)
    expected = f"step 'use' declares the state 'seen' as {declared}, but it was stored as {before}"
    assert expected in str(raised.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ttl", [False, True])
def test_an_unchanged_state_continues(kind: str, ttl: bool) -> None:
    for snapshot in (stored(kind, ttl=ttl), without_forms(stored(kind, ttl=ttl))):
        made = harness(Use(kind, ttl=ttl), snapshot)
        made.send(["a"])
        assert made.values == [{"list": [1, 1], "map": {"n": 2}}.get(kind, 2)]
        again = harness(Use(kind, ttl=ttl), made.snapshot())
        again.send(["a"])
        assert again.values == [{"list": [1, 1, 1], "map": {"n": 3}}.get(kind, 3)]


@pytest.mark.parametrize(
    ("before", "after"),
    [(before, after) for before in KINDS for after in KINDS if before != after],
)
def test_a_state_keeps_its_kind(before: str, after: str) -> None:
    snapshot = stored(before, ttl=False)
    if {before, after} == {"value", "reducing"}:
        made = harness(Use(after, ttl=False), snapshot)
        made.send(["a"])
        assert made.values == [2], "both store one value"
        assert decode(made.snapshot())[0].forms == {"seen": after}
        return
    with pytest.raises(ProgramChanged, match=f"as {after} state .*, but it was stored as {before} state"):
        harness(Use(after, ttl=False), snapshot).send(["a"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ttl", [False, True])
def test_state_of_versions_that_stored_no_forms_is_refused_too(kind: str, ttl: bool) -> None:
    snapshot = without_forms(stored(kind, ttl=ttl))
    with pytest.raises(ProgramChanged, match="step 'use'"):
        harness(Use(kind, ttl=not ttl), snapshot).send(["a"])


def test_a_state_that_is_new_starts_empty() -> None:
    snapshot = stored("value", ttl=True)

    class Other(Use):
        def _get(self) -> None:
            descriptor: Any = ValueStateDescriptor("another")
            self.state = self.context.get_state(descriptor)

    made = harness(Other("value", ttl=False), snapshot)
    made.send(["a"])
    assert made.values == [1]
    assert decode(made.snapshot())[0].forms == {"seen": "value+ttl", "another": "value"}


def test_state_of_a_window_keeps_its_form() -> None:
    class Count(ProcessWindowFunction[str, Any, str, Any]):
        def __init__(self, *, ttl: bool) -> None:
            self.ttl = ttl

        def process(self, key: str, context: Any, elements: Any) -> Iterator[Any]:
            descriptor: Any = described("value", ttl=self.ttl)
            state = context.window_state().get_state(descriptor)
            state.update((state.value() or 0) + 1)
            yield state.value()

    def windows(ttl: bool, restore: bytes | None = None) -> OperatorHarness:
        return OperatorHarness(
            lambda stream: (
                stream.key_by(str)
                .window(TumblingEventTimeWindows.of(10))
                .allowed_lateness(1_000)
                .process(Count(ttl=ttl))
                .name("count")
            ),
            restore=restore,
        )

    made = windows(ttl=False)
    made.send(["a"], [1], watermark=20)
    assert made.values == [1]
    with pytest.raises(ProgramChanged, match="step 'count' declares the state 'seen'"):
        windows(ttl=True, restore=made.snapshot()).send(["a"], [1])
