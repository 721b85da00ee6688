"""Chat models whose `chat` is the user's own, in the forms in which Flink Agents' programs write it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    ChatMessage,
    ChatRequestEvent,
    ChatResponseEvent,
    InputEvent,
    OutputEvent,
    ReActAgent,
    ResourceDescriptor,
    ResourceType,
    RunnerContext,
)
from emberflow.agents.models.chat_model import BaseChatModelConnection, BaseChatModelSetup
from emberflow.testing import run_agent

QUESTION = [ChatMessage(content="q")]


@dataclass
class Total:
    total: int


class Own(BaseChatModelSetup):
    """Takes what it needs from its keyword arguments."""

    def open(self) -> None:
        pass

    @property
    def model_kwargs(self) -> dict[str, Any]:
        return {}

    def chat(self, messages: Any, **kwargs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return answered(messages, kwargs)


class OwnAsync(Own):
    async def chat(self, messages: Any, **kwargs: Any) -> Any:
        return answered(messages, kwargs)


def answered(messages: Sequence[ChatMessage], given: dict[str, Any]) -> ChatMessage:
    if '"total"' in messages[0].content:
        return ChatMessage(role="assistant", content='{"total": 3}')
    return ChatMessage(role="assistant", content=f"{messages[-1].content} {given}")


class Down(BaseChatModelConnection):
    async def chat(self, messages: Any, tools: Any = None, **kwargs: Any) -> ChatMessage:
        raise ConnectionError("down")


OWN = pytest.mark.parametrize("clazz", [Own, OwnAsync])


def described(clazz: type[BaseChatModelSetup]) -> ResourceDescriptor:
    return ResourceDescriptor(clazz=clazz, connection="none")


def with_own(agent: Agent, clazz: type[BaseChatModelSetup]) -> Agent:
    """The agent with the model "m", and "spare", whose own service is down."""
    spare = ResourceDescriptor(clazz=BaseChatModelSetup, connection="down", fallback="m")
    return (
        agent.add_resource("m", ResourceType.CHAT_MODEL, described(clazz))
        .add_resource("down", ResourceType.CHAT_MODEL_CONNECTION, Down())
        .add_resource("spare", ResourceType.CHAT_MODEL, spare)
    )


@OWN
@pytest.mark.parametrize("model", ["m", "spare"])
def test_a_chat_by_events(clazz: type[BaseChatModelSetup], model: str) -> None:
    def ask(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(ChatRequestEvent(model, QUESTION, prompt_args={"a": 1}))

    def answer(event: ChatResponseEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(event.response.content))

    agent = Agent().add_action("ask", [InputEvent], ask).add_action("answer", [ChatResponseEvent], answer)
    assert run_agent(with_own(agent, clazz), [0]).outputs == ["q {'prompt_args': {'a': 1}}"]


@OWN
@pytest.mark.parametrize("model", ["m", "spare"])
def test_a_chat_inside_an_action(clazz: type[BaseChatModelSetup], model: str) -> None:
    async def ask(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent((await ctx.chat(model, "q")).content))
        ctx.send_event(OutputEvent(await ctx.chat(model, "q", output=Total)))

    def directly(event: InputEvent, ctx: RunnerContext) -> None:
        found = ctx.get_resource(model, ResourceType.CHAT_MODEL)
        ctx.send_event(OutputEvent(found.chat(QUESTION, prompt_args=None).content))

    agent = Agent().add_action("ask", [InputEvent], ask)
    assert run_agent(with_own(agent, clazz), [0]).outputs == ["q {'prompt_args': None}", Total(3)]
    agent = Agent().add_action("ask", [InputEvent], directly)
    assert run_agent(with_own(agent, clazz), [0]).outputs == ["q {'prompt_args': None}"]


@OWN
def test_the_model_of_a_react_agent(clazz: type[BaseChatModelSetup]) -> None:
    agent = ReActAgent(chat_model=described(clazz), output_schema=Total)
    assert run_agent(agent, ["q"]).outputs == [Total(3)]
