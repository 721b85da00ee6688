"""Agents that call agents, for several tests. In a separate module, like users' agents."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from emberflow.agents import (
    Agent,
    BaseChatModelSetup,
    Event,
    InputEvent,
    OutputEvent,
    ReActAgent,
    ResourceDescriptor,
    ResourceType,
    RunnerContext,
    action,
)
from emberflow.testing import Reply, ScriptedChatModel, When, tool_call

AGENT, TOOL = ResourceType.AGENT, ResourceType.TOOL

counted: list[Any] = []
"""What `count` was called with, in this process."""


def count(number: int) -> int:
    """Returns the number."""
    counted.append(number)
    return number


class Doubled(Event):
    EVENT_TYPE = "doubled"
    number: int
    times: int


class Doubler(Agent):
    """Doubles numbers."""

    @action(InputEvent)
    @staticmethod
    async def double(event: InputEvent, ctx: RunnerContext) -> None:
        times = ctx.short_term_memory.get("times", 0) + 1
        ctx.short_term_memory.set("times", times)
        number = await ctx.call_tool("count", number=event.input)
        ctx.send_event(Doubled(number=number * 2, times=times))

    @action(Doubled)
    @staticmethod
    def report(event: Doubled, ctx: RunnerContext) -> None:
        if event.number == 26:
            raise ValueError("it brings bad luck")
        ctx.send_event(OutputEvent({"number": event.number, "times": event.times}))


class Reader(Agent):
    """Passes on the numbers of pairs."""

    @action(InputEvent)
    @staticmethod
    def read(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent({"number": event.input[1]}))


def doubler() -> Agent:
    return Doubler().add_resource("count", TOOL, count)


class Boss(Agent):
    """Asks the doubler twice, side by side, and remembers the answers."""

    @action(InputEvent)
    @staticmethod
    async def ask(event: InputEvent, ctx: RunnerContext) -> None:
        first, second = await asyncio.gather(
            ctx.call_agent("doubler", event.input), ctx.call_agent("doubler", event.input + 1)
        )
        ctx.short_term_memory.append("seen", first["number"])
        ctx.send_event(OutputEvent([first["number"], second["number"], ctx.short_term_memory.keys()]))


class Asker(Agent):
    """Asks the doubler and its model."""

    @action(InputEvent)
    @staticmethod
    async def ask(event: InputEvent, ctx: RunnerContext) -> None:
        found = await ctx.call_agent("doubler", event.input[1])
        answer = await ctx.call_agent("manager", "What is 1 + 2?")
        ctx.send_event(OutputEvent((ctx.key, found["number"], found["times"], answer)))


def asker() -> Agent:
    return Asker().add_resource("doubler", AGENT, doubler()).add_resource("manager", AGENT, manager())


def boss() -> Agent:
    return Boss().add_resource("doubler", AGENT, doubler())


@dataclass
class Sum:
    a: int
    b: int


class Adder(Agent):
    description = "Adds two numbers."
    input_type = Sum

    @action(InputEvent)
    @staticmethod
    async def add(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(await ctx.call_tool("count", number=event.input.a + event.input.b)))


def manager(*turns: Any) -> Agent:
    """A model that has the adder as a tool; by default it adds 1 and 2."""
    replies: list[Any] = list(turns) or [
        Reply(tool_calls=[tool_call("adder", input={"a": 1, "b": 2})]),
        Reply("It is 3.", extra_args={"usage": {"prompt_tokens": 10, "completion_tokens": 4}}),
    ]
    model = ResourceDescriptor(clazz=BaseChatModelSetup, connection="service", tools=["adder"])
    service = ResourceDescriptor(clazz=ScriptedChatModel, replies=[When(reply=replies)], name="manager")
    return (
        ReActAgent(chat_model=model, name="manager")
        .add_resource("service", ResourceType.CHAT_MODEL_CONNECTION, service)
        .add_resource("adder", AGENT, Adder().add_resource("count", TOOL, count))
    )
