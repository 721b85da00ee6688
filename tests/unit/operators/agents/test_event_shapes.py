"""Events inside a running agent: ids that are read early, plain attributes, triggers by quoted types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from emberflow.agents import (
    Agent,
    ChatMessage,
    Event,
    Image,
    InputEvent,
    MemoryRef,
    OutputEvent,
    Retry,
    RunnerContext,
    action,
)
from emberflow.testing import run_agent
from tests.support.agent_harness import AgentHarness, Turn


@dataclass
class Own:
    n: int


class Order(BaseModel):
    id: int
    items: list[str] = []


class Checked(Event):
    order: Order
    ok: bool = True


def driven(agent: Agent, inputs: list[Any]) -> list[Any]:
    made = AgentHarness(agent)
    made.send(inputs)
    made.calls.finish_all()
    made.close()
    return made.values


@pytest.mark.parametrize("waits", [False, True], ids=["plain", "waiting"])
def test_an_id_read_before_sending_is_the_receivers_and_the_same_in_every_run(waits: bool) -> None:
    seen: list[tuple[str, ...]] = []

    def send(event: InputEvent, ctx: RunnerContext) -> None:
        unsent, first, second = (Event(type=name) for name in ("never", "data", "data"))
        seen.append((unsent.id, first.id))
        ctx.send_event(second)
        ctx.send_event(first)
        ctx.send_event(first)
        seen.append((second.id, first.id))

    async def wait(event: InputEvent, ctx: RunnerContext) -> None:
        send(event, ctx)
        await Turn()

    def receive(event: Event, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(event.id))

    def run() -> tuple[list[Any], list[tuple[str, ...]]]:
        seen.clear()
        agent = Agent("a").add_action("send", [InputEvent], wait if waits else send)
        return driven(agent.add_action("receive", ["data"], receive), [("k", 1)]), [*seen]

    found, ids = run()
    (never, early), (late, same) = ids
    assert found[:2] == [late, early]
    assert early == same
    assert len({never, *found}) == 4
    assert run() == (found, ids)


def test_ids_read_by_a_failed_attempt_are_used_again() -> None:
    ids: list[str] = []

    async def work(event: InputEvent, ctx: RunnerContext) -> None:
        ids.append(Event(type="x").id)
        if ctx.attempt == 1:
            raise ValueError("no")

    driven(
        Agent("a").add_action("work", [InputEvent], work, retry=Retry(attempts=2, backoff_ms=0)), [("k", 1)]
    )
    assert len(ids) == 2
    assert len(set(ids)) == 1


def test_models_are_plain_data_in_attributes_and_outputs_and_typed_in_event_classes() -> None:
    def start(event: InputEvent, ctx: RunnerContext) -> None:
        assert event.input[1]["order"]["id"] == 1
        order = Order(id=1, items=["a"])
        ctx.send_event(Event(type="data", attributes={"v": order, "all": [order], "pair": (order, 1)}))
        ctx.send_event(Checked(order=order))

    def data(event: Event, ctx: RunnerContext) -> None:
        found = event.attributes
        ctx.send_event(OutputEvent((found["v"]["id"], found["all"][0]["items"], found["pair"])))

    def typed(event: Checked, ctx: RunnerContext) -> None:
        assert event.attributes["order"]["id"] == 1
        ctx.send_event(OutputEvent(event.order))

    agent = Agent("a").add_action("start", [InputEvent], start).add_action("data", ["data"], data)
    agent.add_action("typed", ["order.id == 1 && type == 'Checked'"], typed)
    plain = {"id": 1, "items": ["a"]}
    assert driven(agent, [("k", {"order": Order(id=1)})]) == [(1, ["a"], (plain, 1)), plain]


@pytest.mark.parametrize("condition", ["'order:created'", '"order:created"'])
def test_a_quoted_type_is_a_type(condition: str) -> None:
    def start(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(Event(type="order:created"))

    def created(event: Event, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(event.type))

    agent = Agent("a").add_action("start", [InputEvent], start).add_action("created", [condition], created)
    assert driven(agent, [("k", 1)]) == ["order:created"]


def test_messages_and_references_are_read_as_objects_and_like_dictionaries() -> None:
    """As emberflow's programs read them, and as those of Flink Agents do."""

    class Sent(Event):
        message: ChatMessage
        ref: MemoryRef

    class Reads(Agent):
        @action(InputEvent)
        @staticmethod
        def send(event: InputEvent, ctx: RunnerContext) -> None:
            message = ChatMessage(role="assistant", content="hi", images=[Image(url="https://x.test/a.png")])
            ref = ctx.sensory_memory.set("text", event.input)
            ctx.send_event(Event("plain", {"message": message, "ref": ref, "own": Own(3)}))
            ctx.send_event(Sent(message=message, ref=ref))

        @action("plain", Sent)
        @staticmethod
        def read(event: Event, ctx: RunnerContext) -> None:
            message, ref = event.get_attr("message"), event.get_attr("ref")
            assert isinstance(message, ChatMessage)
            assert (message.content, message["content"], message.get("none", 1)) == ("hi", "hi", 1)
            assert message["role"] == "assistant"
            assert message["images"][0]["url"] == "https://x.test/a.png"
            assert dict(message) == {**message} == message.model_dump()
            assert ChatMessage.model_validate(dict(message)) == ChatMessage.model_validate(message)
            assert "content" in message
            assert "text" not in message
            with pytest.raises(KeyError):
                message["text"]
            with pytest.raises(TypeError):
                iter(message)  # pyright: ignore[reportCallIssue, reportArgumentType]
            assert ref["path"] == ref.path == "text"
            found = (
                ref.resolve(ctx),
                ctx.sensory_memory.get(ref),
                ctx.sensory_memory.get(MemoryRef.model_validate(dict(ref))),
            )
            ctx.send_event(OutputEvent(found))

        @action(Sent)
        @staticmethod
        def typed(event: Sent, ctx: RunnerContext) -> None:
            ctx.send_event(OutputEvent((event.message.content, event.ref.resolve(ctx))))

        @action("plain")
        @staticmethod
        def from_plain(event: Event, ctx: RunnerContext) -> None:
            assert event.get_attr("own") == Own(3)
            sent = Sent.from_event(event)
            ctx.send_event(OutputEvent((sent.message.content, sent.ref.resolve(ctx))))

    three, two = ("t", "t", "t"), ("hi", "t")
    assert run_agent(Reads(), ["t"]).outputs == [three, two, three, two]
