"""What agents do, in plain runs of the local engine."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentConfigOptions,
    AgentExecutionOptions,
    ConditionEvaluationFailureStrategy,
    ErrorHandling,
    Event,
    InputEvent,
    MemoryRef,
    OutputEvent,
    RunnerContext,
    ShortTermMemoryTtlUpdate,
    action,
)
from emberflow.testing import ManualClock, run_agent

SKIP = {AgentExecutionOptions.ON_ERROR: ErrorHandling.SKIP}


class Priced(Event):
    name: str
    price: int = 1


def single(function: Any, *triggers: Any) -> Agent:
    return Agent("single").add_action("act", triggers or [InputEvent], function)


def test_an_input_becomes_outputs() -> None:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(event.input * 2))
        ctx.send_event(OutputEvent(event.input * 3))

    assert run_agent(single(act), [1, 10]).outputs == [2, 3, 20, 30]


def test_an_action_that_sends_nothing_emits_nothing() -> None:
    assert run_agent(single(lambda event, ctx: None), [1, 2]).outputs == []


def test_events_go_to_all_their_actions_in_the_order_of_definition() -> None:
    class Several(Agent):
        @action("step")
        @staticmethod
        def second(event: Event, ctx: RunnerContext) -> None:
            ctx.send_event(OutputEvent("second"))

        @action(InputEvent)
        @staticmethod
        def first(event: InputEvent, ctx: RunnerContext) -> None:
            ctx.send_event(Event("step"))
            ctx.send_event(OutputEvent("first"))

        @action("step", "other", lambda event: event.type == "step")
        @staticmethod
        def third(event: Event, ctx: RunnerContext) -> None:
            ctx.send_event(OutputEvent("third"))

    run = run_agent(Several(), [0])
    assert run.outputs == ["first", "second", "third"]


def test_events_are_queued_not_nested() -> None:
    """Breadth first: what an action sends is queued behind what was sent before."""

    class Tree(Agent):
        @action(InputEvent)
        @staticmethod
        def begin(event: InputEvent, ctx: RunnerContext) -> None:
            for name in ("a", "b"):
                ctx.send_event(Event("node", {"name": name}))

        @action("node")
        @staticmethod
        def node(event: Event, ctx: RunnerContext) -> None:
            name = event.get_attr("name")
            ctx.send_event(OutputEvent(name))
            if len(name) < 2:
                ctx.send_event(Event("node", {"name": name + "1"}))

    assert run_agent(Tree(), [0]).outputs == ["a", "b", "a1", "b1"]


def test_an_untyped_event_is_converted_to_the_annotated_class() -> None:
    class Typed(Agent):
        @action(InputEvent)
        @staticmethod
        def begin(event: InputEvent, ctx: RunnerContext) -> None:
            ctx.send_event(Event("Priced", {"name": "tea", "price": 3}))
            ctx.send_event(Priced(name="milk"))

        @action(Priced)
        @staticmethod
        def take(event: Priced, ctx: RunnerContext) -> None:
            assert isinstance(event, Priced)
            ctx.send_event(OutputEvent((event.name, event.price, event.upstream_action_name)))

    assert run_agent(Typed(), [0]).outputs == [("tea", 3, "begin"), ("milk", 1, "begin")]


def test_ids_are_unique_and_the_same_in_every_run() -> None:
    class Twice(Agent):
        @action(InputEvent)
        @staticmethod
        async def begin(event: InputEvent, ctx: RunnerContext) -> None:
            await asyncio.sleep(0)
            same = Event("again", {"n": 1})
            ctx.send_event(same)
            ctx.send_event(same)
            ctx.send_event(event)

        @action("again")
        @staticmethod
        def again(event: Event, ctx: RunnerContext) -> None:
            ctx.send_event(OutputEvent((event.id, ctx.run_id)))

    inputs = [{"key": key, "value": 0} for key in ("a", "b", 1, "1", None, ("a", 1))]
    options = {AgentExecutionOptions.MAX_STEPS: 3, **SKIP}
    first, second = (run_agent(Twice(), inputs, options=options) for _ in range(2))
    ids = [event.id for event in first.events]
    assert len(set(ids)) == len(ids) >= 5 * len(inputs)
    assert sorted(ids) == sorted(event.id for event in second.events)
    for event in first.sent("again"):
        assert str(event.upstream_event_id).endswith(("-1.0", ".3"))


def test_short_term_memory_belongs_to_the_key_and_sensory_memory_to_the_run() -> None:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.short_term_memory.append("all", event.input)
        ctx.sensory_memory.append("all", event.input)
        ctx.send_event(OutputEvent((ctx.short_term_memory.get("all"), ctx.sensory_memory.get("all"))))

    run = run_agent(single(act), [{"key": key, "value": n} for n, key in enumerate("aab")])
    assert run.by_key == {"a": [([0], [0]), ([0, 1], [1])], "b": [([2], [2])]}


def test_outputs_do_not_change_with_memory() -> None:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        given = ctx.short_term_memory.get("given", [])
        given.append(event.input)
        ctx.short_term_memory.set("given", given)
        ctx.short_term_memory.append("given", "-")
        ctx.send_event(OutputEvent((given, ctx.short_term_memory.get("given"))))

    assert run_agent(single(act), [1, 2]).outputs == [([1], [1, "-"]), ([1, "-", 2], [1, "-", 2, "-"])]


def test_a_reference_to_memory_can_be_sent_in_an_event() -> None:
    class Refers(Agent):
        @action(InputEvent)
        @staticmethod
        def store(event: InputEvent, ctx: RunnerContext) -> None:
            ref = ctx.short_term_memory.set("texts.last", event.input)
            ctx.send_event(Event("stored", {"ref": ref, "other": ctx.sensory_memory.set("n", 5)}))

        @action("stored")
        @staticmethod
        def read(event: Event, ctx: RunnerContext) -> None:
            ref: MemoryRef = event.get_attr("ref")
            ctx.send_event(OutputEvent((ref.resolve(ctx), event.get_attr("other").resolve(ctx))))

    assert run_agent(Refers(), ["long text"]).outputs == [("long text", 5)]


def test_memory_expires() -> None:
    clock = ManualClock(1_000)

    def act(event: InputEvent, ctx: RunnerContext) -> None:
        memory = ctx.short_term_memory
        ctx.send_event(OutputEvent(memory.get("last")))
        memory.set("last", event.input)
        clock.advance(40 if event.input == 2 else 10)

    options = {
        AgentExecutionOptions.SHORT_TERM_MEMORY_STATE_TTL_MS: 30,
        AgentExecutionOptions.SHORT_TERM_MEMORY_STATE_TTL_UPDATE_TYPE: ShortTermMemoryTtlUpdate.ON_CREATE_AND_WRITE,
    }
    assert run_agent(single(act), [1, 2, 3, 4], options=options, clock=clock).outputs == [None, 1, None, 3]


def test_skip_continues_after_the_failed_input() -> None:
    class Fails(Agent):
        @action(InputEvent)
        @staticmethod
        def first(event: InputEvent, ctx: RunnerContext) -> None:
            ctx.short_term_memory.append("started", event.input)
            ctx.send_event(OutputEvent(("started", event.input)))
            ctx.send_event(Event("next", {"n": event.input}))

        @action("next")
        @staticmethod
        async def second(event: Event, ctx: RunnerContext) -> None:
            ctx.short_term_memory.append("ended", event.get_attr("n"))
            ctx.send_event(OutputEvent(("ended", event.get_attr("n"))))
            if event.get_attr("n") == 2:
                raise ValueError("two")
            await asyncio.sleep(0)
            ctx.send_event(OutputEvent(ctx.short_term_memory.to_dict()))

    outputs = run_agent(Fails(), [1, 2, 3], options=SKIP).outputs
    assert ("started", 2) in outputs, "effects of finished actions remain"
    assert ("ended", 2) not in outputs
    assert outputs[-1] == {"started": [1, 2, 3], "ended": [1, 3]}


def test_a_malformed_output_leaves_nothing() -> None:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent("good"))
        ctx.send_event(Event(OutputEvent.EVENT_TYPE, {"result": 1}))

    assert run_agent(single(act), [1], options=SKIP).outputs == []


def test_an_object_may_be_an_action() -> None:
    class Plain:
        def __call__(self, event: InputEvent, ctx: RunnerContext) -> None:
            ctx.send_event(OutputEvent("plain"))

    class Waits:
        async def __call__(self, event: InputEvent, ctx: RunnerContext) -> None:
            await asyncio.sleep(0)
            ctx.send_event(OutputEvent("waits"))

    agent = Agent("objects").add_action("a", [InputEvent], Plain()).add_action("b", [InputEvent], Waits())
    assert run_agent(agent, [1]).outputs == ["plain", "waits"]


def test_configuration_reaches_the_action() -> None:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        found = ctx.config.get(AgentExecutionOptions.MAX_STEPS)
        ctx.action_metric_group.get_counter("runs").inc()
        ctx.send_event(
            OutputEvent((found, ctx.action_config, ctx.get_action_config_value("size"), ctx.timestamp))
        )

    agent = Agent("configured").add_action("act", [InputEvent], act, size=3)
    run = run_agent(agent, [1], options={AgentExecutionOptions.MAX_STEPS: 77})
    assert run.outputs == [(77, {"size": 3}, 3, None)]


def test_blocking_functions_and_coroutines_run_durably() -> None:
    async def add(a: int, b: int) -> int:
        await asyncio.sleep(0)
        return a + b

    def times(a: int, *, by: int) -> int:
        time.sleep(0.001)
        return a * by

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        first = await ctx.durable_execute_async(add, event.input, 1)
        second = await ctx.durable_execute_async(times, first, by=10)
        third = await ctx.durable_execute_async(lambda: add(1, 1))
        ctx.send_event(OutputEvent((first, second, third, ctx.durable_execute(times, 2, by=2))))

    assert run_agent(single(act), [1, 2]).outputs == [(2, 20, 2, 4), (3, 30, 2, 4)]


def test_conditions_choose_actions() -> None:
    class Routed(Agent):
        @action(InputEvent)
        @staticmethod
        def begin(event: InputEvent, ctx: RunnerContext) -> None:
            ctx.send_event(Event("order", {"amount": event.input}))

        @action("attributes.amount > 5")
        @staticmethod
        def large(event: Event, ctx: RunnerContext) -> None:
            ctx.send_event(OutputEvent(("large", event.get_attr("amount"))))

        @action(lambda event: event.type == "order" and event.get_attr("amount") < 0)
        @staticmethod
        def negative(event: Event, ctx: RunnerContext) -> None:
            ctx.send_event(OutputEvent(("negative", event.get_attr("amount"))))

    assert run_agent(Routed(), [1, 9, -1]).outputs == [("large", 9), ("negative", -1)]


def test_a_condition_that_fails_counts_as_false_and_is_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def picky(event: Event) -> bool:
        return event.attributes["amount"] > 5

    class Picky(Agent):
        @action(InputEvent)
        @staticmethod
        def begin(event: InputEvent, ctx: RunnerContext) -> None:
            ctx.send_event(Event("order", {"sum": 7}))
            ctx.send_event(OutputEvent(event.input))

        @action(picky)
        @staticmethod
        def never(event: Event, ctx: RunnerContext) -> None:
            raise AssertionError

    with caplog.at_level(logging.WARNING, "emberflow.agents"):
        assert run_agent(Picky(), [1, 2, 3]).outputs == [1, 2, 3]
    (reported,) = [text for text in caplog.messages if "cannot be evaluated" in text]
    assert "agent 'Picky', action 'never': the condition" in reported
    assert "for events of type 'order' and counts as false: KeyError: 'amount'" in reported


def test_a_condition_that_fails_may_stop_the_run() -> None:
    def picky(event: Event) -> bool:
        return event.type != "odd" or event.attributes["amount"] > 5

    class Picky(Agent):
        @action(InputEvent)
        @staticmethod
        def begin(event: InputEvent, ctx: RunnerContext) -> None:
            ctx.send_event(OutputEvent(("begun", event.input)))
            if event.input % 2:
                ctx.send_event(Event("odd"))

        @action(picky)
        @staticmethod
        def other(event: Event, ctx: RunnerContext) -> None:
            pass

    options: dict[Any, Any] = {
        AgentConfigOptions.CONDITION_EVALUATION_FAILURE_STRATEGY: ConditionEvaluationFailureStrategy.FAIL
    }
    with pytest.raises(Exception, match=r"picky.*of action 'other' failed: KeyError: 'amount'"):
        run_agent(Picky(), [2, 1], options=options)
    assert run_agent(Picky(), [2, 1, 4], options={**options, **SKIP}).outputs == [("begun", 2), ("begun", 4)]
