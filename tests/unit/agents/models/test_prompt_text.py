"""Prompts: placeholders are filled, all other braces are kept."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberflow.agents.models.chat_message import ChatMessage, MessageRole
from emberflow.agents.models.prompt_text import Prompt
from emberflow.compat.flink_agents.prompt import Prompt as FlinkPrompt
from emberflow.errors import InvalidAgent, InvalidArgument
from emberflow.plan.agents.resources import ResourceType
from emberflow.plan.json_values import from_json_value, to_json_value

JSON = 'Answer with {"score": 5, "why": {"short": "{reason}"}} and nothing else {}'


def test_a_text() -> None:
    prompt = Prompt.from_text("Rate {product} for {who}.")
    assert prompt.format_string(product="tea", who=7) == "Rate tea for 7."
    assert prompt.format_string(product="tea") == "Rate tea for {who}."
    assert prompt.format_messages(product="tea", who="me") == [
        ChatMessage(role=MessageRole.SYSTEM, content="Rate tea for me.")
    ]
    assert prompt.format_messages(role="user")[0].role is MessageRole.USER
    assert prompt.resource_type() is ResourceType.PROMPT


def test_messages_keep_their_roles_and_everything_else() -> None:
    call: dict[str, Any] = {"id": "1", "type": "function", "function": {"name": "add", "arguments": {}}}
    prompt = Prompt.from_messages(
        [
            ChatMessage(role=MessageRole.SYSTEM, content="Speak {language}."),
            ChatMessage(role=MessageRole.ASSISTANT, tool_calls=[call]),
        ]
    )
    filled = prompt.format_messages(role=MessageRole.USER, language="German")
    assert [message.role for message in filled] == [MessageRole.SYSTEM, MessageRole.ASSISTANT]
    assert filled[0].content == "Speak German."
    assert filled[1].tool_calls == [call]
    assert prompt.format_string(language="German") == "system: Speak German.\nassistant: "


def test_json_in_a_prompt_survives() -> None:
    assert Prompt.from_text(JSON).format_string() == JSON
    assert '"short": "late"' in Prompt.from_text(JSON).format_string(reason="late")


def test_braces_in_a_value_are_not_placeholders() -> None:
    assert Prompt.from_text("{a} {b}").format_string(a="{b}", b="{a}") == "{b} {a}"


def test_any_name_is_a_placeholder() -> None:
    prompt = Prompt.from_text("{self} {role}")
    assert prompt.format_string(self=1, role=2) == "1 2"
    assert prompt.fill_messages({"self": 1, "role": 2})[0].content == "1 2"


def test_it_is_pickled_without_the_context_of_a_process() -> None:
    prompt = Prompt.from_text("{a}")
    context: Any = object
    prompt.resource_context = context()
    assert pickle.loads(pickle.dumps(prompt)) == prompt
    assert not hasattr(pickle.loads(pickle.dumps(prompt)), "resource_context")
    assert from_json_value(to_json_value(prompt)) == prompt


def test_values_that_are_not_prompts() -> None:
    wrong: Any = ["text"]
    with pytest.raises(InvalidAgent, match="consist of ChatMessages, got 'text'"):
        Prompt.from_messages(wrong)


@given(st.text(), st.dictionaries(st.text(), st.text(), max_size=4))
def test_any_text_can_be_formatted(text: str, values: dict[str, str]) -> None:
    Prompt.from_text(text).fill_messages(values)
    Prompt.from_text(text).format_string(**values)


@given(st.text(alphabet='{}ab "'), st.dictionaries(st.sampled_from(["a", "b", "ab"]), st.text(), max_size=3))
def test_only_named_placeholders_change(text: str, values: dict[str, str]) -> None:
    filled = Prompt.from_text(text).format_string(**values)
    if not any(f"{{{name}}}" in text for name in values):
        assert filled == text
    assert Prompt.from_text(text).format_string() == text


def to_send(text: str, **values: Any) -> str:
    return Prompt.from_text(text).messages_to_send(values)[0].content


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("Rate {product}.", "Rate tea."),
        ('As {"score": 5}, {} or { x }, for {a.b}', 'As {"score": 5}, {} or { x }, for {a.b}'),
        ("{{name}} of {product}", "{name} of tea"),
        ("{{product}}", "{product}"),
        ("{{{product}}}", "{{product}}"),
        ('{"why": {"short": "{{reason}}"}}', '{"why": {"short": "{reason}"}}'),
        ("{product} {näme}", "tea a"),
    ],
)
def test_what_is_sent_to_a_model(text: str, sent: str) -> None:
    assert to_send(text, product="tea", näme="a") == sent


def test_a_placeholder_without_a_value_is_not_sent() -> None:
    with pytest.raises(InvalidArgument, match=r"'Rate \{product\}.' has no value for \{product\}") as failed:
        to_send("Rate {product}.")
    assert failed.value.cause == "no values were given"
    many = Prompt.from_messages([ChatMessage(content="{a}"), ChatMessage(content="{b}")])
    with pytest.raises(InvalidArgument, match=r"the prompt 'p' has no value for \{b\}"):
        many.messages_to_send({"a": "{b}"}, named="p")


def test_prompts_of_flink_agents_programs_are_sent_as_they_are(caplog: pytest.LogCaptureFixture) -> None:
    prompt = FlinkPrompt.from_text("about {topic} in {{this}}")
    for _ in range(2):
        assert prompt.messages_to_send({"this": 1})[0].content == "about {topic} in {1}"
    assert len(caplog.records) == 1
    assert "no value for {topic}; it is sent as it is" in caplog.text
    assert isinstance(pickle.loads(pickle.dumps(prompt)), FlinkPrompt)
    assert from_json_value(to_json_value(prompt)) == prompt
    assert isinstance(prompt, Prompt)
