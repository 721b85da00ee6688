"""Setups: a prompt, tools and settings around a connection, in an agent and alone."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest

from emberflow.agents.chat_message import ChatMessage, MessageRole
from emberflow.agents.chat_model import BaseChatModelSetup
from emberflow.agents.prompt import Prompt
from emberflow.errors import InvalidAgent, ResourceFailed
from emberflow.plan.resources import ResourceType
from emberflow.testing.scripted_model import ScriptedChatModel, When

HELLO = ChatMessage(content="hello")


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


class Context:
    def __init__(self, **resources: Any) -> None:
        self.resources = resources

    def get_resource(self, name: str, type: ResourceType) -> Any:
        return self.resources[name]


def test_alone() -> None:
    model = ScriptedChatModel([When(reply="hi")])
    setup = BaseChatModelSetup(
        connection=model, model="m", prompt=Prompt.from_text("Speak {role}."), tools=[add], temperature=0.1
    )

    reply = asyncio.run(setup.chat([HELLO], prompt_args={"role": "German"}, temperature=0.5))

    assert reply == ChatMessage(role=MessageRole.ASSISTANT, content="hi")
    assert model.calls[0].messages == [ChatMessage(role=MessageRole.SYSTEM, content="Speak German."), HELLO]
    assert model.calls[0].tools == ["add"]
    assert model.calls[0].settings == {"model": "m", "temperature": 0.5}
    assert setup.resource_type() is ResourceType.CHAT_MODEL
    assert model.resource_type() is ResourceType.CHAT_MODEL_CONNECTION


def test_in_an_agent_everything_has_a_name() -> None:
    model = ScriptedChatModel([When(reply="hi")])
    setup = BaseChatModelSetup(connection="model", prompt="greeting", tools=["plus"])
    setup.resource_context = Context(model=model, greeting=Prompt.from_text("Be kind."), plus=add)
    setup.open()

    asyncio.run(setup.chat([]))

    assert model.calls[0].messages == [ChatMessage(role=MessageRole.SYSTEM, content="Be kind.")]
    # A model calls a tool by the name of its resource.
    assert model.calls[0].tools == ["plus"]
    assert pickle.loads(pickle.dumps(setup)).tools == ["plus"]


def test_empty_questions_are_left_out_but_not_the_turns_of_tools() -> None:
    model = ScriptedChatModel([When(reply="hi")])
    turns = [
        ChatMessage(),
        ChatMessage(role=MessageRole.ASSISTANT),
        ChatMessage(role=MessageRole.TOOL, extra_args={"external_id": "1"}),
    ]
    asyncio.run(BaseChatModelSetup(connection=model, prompt=Prompt.from_text("p")).chat(turns))
    asyncio.run(BaseChatModelSetup(connection=model).chat(turns))
    assert model.calls[0].messages[1:] == turns[1:]
    assert model.calls[1].messages == turns


def test_many_at_once() -> None:
    setup = BaseChatModelSetup(
        connection=ScriptedChatModel({r"^a": "A", r"^b": "B"}), prompt=Prompt.from_text("p")
    )

    async def ask_all() -> list[str]:
        asked = [setup.chat([ChatMessage(content=text)]) for text in ["a", "b"] * 20]
        return [reply.content for reply in await asyncio.gather(*asked)]

    assert asyncio.run(ask_all()) == ["A", "B"] * 20


def test_wrong_names_show_early() -> None:
    with pytest.raises(ResourceFailed, match="'model', but it is not part of an agent"):
        asyncio.run(BaseChatModelSetup(connection="model").chat([HELLO]))
    setup = BaseChatModelSetup(connection="model")
    setup.resource_context = Context(model=Prompt.from_text("p"))
    with pytest.raises(ResourceFailed, match="is a Prompt, the chat model needs a BaseChatModelConnection"):
        setup.open()
    with pytest.raises(InvalidAgent, match="tools is a list of names"):
        BaseChatModelSetup(connection="model", tools="add")
