"""Functions that YAML files of the tests name. In a separate module, like users' functions."""

from __future__ import annotations

from typing import Any

from emberflow.agents import BaseChatModelSetup, ChatMessage, Event, InputEvent, OutputEvent, RunnerContext
from emberflow.testing import Reply, ScriptedChatModel, tool_call

NOT_A_FUNCTION = 1


class Doubled(Event):
    EVENT_TYPE = "doubled"
    number: int


def double(event: InputEvent, ctx: RunnerContext) -> None:
    ctx.send_event(Doubled(number=event.input * 2))


def report(event: Doubled, ctx: RunnerContext) -> None:
    ctx.send_event(OutputEvent(event.number))


def greet(event: InputEvent, ctx: RunnerContext) -> None:
    ctx.send_event(OutputEvent(f"{ctx.action_config.get('greeting', 'hello')} {event.input}"))


async def ask(event: InputEvent, ctx: RunnerContext) -> None:
    model = ctx.get_resource("judge", "chat_model")
    answer = await model.chat([], prompt_args={"question": event.input})
    total = await ctx.call_tool("add", a=1, b=len(answer.content))
    ctx.send_event(OutputEvent(f"{answer.content} {total}"))


def no_action() -> None:
    """Takes no event."""


def sends_anything(event: InputEvent, ctx: RunnerContext) -> None:
    ctx.send_event(Event(type=f"about_{event.input}"))


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def look_up(order: str, tenant: str) -> str:
    """Looks up an order."""
    return f"{order} of {tenant}"


async def find(event: InputEvent, ctx: RunnerContext) -> None:
    ctx.send_event(OutputEvent(await ctx.call_tool("look_up", order=event.input)))


class Functions:
    @staticmethod
    def shout(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(event.input.upper()))


class OwnSetup(BaseChatModelSetup):
    """Takes settings that only it knows."""

    def __init__(self, **kwargs: Any) -> None:
        self.own = kwargs.pop("anything")
        super().__init__(**kwargs)


def play(messages: list[ChatMessage]) -> str | Reply:
    if any(message.content.startswith("Look up: ") for message in messages):
        return '{"height": 4806}'
    if messages[-1].role.value == "tool":
        return f"It says: {messages[-1].content}"
    return Reply(tool_calls=[tool_call("researcher", input="Mont Blanc")])


class TeamModel(ScriptedChatModel):
    """Plays a coordinator and a researcher."""

    def __init__(self) -> None:
        super().__init__(play)
