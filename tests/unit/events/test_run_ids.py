"""Ids of runs, actions and calls: formatted ids are parsed again, and the stored formats do not change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberflow.events.run_ids import (
    ActionId,
    CallId,
    RunId,
    action_of,
    format_event,
    format_outcome,
)

COUNTS = st.integers(min_value=0, max_value=2**63)
ACTIONS = st.builds(
    ActionId,
    # The uid of a step may contain anything.
    st.text(min_size=1),
    st.builds(RunId, st.text("0123456789abcdef-", min_size=1), COUNTS),
    COUNTS,
)


def test_the_stored_formats() -> None:
    run = RunId("c0ffee", 7)
    action = ActionId("score", run, 2)
    assert str(run) == "c0ffee-7"
    assert format_event(str(run), 3) == "c0ffee-7.3"
    assert str(action) == "score/c0ffee-7/2/"
    assert str(CallId(str(action), 1)) == "score/c0ffee-7/2/1"
    assert str(CallId(str(action), None)) == format_outcome(str(action)) == "score/c0ffee-7/2/end"


@given(ACTIONS)
def test_an_action_is_parsed_as_it_was_formatted(action: ActionId) -> None:
    assert ActionId.parse(str(action)) == action


@given(ACTIONS, COUNTS | st.none())
def test_a_call_is_parsed_as_it_was_formatted(action: ActionId, number: int | None) -> None:
    call = CallId(str(action), number)
    assert CallId.parse(str(call)) == call
    assert action_of(str(call)) == str(action)


@pytest.mark.parametrize(
    "text", ["", "/", "a/", "step/run/1/", "step/key-1/x/", "step/key-x/1/", "step/key-1/1/1"]
)
def test_other_strings_are_not_ids_of_actions(text: str) -> None:
    assert ActionId.parse(text) is None


@pytest.mark.parametrize(
    "text",
    ["", "step/key-1/1/", "step/key-1/1/ending", "step/key-1/1/2.1", "step/key-1/1/2.", "step/key-1/1/2.x"],
)
def test_other_strings_are_not_ids_of_calls(text: str) -> None:
    assert CallId.parse(text) is None


def test_the_first_call_of_a_branch_has_the_id_of_a_call_without_one() -> None:
    first, later = CallId("step/key-1/1/", 2), CallId("step/key-1/1/", 2, (3,))
    assert str(first) == "step/key-1/1/2"
    assert str(later) == "step/key-1/1/2.3"
    assert [CallId.parse(str(item)) for item in (first, later)] == [first, later]
    assert action_of(str(later)) == "step/key-1/1/"
