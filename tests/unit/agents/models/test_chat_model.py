"""Setups: a prompt, tools and settings around a connection, in an agent and alone."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest

from emberflow.agents import Agent, AgentPlan, InputEvent, OutputEvent, ResourceDescriptor, RunnerContext
from emberflow.agents.models.chat_message import ChatMessage, MessageRole
from emberflow.agents.models.chat_model import BaseChatModelConnection, BaseChatModelSetup
from emberflow.agents.models.prompt_text import Prompt
from emberflow.errors import EmberflowError, InvalidAgent, InvalidArgument, ResourceFailed
from emberflow.plan.agents.resources import ResourceType
from emberflow.testing import run_agent
from emberflow.testing.scripted_model import Reply, ScriptedChatModel, ScriptedTimeout, When

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


def test_empty_messages_are_dropped_except_those_of_tools() -> None:
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


def test_wrong_names_are_reported_with_the_first_call() -> None:
    with pytest.raises(ResourceFailed, match="'model', but it is not part of an agent"):
        asyncio.run(BaseChatModelSetup(connection="model").chat([HELLO]))
    setup = BaseChatModelSetup(connection="model")
    setup.resource_context = Context(model=Prompt.from_text("p"))
    with pytest.raises(ResourceFailed, match="is a Prompt, the chat model needs a BaseChatModelConnection"):
        asyncio.run(setup.chat([HELLO]))
    with pytest.raises(InvalidAgent, match="tools must be a list of names"):
        BaseChatModelSetup(connection="model", tools="add")


class Away(BaseChatModelConnection):
    """Accepts idempotency keys, and always fails."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    async def chat(
        self, messages: Any, tools: Any = None, *, idempotency_key: str = "", **kwargs: Any
    ) -> ChatMessage:
        self.keys.append(idempotency_key)
        raise ConnectionError("the model is away")


def test_a_fallback_is_called_with_its_own_prompt_tools_and_settings() -> None:
    model = ScriptedChatModel([When(reply="hi")])
    fallback = BaseChatModelSetup(
        connection=model, model="small", prompt=Prompt.from_text("Briefly, in {role}."), tools=[add]
    )
    setup = BaseChatModelSetup(
        connection=Away(), model="large", prompt=Prompt.from_text("Speak {role}."), fallback=fallback
    )

    asked = iter([HELLO])
    reply = asyncio.run(setup.chat(asked, {"role": "German"}, temperature=0.5, model="larger"))  # pyright: ignore[reportArgumentType]

    assert reply.content == "hi"
    assert [message.content for message in model.calls[0].messages] == ["Briefly, in German.", "hello"]
    assert model.calls[0].tools == ["add"]
    assert model.calls[0].settings == {"model": "small", "temperature": 0.5}
    assert setup.call_settings["fallback"] == fallback.call_settings


def test_the_error_of_the_last_fallback_is_raised() -> None:
    first, second = Away(), Away()
    other = BaseChatModelSetup(connection=second)
    setup = BaseChatModelSetup(
        connection=first, fallback=BaseChatModelSetup(connection=first, fallback=other)
    )
    with pytest.raises(ConnectionError, match="away"):
        asyncio.run(setup.chat([HELLO], idempotency_key="k"))
    assert first.keys == ["k", "k-fallback"]
    assert second.keys == ["k-fallback-fallback"]


@pytest.mark.parametrize("keyed_first", [True, False])
def test_idempotency_keys_are_passed_to_connections_that_accept_them(keyed_first: bool) -> None:
    keyed, plain = Away(), ScriptedChatModel([When(reply=Reply(error="timeout"))])
    first, second = (keyed, plain) if keyed_first else (plain, keyed)
    setup = BaseChatModelSetup(connection=first, fallback=BaseChatModelSetup(connection=second))
    assert setup.wants_idempotency_key

    with pytest.raises((ConnectionError, ScriptedTimeout)):
        asyncio.run(setup.chat([HELLO], idempotency_key="k"))

    assert keyed.keys == ["k" if keyed_first else "k-fallback"]
    assert "idempotency_key" not in plain.calls[0].settings


def test_cyclic_fallbacks_are_rejected() -> None:
    agent = Agent("circle")
    for name, other in (("large", "small"), ("small", "large")):
        described = ResourceDescriptor(clazz=BaseChatModelSetup, connection="service", fallback=other)
        agent.add_resource(name, ResourceType.CHAT_MODEL, described)
    agent.add_resource("service", ResourceType.CHAT_MODEL_CONNECTION, ScriptedChatModel([When(reply="hi")]))
    agent.add_action("ask", [InputEvent], ask_large)
    with pytest.raises(EmberflowError, match="in a cycle: chat_model 'small' -> chat_model 'large'"):
        run_agent(agent, ["hello"])


async def ask_large(event: InputEvent, ctx: Any) -> None:
    await ctx.chat("large", event.input)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_throttled_call_does_not_wait_if_there_is_a_fallback(status: int) -> None:
    """A fallback that fails for another reason does not count as throttled either."""
    agent = Agent("patient")
    services = {"busy": When(reply=Reply(error=status)), "broken": When(reply=Reply(error=400))}
    for name, rule in services.items():
        described = ResourceDescriptor(clazz=ScriptedChatModel, replies=[rule], requests_per_minute=1_000)
        agent.add_resource(name, ResourceType.CHAT_MODEL_CONNECTION, described)
    for name, settings in (
        ("large", {"connection": "busy", "fallback": "small"}),
        ("small", {"connection": "broken"}),
    ):
        described = ResourceDescriptor(clazz=BaseChatModelSetup, **settings)  # pyright: ignore[reportArgumentType]
        agent.add_resource(name, ResourceType.CHAT_MODEL, described)
    agent.add_action("ask", [InputEvent], ask_large)
    with pytest.raises(EmberflowError, match="400"):
        run_agent(agent, ["hello"])


class OwnChat(BaseChatModelSetup):
    """Answers by itself, as programs of Flink Agents do: its connection is never used."""

    def open(self) -> None:
        pass

    @property
    def model_kwargs(self) -> dict[str, Any]:
        return {}

    def chat(self, messages: Any, prompt_args: Any = None, **kwargs: Any) -> Any:
        tool = self.resource_context.get_resource("add", ResourceType.TOOL)
        about = [tool.name, tool.metadata.name, tool(1, 2)]
        return ChatMessage(role="assistant", content=f"{messages[-1].content} {about}")


class OwnChatCalls(BaseChatModelSetup):
    """Calls a tool as a tool."""

    async def chat(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        tool: Any = self.resource_context.get_resource("add", ResourceType.TOOL)
        return ChatMessage(role="assistant", content=str(await tool.call({"a": 1, "b": 2})))


def own(setup: type[BaseChatModelSetup], act: Any) -> Agent:
    described = ResourceDescriptor(clazz=setup, connection="none-at-all", model="x", tools=["add"])
    agent = Agent("own").add_action("act", [InputEvent], act)
    agent.add_resource("add", ResourceType.TOOL, add)
    return agent.add_resource("m", ResourceType.CHAT_MODEL, described)


def test_a_setup_whose_own_chat_needs_no_connection() -> None:
    def plain(event: InputEvent, ctx: RunnerContext) -> None:
        model = ctx.get_resource("m", ResourceType.CHAT_MODEL)
        ctx.send_event(OutputEvent(model.chat([ChatMessage(content="hi")]).content))

    async def loop(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent((await ctx.chat("m", [ChatMessage(content="hi")])).content))

    for act in (plain, loop):
        assert run_agent(own(OwnChat, act), [0]).outputs == ["hi ['add', 'add', 3]"]
    assert run_agent(own(OwnChatCalls, loop), [0]).outputs == ["3"]
    with pytest.raises(InvalidAgent, match="the connection 'none-at-all', which the agent does not have"):
        run_agent(own(BaseChatModelSetup, loop), [0])


def test_a_placeholder_without_a_value_is_never_sent_to_a_model() -> None:
    service = ScriptedChatModel(["about tea"])

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent((await ctx.chat("m", "x", event.input)).content))

    setup = ResourceDescriptor(clazz=BaseChatModelSetup, connection="service", prompt="about")
    agent = Agent("a").add_action("act", [InputEvent], act)
    agent.add_resource("service", ResourceType.CHAT_MODEL_CONNECTION, service)
    agent.add_resource("m", ResourceType.CHAT_MODEL, setup)
    agent.add_resource(
        "about", ResourceType.PROMPT, Prompt.from_text('about {topic}, as {"n": 1} or {{this}}')
    )
    said = r"the prompt 'about' has no value for \{topic\}; did you mean \{topik\}"
    with pytest.raises(InvalidArgument, match=said) as failed:
        run_agent(agent, [{"topik": "tea"}])
    assert "given: 'topik'" in failed.value.cause
    assert "write {{topic}}" in failed.value.way_out
    with pytest.raises(InvalidArgument, match=r"no value for \{topic\}"):
        run_agent(agent, [None])
    assert run_agent(agent, [{"topic": "tea"}]).outputs == ["about tea"]


@pytest.mark.parametrize("kind", [ResourceType.CHAT_MODEL, ResourceType.CHAT_MODEL_CONNECTION])
def test_a_model_that_is_only_a_name_is_rejected_when_the_agent_is_applied(kind: ResourceType) -> None:
    with pytest.raises(InvalidAgent, match=r"the chat_model\w* 'm' is 'gpt-5', which has no method chat\(\)"):
        AgentPlan.from_agent(Agent("shop").add_resource("m", kind, "gpt-5"))
