"""Agents that chat with a scripted model which calls tools, for the tests of the built-in actions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from emberflow.agents import (
    Agent,
    BaseChatModelSetup,
    ChatRequestEvent,
    ChatResponseEvent,
    InputEvent,
    OutputEvent,
    ReActAgent,
    ResourceDescriptor,
    ResourceType,
    RunnerContext,
)
from emberflow.testing import ScriptedChatModel


@dataclass
class Total:
    total: int


def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


def fails(x: int = 0) -> int:
    """Always fails."""
    raise ValueError(f"no {x}")


async def hangs() -> str:
    """Never answers."""
    await asyncio.sleep(3_600)
    return "at last"


def locked() -> Any:
    """Returns something that cannot be sent anywhere."""
    return threading.Lock()


def leaves() -> None:
    """Ends the program, if nobody prevents it."""
    raise SystemExit(3)


def long_text(size: int) -> str:
    """A long text."""
    return "x" * size


TOOLS: tuple[Callable[..., Any], ...] = (add, fails, hangs, locked, leaves, long_text)


def with_model(agent: Agent, replies: Any, *, name: str = "", tools: Any = None, **setup: Any) -> Agent:
    """The agent with a scripted model `model` that may call the tools of this file."""
    names = [tool.__name__ for tool in TOOLS] if tools is None else tools
    service = ResourceDescriptor(clazz=ScriptedChatModel, replies=replies, name=name)
    model = ResourceDescriptor(clazz=BaseChatModelSetup, connection="service", tools=names, **setup)
    agent.add_resource("service", ResourceType.CHAT_MODEL_CONNECTION, service)
    agent.add_resource("model", ResourceType.CHAT_MODEL, model)
    for tool in TOOLS:
        agent.add_resource(tool.__name__, ResourceType.TOOL, tool)
    return agent


def chatting(replies: Any, *, output: Any = None, max_steps: int | None = None, **given: Any) -> Agent:
    """Answers every input with `ctx.chat`."""

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        answer = await ctx.chat("model", event.input, output=output, max_steps=max_steps)
        ctx.send_event(OutputEvent(answer if output is not None else answer.content))

    return with_model(Agent("chatting").add_action("act", [InputEvent], act), replies, **given)


def requesting(replies: Any, *, output: Any = None, max_steps: int | None = None, **given: Any) -> Agent:
    """The same with events: `ChatRequestEvent` and `ChatResponseEvent`."""

    def ask(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(ChatRequestEvent("model", event.input, output_schema=output, max_steps=max_steps))

    def answered(event: ChatResponseEvent, ctx: RunnerContext) -> None:
        found = event.response.extra_args.get("structured_output", event.response.content)
        ctx.send_event(OutputEvent(found))

    agent = Agent("requesting").add_action("ask", [InputEvent], ask)
    agent.add_action("answered", [ChatResponseEvent], answered)
    return with_model(agent, replies, **given)


def reacting(replies: Any, *, output: Any = None, max_steps: int | None = None, **given: Any) -> Agent:
    """The same with a `ReActAgent`."""
    agent = ReActAgent(chat_model="model", output_schema=output, max_steps=max_steps, name="reacting")
    return with_model(agent, replies, **given)


FORMS: Sequence[Callable[..., Agent]] = (chatting, requesting, reacting)
"""The three ways to the same loop."""
