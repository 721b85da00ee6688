"""`ReActAgent`: prompts, inputs of any kind, and bad arguments (A20)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentPlan,
    BaseChatModelSetup,
    ChatMessage,
    Prompt,
    ReActAgent,
    ResourceDescriptor,
    ResourceType,
)
from emberflow.errors import InvalidAgent, InvalidArgument
from emberflow.events.types.row import Row
from emberflow.testing import ScriptedChatModel, When, run_agent
from tests.support.chat_agents import Total, with_model

PROMPT = Prompt.from_messages(
    [
        ChatMessage(role="system", content="You calculate."),
        ChatMessage(role="user", content="What is {a} + {b}?"),
    ]
)


@dataclass
class Pair:
    a: int
    b: int


def asked(agent: Agent, value: Any) -> list[str]:
    """What the model is sent for an input."""
    calls = ScriptedChatModel.calls_of("react")
    calls.clear()
    assert run_agent(with_model(agent, [When(reply="3")], name="react"), [value]).outputs == ["3"]
    return [message.content for message in calls[0].messages]


@pytest.mark.parametrize("value", [{"a": 1, "b": 2}, Pair(1, 2), Row(a=1, b=2)])
def test_the_prompt_is_filled_with_the_fields_of_the_input(value: Any) -> None:
    agent = ReActAgent(chat_model="model", prompt=PROMPT)
    assert asked(agent, value) == ["You calculate.", "What is 1 + 2?"]


@pytest.mark.parametrize("value", ["1 + 2", 12, 1.5, True, None])
def test_a_single_value_is_the_input(value: Any) -> None:
    agent = ReActAgent(chat_model="model", prompt=Prompt.from_text("Calculate {input}."))
    assert asked(agent, value) == [f"Calculate {value}."]


@pytest.mark.parametrize(
    ("value", "text"),
    [("1 + 2", "1 + 2"), (12, "12"), ({"a": 1}, '{"a": 1}'), (Pair(1, 2), '{"a": 1, "b": 2}')],
)
def test_without_a_prompt_the_input_is_the_question(value: Any, text: str) -> None:
    assert asked(ReActAgent(chat_model="model"), value) == [text]


def test_a_field_may_be_called_input() -> None:
    agent = ReActAgent(chat_model="model", prompt=Prompt.from_text("{input}"))
    assert asked(agent, {"input": "mine"}) == ["mine"]


def test_a_prompt_may_be_named() -> None:
    agent = ReActAgent(chat_model="model", prompt="question")
    agent.add_resource("question", ResourceType.PROMPT, PROMPT)
    assert asked(agent, {"a": 1, "b": 2})[1] == "What is 1 + 2?"


def test_the_model_may_be_described() -> None:
    agent = ReActAgent(
        chat_model=ResourceDescriptor(clazz=BaseChatModelSetup, connection="service"), output_schema=Total
    )
    agent.add_resource(
        "service",
        ResourceType.CHAT_MODEL_CONNECTION,
        ResourceDescriptor(clazz=ScriptedChatModel, replies=['{"total": 3}']),
    )
    assert run_agent(agent, ["1 + 2"]).outputs == [Total(3)]


def test_its_plan_is_stored_as_json() -> None:
    agent = with_model(ReActAgent(chat_model="model", prompt=PROMPT, output_schema=Total, max_steps=3), ["3"])
    plan = AgentPlan.from_json(AgentPlan.from_agent(agent).to_json())
    assert list(plan.actions) == ["stop_action", "start_action", "chat_model_action", "tool_call_action"]


@pytest.mark.parametrize("wrong", [None, 5, BaseChatModelSetup])
def test_a_model_is_a_descriptor_or_a_name(wrong: Any) -> None:
    with pytest.raises(InvalidAgent, match="chat_model must be a ResourceDescriptor or a name"):
        ReActAgent(chat_model=wrong)


def test_steps_are_at_least_one() -> None:
    with pytest.raises(InvalidAgent, match="max_steps of a ReActAgent must be at least 1, got 0"):
        ReActAgent(chat_model="model", max_steps=0)


def test_an_output_schema_has_a_form_in_json() -> None:
    with pytest.raises(InvalidAgent):
        ReActAgent(chat_model="model", output_schema=object())


def test_an_input_that_lacks_a_field_of_the_prompt_fails() -> None:
    agent = ReActAgent(chat_model="model", prompt=Prompt.from_text("q {nope}"))
    with pytest.raises(InvalidArgument, match=r"the prompt 'q \{nope\}' has no value for \{nope\}") as failed:
        asked(agent, "x")
    assert failed.value.cause == "given: 'input'"
    agent = ReActAgent(chat_model="model", prompt="question")
    agent.add_resource("question", ResourceType.PROMPT, PROMPT)
    with pytest.raises(InvalidArgument, match=r"the prompt 'question' has no value for \{b\}"):
        asked(agent, {"a": 1})
