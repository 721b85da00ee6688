"""Messages: plain data that survives JSON and pickle round trips."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from emberflow.agents.models.chat_message import ChatMessage, MessageRole
from emberflow.errors import InvalidArgument

CALL = {"id": "1", "type": "function", "function": {"name": "add", "arguments": {"a": 1}}}

MESSAGES = [
    ChatMessage(),
    ChatMessage(content="hello"),
    ChatMessage(role=MessageRole.ASSISTANT, tool_calls=[CALL]),
    ChatMessage(role=MessageRole.TOOL, content="3", extra_args={"external_id": "1"}),
]


@pytest.mark.parametrize("message", MESSAGES, ids=str)
def test_messages_survive_a_round_trip(message: ChatMessage) -> None:
    assert ChatMessage.from_dict(json.loads(json.dumps(message.to_dict()))) == message
    assert pickle.loads(pickle.dumps(message)) == message


def test_a_role_by_its_name() -> None:
    made = ChatMessage(role="system", content="be brief")
    assert made.role is MessageRole.SYSTEM
    assert str(made) == "system: be brief"
    assert made != ChatMessage(content="be brief")


def test_empty_fields_are_omitted() -> None:
    assert ChatMessage(content="x").to_dict() == {"role": "user", "content": "x"}


def test_null_is_empty() -> None:
    data = {"role": "assistant", "content": None, "tool_calls": None}
    assert ChatMessage.from_dict(data) == ChatMessage(role=MessageRole.ASSISTANT)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (["user"], "object"),
        ({"content": "x"}, "needs a 'role'"),
        ({"role": "robot"}, "'robot' is not the role"),
        ({"role": None}, "None is not the role"),
        ({"role": "user", "text": "x"}, "has no field 'text'"),
        ({"role": "user", "content": ["x"]}, "content of a message must be a string"),
        ({"role": "user", "tool_calls": ["x"]}, "list of objects"),
        ({"role": "user", "extra_args": []}, "extra_args an object"),
    ],
)
def test_values_that_are_not_messages(data: Any, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        ChatMessage.from_dict(data)
