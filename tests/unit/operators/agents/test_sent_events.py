"""The single traversal of an event does the same as the check followed by the copy."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberflow.errors import EmberflowError
from emberflow.events.agent_events import Event, InputEvent, OutputEvent
from emberflow.events.copies import copied_event
from emberflow.operators.agents.action_errors import check_event
from emberflow.operators.agents.sent_events import sent_copy


class Order(Event):
    number: int
    lines: Any = None


class Odd(Event):
    """Has content outside of its `__dict__`."""

    __slots__ = ("extra",)

    def __init__(self, extra: Any) -> None:
        self.attributes = {"extra": extra}
        self.extra = extra


PLAIN = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.binary(max_size=5)
VALUES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)
EVENTS = (
    st.builds(Event, st.text(min_size=1, max_size=5), st.dictionaries(st.text() | st.integers(), VALUES))
    | st.builds(Order, st.integers(), VALUES)
    | st.builds(InputEvent, VALUES)
    | st.builds(OutputEvent, VALUES)
)


def outcome(make: Any) -> Any:
    try:
        return make()
    except EmberflowError as error:
        return str(error)


def one_after_the_other(event: Event, max_bytes: int) -> Event:
    check_event(event, max_bytes)
    return copied_event(event)


@given(EVENTS, st.sampled_from([20, 60, 10_000]))
def test_the_same_copy_or_the_same_error(event: Event, max_bytes: int) -> None:
    found = outcome(lambda: sent_copy(event, max_bytes))
    wanted = outcome(lambda: one_after_the_other(event, max_bytes))
    assert found == wanted
    if isinstance(found, Event):
        assert type(found) is type(event)
        assert found.__dict__ == event.__dict__


@given(EVENTS)
def test_a_copy_shares_nothing_mutable(event: Event) -> None:
    found = sent_copy(event, 10_000_000)
    before = repr(found)
    change_all(event.__dict__)
    assert repr(found) == before


def change_all(value: Any) -> None:
    if isinstance(value, dict):
        for item in [*value.values()]:
            change_all(item)
        value["changed"] = True
    elif isinstance(value, list):
        for item in value:
            change_all(item)
        value.append("changed")
    elif isinstance(value, tuple):
        for item in value:
            change_all(item)


@pytest.mark.parametrize(
    "event",
    [
        "no event",
        Event("lock", {"lock": threading.Lock()}),
        Event("_output_event", {}),
        Odd([1]),
    ],
    ids=["no event", "a lock", "no output", "slots"],
)
def test_unusual_events(event: Any) -> None:
    assert outcome(lambda: sent_copy(event, 1_000)) == outcome(lambda: one_after_the_other(event, 1_000))


def test_an_event_that_contains_itself() -> None:
    event = Event("loop", {})
    event.attributes["self"] = event
    found = sent_copy(event, 1_000)
    assert found is not event
    assert isinstance(found.attributes["self"], Event)
    assert found.attributes["self"] is not event
