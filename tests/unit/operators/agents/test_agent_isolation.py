"""Changes that an action makes to objects that it received, sent or stored are not visible anywhere else."""

from __future__ import annotations

from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    ErrorEvent,
    Event,
    InputEvent,
    OutputEvent,
    Retry,
    RunnerContext,
)
from emberflow.errors import NotSerializable
from emberflow.testing import ManualClock
from tests.support.agent_harness import AgentHarness, Turn
from tests.support.memory_log import MemoryLog


def driven(agent: Agent, inputs: list[Any], **options: Any) -> list[Any]:
    made = AgentHarness(agent, **options)
    made.send(inputs)
    made.calls.finish_all()
    made.close()
    return made.values


@pytest.mark.parametrize("memory", ["short_term_memory", "sensory_memory"])
@pytest.mark.parametrize("waits", [False, True], ids=["plain", "waiting"])
def test_a_value_changed_in_place_is_not_remembered(memory: str, waits: bool) -> None:
    def work(event: InputEvent, ctx: RunnerContext) -> None:
        place = getattr(ctx, memory)
        if event.input[1] == 0:
            value = {"x": 0, "list": [1]}
            place.set("d", value)
            place.append("items", value)
            value["x"] = 99
        place.get("d", {"x": 0})["x"] += 1
        if place.get("items"):
            place.get("items")[0]["list"].append(2)
        if event.input[1] == 1:
            raise ValueError("no")
        ctx.send_event(OutputEvent((place.get("d"), place.get("items"))))

    async def wait(event: InputEvent, ctx: RunnerContext) -> None:
        work(event, ctx)
        await Turn()

    agent = Agent("a").add_action("work", [InputEvent], wait if waits else work)
    fresh = ({"x": 0, "list": [1]}, [{"x": 0, "list": [1]}])
    later = fresh if memory == "short_term_memory" else (None, None)
    assert driven(agent, [("k", 0), ("k", 1), ("k", 2)], skip=True) == [fresh, later]


def test_an_event_reaches_its_actions_as_it_was_sent() -> None:
    def start(event: InputEvent, ctx: RunnerContext) -> None:
        sent = Event("data", {"items": [1]})
        ctx.send_event(sent)
        assert sent.id
        first_id = sent.id
        sent.attributes["items"].append(2)
        sent.attributes["more"] = True
        ctx.send_event(sent)
        assert sent.id == first_id
        output = {"a": [1]}
        out = OutputEvent(output)
        ctx.send_event(out)
        output["a"].append(2)
        out.attributes["output"] = "other"

    def tell(event: Event, ctx: RunnerContext) -> None:
        event.attributes["items"].append("changed")
        ctx.send_event(OutputEvent({**event.attributes}))

    agent = Agent("a").add_action("start", [InputEvent], start)
    agent.add_action("one", ["data"], tell).add_action("two", ["data"], tell)
    first, second = {"items": [1, "changed"]}, {"items": [1, 2, "changed"], "more": True}
    assert driven(agent, [("k", 1)]) == [{"a": [1]}, first, first, second, second]


def test_outputs_trigger_no_action() -> None:
    """Not even those that are triggered by any event: they would answer themselves forever."""
    looked: list[str] = []

    def start(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent({"items": [1]}))

    def look(event: Event, ctx: RunnerContext) -> None:
        looked.append(event.type)
        if event.type == OutputEvent.EVENT_TYPE:
            ctx.send_event(OutputEvent("again"))

    agent = Agent("a").add_action("start", [InputEvent], start).add_action("named", [OutputEvent], look)
    agent.add_action("type", ["_output_event"], look).add_action("any", [lambda event: True], look)
    assert driven(agent, [("k", 1)]) == [{"items": [1]}]
    assert looked == ["_input_event"]


def test_an_agent_gets_its_own_copy_of_an_input() -> None:
    record = ("k", {"items": [1]})

    def work(event: InputEvent, ctx: RunnerContext) -> None:
        event.input[1]["items"].append(2)
        ctx.send_event(OutputEvent(event.input[1]["items"]))

    agent = Agent("a").add_action("one", [InputEvent], work).add_action("two", [InputEvent], work)
    assert driven(agent, [record, record]) == [[1, 2]] * 4
    assert record == ("k", {"items": [1]})


@pytest.mark.parametrize("waits", [False, True], ids=["plain", "waiting"])
def test_error_handling_receives_the_unchanged_event(waits: bool) -> None:
    def work(event: InputEvent, ctx: RunnerContext) -> None:
        event.input[1].append("changed")
        raise ValueError("no")

    async def wait(event: InputEvent, ctx: RunnerContext) -> None:
        await Turn()
        work(event, ctx)

    def tell(event: Event, ctx: RunnerContext) -> None:
        given = event.event if isinstance(event, ErrorEvent) else event
        ctx.send_event(OutputEvent(given.get_attr("input")))

    act = wait if waits else work
    with_fallback = Agent("a").add_action("work", [InputEvent], act, fallback="tell")
    with_fallback.add_action("tell", [], tell)
    assert driven(with_fallback, [("k", [1])]) == [("k", [1])]
    with_handler = Agent("a").add_action("work", [InputEvent], act).add_action("tell", [ErrorEvent], tell)
    assert driven(with_handler, [("k", [1])]) == [("k", [1])]


def test_each_attempt_receives_the_unchanged_event() -> None:
    seen: list[Any] = []

    async def work(event: InputEvent, ctx: RunnerContext) -> None:
        seen.append([*event.input[1]])
        event.input[1].append(ctx.attempt)
        if ctx.attempt < 3:
            raise ValueError("no")

    agent = Agent("a").add_action("work", [InputEvent], work, retry=Retry(attempts=3, backoff_ms=0))
    driven(agent, [("k", [0])])
    assert seen == [[0]] * 3


def test_a_stored_run_has_its_event_as_it_was_sent() -> None:
    async def work(event: InputEvent, ctx: RunnerContext) -> None:
        event.input[1].append("changed")
        await Turn()
        ctx.send_event(OutputEvent(event.input[1]))

    agent = Agent("a").add_action("work", [InputEvent], work)
    made = AgentHarness(agent)
    made.send([("k", [1])])
    made.calls.step()
    data = made.save()
    made.calls.open[0].drop()
    again = AgentHarness(agent, restore=data)
    again.resume()
    again.calls.finish_all()
    assert again.values == [[1, "changed"]]


def test_a_delayed_event_arrives_as_it_was_sent() -> None:
    def work(event: InputEvent, ctx: RunnerContext) -> None:
        sent = Event("later", {"items": [1]})
        ctx.send_event_after(10, sent)
        sent.attributes["items"].append(2)

    def tell(event: Event, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(event.attributes["items"]))

    agent = Agent("a").add_action("work", [InputEvent], work).add_action("tell", ["later"], tell)
    made = AgentHarness(agent, clock=ManualClock(0))
    made.send([("k", 1)])
    made.advance_clock(100)
    assert made.values == [[1]]


def test_an_answer_in_the_log_is_not_changed_by_the_action() -> None:
    class Log(MemoryLog):
        def write_now(self, record: Any) -> None:
            # Like the engine's log: it keeps the object it was given.
            self.records[record.call_id] = record

    async def work(event: InputEvent, ctx: RunnerContext) -> None:
        answer = await ctx.durable_execute_async(lambda: {"items": [1]})
        answer["items"].append(2)
        await Turn()
        ctx.send_event(OutputEvent(answer))

    agent, log = Agent("a").add_action("work", [InputEvent], work), Log()
    made = AgentHarness(agent)
    made.head.runtime.log = log
    made.send([("k", 1)])
    made.calls.step()
    data = made.save()
    made.calls.open[0].drop()
    for _ in range(2):
        log.claims.clear()
        again = AgentHarness(agent, restore=data)
        again.head.runtime.log = log
        again.resume()
        again.calls.finish_all()
        assert again.values == [{"items": [1, 2]}]


@pytest.mark.parametrize("size", [50_000_000, 100])
def test_an_input_counts_against_the_largest_event(size: int) -> None:
    def work(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(len(event.input[1]["text"])))

    agent = Agent("a").add_action("work", [InputEvent], work)
    inputs = [("k", {"text": "x" * size}), ("k", {"text": "x"})]
    limit = {AgentExecutionOptions.MAX_EVENT_BYTES: 1_000}
    if size == 100:
        assert driven(agent, inputs, options=limit) == [100, 1]
        return
    assert driven(agent, inputs, skip=True, options=limit) == [1]
    with pytest.raises(NotSerializable, match=r"the input has 50,000,00\d bytes; the limit is 1,000"):
        driven(agent, inputs, options=limit)
    made = AgentHarness(agent, options={**limit, AgentExecutionOptions.ON_ERROR: "dead-letter"})
    letters: list[Any] = []
    made.head.collect_owned = lambda values, *rest: letters.extend(values)  # pyright: ignore[reportAttributeAccessIssue]
    made.send(inputs)
    assert [(letter["error_type"], len(letter["input"][1]["text"])) for _, letter in letters[:1]] == [
        ("NotSerializable", size)
    ]
