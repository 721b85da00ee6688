"""`run_agent`, with which users test their agents."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentConfigOptions,
    AgentExecutionOptions,
    Event,
    InputEvent,
    OutputEvent,
    ResourceType,
    RunnerContext,
    action,
)
from emberflow.errors import ActionFailed, InvalidArgument
from emberflow.testing import ManualClock, run_agent


class Greeting(Event):
    text: str


class Greeter(Agent):
    @action(InputEvent)
    @staticmethod
    async def think(event: InputEvent, ctx: RunnerContext) -> None:
        await asyncio.sleep(0)
        times = ctx.short_term_memory.get("times", 0) + 1
        ctx.short_term_memory.set("times", times)
        ctx.send_event(
            Greeting(text=f"{ctx.get_resource('word', ResourceType.PROMPT)} {event.input} ({times})")
        )

    @action(Greeting)
    @staticmethod
    def say(event: Greeting, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(event.text))


def greeter() -> Agent:
    return Greeter().add_resource("word", ResourceType.PROMPT, "hello")


def test_inputs_without_a_key_are_one_conversation() -> None:
    run = run_agent(greeter(), ["ann", "bob"])
    assert run.outputs == ["hello ann (1)", "hello bob (2)"]
    assert run.by_key == {"test": run.outputs}


def test_inputs_with_keys() -> None:
    run = run_agent(greeter(), [{"key": 1, "value": "ann"}, {"key": 2, "value": "bob"}, {"other": "dict"}])
    assert run.by_key == {1: ["hello ann (1)"], 2: ["hello bob (1)"], "test": ["hello {'other': 'dict'} (1)"]}


def test_events_in_the_order_in_which_they_happened() -> None:
    run = run_agent(greeter(), ["ann"])
    assert [event.type for event in run.events] == [
        "_input_event",
        "Greeting",
        "_short_term_write_event",
        "_output_event",
    ]
    assert run.sent(Greeting) == [Greeting(text="hello ann (1)")]
    assert run.sent("_output_event") == [OutputEvent("hello ann (1)")]
    assert run.sent("nothing of the kind") == []


def test_a_resource_is_replaced_for_this_run_only() -> None:
    agent = greeter()
    assert run_agent(agent, ["ann"], resources={("word", ResourceType.PROMPT): "ciao"}).outputs == [
        "ciao ann (1)"
    ]
    assert run_agent(agent, ["ann"]).outputs == ["hello ann (1)"]


def test_options_and_listeners_of_the_test_itself() -> None:
    seen: list[Any] = []
    options: dict[Any, Any] = {
        AgentConfigOptions.EVENT_LISTENERS: [lambda event, context: seen.append((context.key, event.type))],
        AgentExecutionOptions.MAX_STEPS: 2,
    }
    run = run_agent(greeter(), ["ann"], options=options)
    assert len(seen) == len(run.events) == 4
    assert seen[0] == ("test", "_input_event")


def test_a_clock() -> None:
    clock = ManualClock(100)

    def act(event: Event, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(ctx.short_term_memory.get("seen")))
        ctx.short_term_memory.set("seen", clock.now_ms())
        clock.advance(event.get_attr("input"))

    agent = Agent("times").add_action("act", [InputEvent], act)
    options = {AgentExecutionOptions.SHORT_TERM_MEMORY_STATE_TTL_MS: 50}
    assert run_agent(agent, [10, 60, 0], options=options, clock=clock).outputs == [None, 100, None]
    with pytest.raises(InvalidArgument, match="a clock can be given to the local engine only"):
        run_agent(agent, [1], engine="spark", clock=clock)


def test_failures_reach_the_test() -> None:
    def act(event: Event, ctx: RunnerContext) -> None:
        raise ValueError("no")

    with pytest.raises(ActionFailed, match="ValueError: no"):
        run_agent(Agent("fails").add_action("act", [InputEvent], act), [1])


def test_no_inputs() -> None:
    run = run_agent(greeter(), [])
    assert (run.outputs, run.by_key, run.events) == ([], {}, [])
