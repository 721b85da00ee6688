"""Guarded actions against a sequential model: any pattern of failures, any split into batches, runs that are detached,
batches that are repeated, and a crash at any moment. Attempts, memory, outputs, spent budgets and delayed events must equal
those of one input at a time."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from emberflow.agents import Agent, Budget, ErrorEvent, Event, InputEvent, OutputEvent, Retry
from emberflow.operators.agents.agent_run import BUDGETS
from emberflow.operators.agents.guards.delayed_events import LATER
from emberflow.operators.agents.run_memory import MEMORY
from emberflow.testing import Crash, Emitted, TestSource, per_key
from emberflow.testing.hosts import LOCAL
from tests.support.agent_harness import AgentHarness, Turn
from tests.support.agent_simulation import Simulation, drive
from tests.support.guarded_agents import guarded, with_letters

ATTEMPTS, TOKENS, PER_RUN = 3, 60, 25

Input = tuple[str, int, int, int, int]
"""key, number, attempts that fail, tokens that each attempt spends, delay of a reminder"""


async def work(event: Event, ctx: Any) -> None:
    _, number, fails, tokens, delay = event.get_attr("input")
    memory = ctx.short_term_memory
    memory.append("seen", (number, ctx.attempt))
    ctx.send_event(OutputEvent((ctx.key, number, "begun", ctx.attempt)))
    await Turn()
    # A call whose answer costs tokens; when the action is retried, it is answered from the log.
    cost = await ctx.durable_execute_async(price, tokens)
    ctx.spend(tokens=cost)
    if delay:
        ctx.send_event_after(delay, Event("reminder", {"number": number}))
    await Turn()
    if ctx.attempt <= fails:
        raise ConnectionError(f"attempt {ctx.attempt}")
    ctx.send_event(OutputEvent((ctx.key, number, "done", ctx.attempt, ctx.budget_left("tokens"))))


async def price(tokens: int) -> int:
    return tokens


def sorry(event: Event, ctx: Any) -> None:
    _, number, *_ = event.get_attr("input")
    error = ctx.error
    ctx.short_term_memory.append("sorry", number)
    if number % 4 == 3:
        raise KeyError("no words")
    ctx.send_event(OutputEvent((ctx.key, number, "sorry", error.error_type, error.attempts)))


async def repair(event: ErrorEvent, ctx: Any) -> None:
    number = event.event.get_attr("input")[1]
    await Turn()
    if number % 8 == 7:
        raise ValueError("cannot be repaired")
    ctx.send_event(OutputEvent((ctx.key, number, "repaired", event.action, event.error_type)))


async def remind(event: Event, ctx: Any) -> None:
    ctx.short_term_memory.append("reminded", event.get_attr("number"))
    await Turn()
    ctx.send_event(OutputEvent((ctx.key, event.get_attr("number"), "reminded", ctx.run_id.partition("-")[2])))
    ctx.send_event_after(1, Event("reminder", {"number": -1}))


def agent() -> Agent:
    made = Agent("guarded").add_budget(Budget(tokens=TOKENS, per="key")).add_budget(Budget(tokens=PER_RUN))
    retry = Retry(attempts=ATTEMPTS, backoff_ms=0, on=(ConnectionError,))
    made.add_action("work", [InputEvent], work, retry=retry, fallback="sorry")
    made.add_action("sorry", [], sorry).add_action("repair", [ErrorEvent], repair)
    return made.add_action("reminder", ["reminder"], remind)


@dataclass
class Key:
    """The final state of a key."""

    outputs: list[Any] = field(default_factory=list[Any])
    memory: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    spent: int = 0
    inputs: int = 0
    later: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])


def modelled(inputs: list[Input]) -> dict[str, Key]:
    keys: dict[str, Key] = {}
    for name, number, fails, tokens, delay in inputs:
        key = keys.setdefault(name, Key())
        key.inputs += 1
        error, attempts = "", 0
        while not error and attempts < ATTEMPTS:
            attempts += 1
            if tokens and (key.spent + tokens > TOKENS or tokens > PER_RUN):
                error = "BudgetExceeded"
            elif attempts > fails:
                break
            elif attempts == ATTEMPTS:
                error = "ConnectionError"
        # However often it was tried, it is paid for once.
        key.spent += tokens
        if not error:
            key.memory.setdefault("seen", []).append((number, attempts))
            key.outputs.append((name, number, "begun", attempts))
            left = max(0, min(TOKENS - key.spent, PER_RUN - tokens))
            key.outputs.append((name, number, "done", attempts, left))
            if delay:
                key.later.append((delay, number))
        elif number % 4 != 3:
            key.memory.setdefault("sorry", []).append(number)
            key.outputs.append((name, number, "sorry", error, attempts))
        elif number % 8 != 7:
            key.outputs.append((name, number, "repaired", "sorry", "KeyError"))
    for name, key in keys.items():
        for _, number in sorted(key.later, key=lambda item: item[0]):
            key.memory.setdefault("reminded", []).append(number)
            key.outputs.append((name, number, "reminded", "1"))
    return keys


class GuardedSimulation(Simulation):
    def _start(self, data: bytes | None) -> None:
        self.harness = AgentHarness(agent(), skip=True, restore=data)
        self.harness.head.runtime.log = self.call_log


@settings(max_examples=60, deadline=None)
@given(
    inputs=st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.integers(0, 20),
            st.integers(0, 4),
            st.integers(0, 30),
            st.sampled_from([0, 5, 9]),
        ),
        max_size=8,
    ),
    data=st.data(),
)
def test_any_failures_and_any_crash_equal_one_input_at_a_time(
    inputs: list[Input], data: st.DataObject
) -> None:
    simulation = GuardedSimulation(inputs, [-1] * (len(inputs) + 1))  # pyright: ignore[reportArgumentType]
    expected = modelled(inputs)
    drive(simulation, data, batch=3, saves=6)
    check(simulation, expected)


def check(simulation: Simulation, expected: dict[str, Key]) -> None:
    harness = simulation.harness
    emitted = [item.value for item in simulation.whole_log if isinstance(item, Emitted)]
    scope = harness.scope
    assert scope is not None
    assert scope.ended
    assert not scope.work.runs
    assert not scope.processing_timers.saved()
    for name, key in expected.items():
        assert [value for value in emitted if value[0] == name] == key.outputs
        entry = scope.entries[name]
        assert dict(entry.get(MEMORY, {})) == key.memory
        assert entry["seq"] == key.inputs
        assert LATER not in entry
        assert entry.get(BUDGETS, {}).get("0", (0, {}))[1].get("tokens", 0) == key.spent
    assert len(emitted) == sum(len(key.outputs) for key in expected.values())
    harness.close()


@pytest.mark.slow
@settings(max_examples=8, deadline=None, phases=(Phase.generate,))
@given(
    crashes=st.lists(st.integers(0, 30), min_size=1, max_size=3, unique=True),
    words=st.sampled_from(["a", "abc"]),
)
def test_the_local_engine_with_checkpoints_and_crashes_anywhere(crashes: list[int], words: str) -> None:
    inputs = [(words[number % len(words)], number) for number in range(30)]
    items: list[Any] = []
    for number, item in enumerate([*inputs, None]):
        items += [Crash()] if number in crashes else []
        items += [] if item is None else [item]
    source = TestSource(items)
    with tempfile.TemporaryDirectory() as folder:
        run = LOCAL.run_to_files(lambda env: with_letters(env, env.add_source(source)), folder)
    outputs, reminders = guarded(inputs)
    assert run.starts == len(crashes) + 1
    assert sorted(run.values, key=str) == sorted([*outputs, *reminders], key=str)
    reported = [value for value in run.values if value[2] in ("done", "sorry", "repaired")]
    assert per_key(reported) == per_key([value for value in outputs if value[2] != "letter"])
