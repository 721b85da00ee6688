"""A key group with a state that has a time to live and one that has none, as it was stored: the program continues with it, and one
that declares another form is refused. In version 3 the forms were not stored. `UPDATE = True` writes the file if it is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from emberflow.errors import ProgramChanged
from emberflow.event_time.clock import FixedClock
from emberflow.operators.group_layout import GroupLayout
from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.operator import Step
from emberflow.state.descriptors import ValueStateDescriptor
from emberflow.state.handles import ValueState, make_handle
from emberflow.state.ttl_config import StateTtlConfig
from tests.golden.group_state import Cold, as_text, read

FILE = Path(__file__).parent / "v4" / "state_forms.json"
UPDATE = False


def opened(layout: GroupLayout, *living: str) -> tuple[KeyedOperator, dict[str, ValueState[str]]]:
    """An operator with two states in the group's scope, and the handles of the key 'ann'."""
    operator, handles = KeyedOperator(Step("forms", "forms")), dict[str, ValueState[str]]()
    for name in ("plain", "living"):
        descriptor = ValueStateDescriptor[str](name)
        if name in living:
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(60_000).build())
        handles[name] = make_handle(descriptor, operator.cursor)
    operator.enter(layout.scope([(0, 0)], {}, FixedClock(1_000_000), lambda key: True))
    operator.cursor.key, operator.cursor.entry = "ann", operator.scope.entry("ann")
    return operator, handles


def write() -> None:
    cold = Cold()
    layout = GroupLayout(None, cold, "forms")
    operator, handles = opened(layout, "living")
    for name, handle in handles.items():
        handle.update(f"of {name}")
    hot = layout.commit(operator.scope)
    assert hot is not None
    FILE.write_text(as_text(hot, cold))


def test_a_stored_group_continues_with_states_of_the_same_form() -> None:
    if UPDATE and not FILE.exists():
        write()
    _, handles = opened(GroupLayout(*read(FILE), "forms"), "living")
    assert {name: handle.value() for name, handle in handles.items()} == {
        "plain": "of plain",
        "living": "of living",
    }


@pytest.mark.parametrize("living", [(), ("plain",), ("plain", "living")])
def test_states_of_another_form_are_refused(living: tuple[str, ...]) -> None:
    with pytest.raises(ProgramChanged, match=r"step 'forms' declares the state '(plain|living)'"):
        opened(GroupLayout(*read(FILE), "forms"), *living)
