"""The agent operator against a sequential model: any split into batches, calls ending in any order, watermarks anywhere;
runs that are detached while their calls continue; batches that are repeated; and a crash at any moment that loses every
call and returns to the last saved state."""

from __future__ import annotations

import copy
from collections import deque
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.agents import Event, InputEvent, OutputEvent
from emberflow.operators.agents.agent_run import RUN, SEQUENCE
from emberflow.operators.agents.run_memory import MEMORY, SIZE
from emberflow.state.memory import tree_size
from emberflow.testing import Emitted
from tests.support.agent_simulation import (
    ACTIONS,
    Input,
    Simulation,
    check_time,
    drive,
    id_of,
)

# The actions run with the real context and with the model's.


class ModelMemory(dict[str, Any]):
    """Flat: paths are names."""

    def set(self, path: str, value: Any) -> None:
        self[path] = value

    def append(self, path: str, value: Any) -> None:
        self[path] = [*self.get(path, []), value]

    def delete(self, path: str) -> None:
        self.pop(path, None)


class ModelContext:
    def __init__(self, key: str, memory: ModelMemory, sensory: ModelMemory) -> None:
        self.key = key
        self.short_term_memory = memory
        self.sensory_memory = sensory
        self.sent: list[Event] = []

    def send_event(self, event: Event) -> None:
        self.sent.append(event)


def modelled(inputs: list[Input], digests: dict[str, str]) -> tuple[list[list[Any]], dict[str, ModelMemory]]:
    """The outputs of each input and the final memory of each key; one input after another."""
    outputs: list[list[Any]] = []
    memories: dict[str, ModelMemory] = {}
    sequences: dict[str, int] = {}
    for key, number in inputs:
        sequences[key] = sequences.get(key, 0) + 1
        outputs.append([])
        sensory, ordinal = ModelMemory(), 0
        first: Event = InputEvent((key, number))
        first.id = f"{digests[key]}-{sequences[key]}.0"
        tasks = deque([("start", first)])
        while tasks:
            name, event = tasks.popleft()
            memory, senses = copy.deepcopy(memories.get(key, ModelMemory())), copy.deepcopy(sensory)
            ctx = ModelContext(key, memory, senses)
            # Ids count events sent by actions that did not fail: a failure ends the run.
            try:
                pending = ACTIONS[name][1](event, ctx)
                while pending is not None:
                    try:
                        pending.send(None)
                    except StopIteration:
                        pending = None
            except ValueError:
                break
            memories[key], sensory = memory, senses
            for sent in ctx.sent:
                ordinal += 1
                sent.id = f"{digests[key]}-{sequences[key]}.{ordinal}"
                sent.upstream_event_id, sent.upstream_action_name = event.id, name
                if isinstance(sent, OutputEvent):
                    outputs[-1].append(sent.output)
                tasks.extend((other, sent) for other, (trigger, _) in ACTIONS.items() if trigger == sent.type)  # pyright: ignore[reportArgumentType]
    return outputs, memories


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    inputs=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 60)), max_size=12),
    steps=st.lists(st.integers(0, 2), max_size=13),
    data=st.data(),
)
def test_any_order_and_any_crash_equal_one_input_at_a_time(
    inputs: list[Input], steps: list[int], data: st.DataObject
) -> None:
    marks = [-1]
    for i in range(len(inputs)):
        # After the input with timestamp i, event time may stay where it was.
        marks.append(max(marks[-1], i - (steps[i] if i < len(steps) else 1)))
    simulation = Simulation(inputs, marks)
    digests = {key: simulation.harness.head.runtime.key_digest(key) for key in "abc"}
    outputs, memories = modelled(inputs, digests)
    drive(simulation, data, batch=4, saves=8)
    harness = simulation.harness
    emitted = [item.value for item in simulation.whole_log if isinstance(item, Emitted)]
    for key in "abc":
        expected = [value for values in outputs for value in values if value[0] == key]
        assert [value for value in emitted if value[0] == key] == expected
    assert len({id_of(value) for value in emitted}) == len(emitted)
    check_time(simulation, outputs)
    # Nothing of a finished run is left.
    scope = harness.scope
    assert scope is not None
    assert scope.ended
    assert not scope.work.runs
    assert scope.work.holds.empty
    assert not scope.parked
    assert (harness.head.in_flight, harness.head.full) == (0, False)
    for key, entry in scope.entries.items():
        assert set(entry) <= {SEQUENCE, MEMORY, SIZE}
        assert RUN not in entry
        assert entry[SEQUENCE] == sum(item[0] == key for item in inputs)
        remembered = flat(entry.get(MEMORY, {}))
        assert remembered == memories.get(key, {})
        assert entry.get(SIZE, {}).get("bytes", 0) == tree_size(entry.get(MEMORY, {}))
    harness.close()


def flat(node: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in node.items():
        if name == "calls":
            found.update({f"calls.{inner}": item for inner, item in value.items()})
        else:
            found[name] = value
    return found
