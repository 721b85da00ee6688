"""Answers that are not in OpenAI's format, or are made to take long: each is read, or refused as `Unreadable`, at once."""

from __future__ import annotations

import asyncio
import traceback
from typing import Any

import pytest

from emberflow.agents import BaseChatModelSetup, OutputSchema
from emberflow.agents.models.chat_connection import extract_reasoning
from emberflow.errors import OutputMismatch, ResourceFailed
from emberflow.integrations.chat_models.openai import OpenAICompatibleChatModelConnection
from emberflow.integrations.chat_models.openai_format import Pieces, Unreadable, read_answer


def calls_of(*calls: dict[str, Any]) -> list[dict[str, Any]]:
    answer = {"choices": [{"message": {"tool_calls": list(calls)}}]}
    return read_answer(answer, "m", reasoning=True).tool_calls


@pytest.mark.parametrize("message", [{"tool_calls": 5}, {"tool_calls": {"a": 1}}, {"tool_calls": [None]}])
def test_messages_of_another_form(message: Any) -> None:
    with pytest.raises(Unreadable):
        read_answer({"choices": [{"message": message}]}, "m", reasoning=True)


@pytest.mark.parametrize(
    "piece",
    [
        5,
        {"choices": 5},
        {"choices": [{"delta": 5}]},
        {"choices": [{"delta": {"tool_calls": 5}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": "x"}]}}]},
    ],
)
def test_pieces_of_another_form(piece: Any) -> None:
    with pytest.raises(Unreadable):
        Pieces(lambda _: None).add(piece)


def test_calls_have_different_ids() -> None:
    """Results are matched by ids, which some services leave out or repeat."""
    function = {"name": "f", "arguments": "{}"}
    made = calls_of(
        {"function": function},
        {"id": "call-0", "function": function},
        {"id": "a", "function": function},
        {"id": "a", "function": function},
    )
    assert [call["id"] for call in made] == ["call-0", "call-0-1", "a", "a-3"]


@pytest.mark.parametrize("deep", ["[" * 100_000, '{"a":' * 100_000])
def test_deep_arguments_stay_text_which_the_tool_rejects(deep: str) -> None:
    assert calls_of({"function": {"name": "f", "arguments": deep}})[0]["function"]["arguments"] == deep


@pytest.mark.parametrize(
    "reply", ["[" * 100_000, f'{{"a": {"[" * 90_000}{"]" * 90_000}}}', "```\n" + "[" * 10**5]
)
@pytest.mark.parametrize("wanted", [int, dict, list[int], {"type": "object"}])
def test_deep_replies_do_not_fit(reply: str, wanted: Any) -> None:
    with pytest.raises(OutputMismatch):
        OutputSchema(wanted).parse(reply)


@pytest.mark.parametrize("mark", ["<think>", "<Analysis>", "```think\n", "Reasoning:\n", "```\n" + " " * 20])
def test_marks_that_are_opened_again_and_again(mark: str) -> None:
    """These took minutes, in which the event loop stood still."""
    text = mark * 50_000
    extract_reasoning(text)
    with pytest.raises(OutputMismatch):
        OutputSchema(int).parse(text + "```\n" + " " * 200_000)


@pytest.mark.parametrize(
    ("content", "answer", "reasoning"),
    [
        ("<think>a</think>b<THINK> c </THINK>d", "bd", "a\n\nc"),
        ("<think>a</think>b<think>c", "b<think>c", "a"),
        ("```thought \na\n```\nb\n```py\nc\n```", "b\n```py\nc\n```", "a"),
        ("```think\n```\nb", "b", None),
        ("Reasoning: a\nb\n\nc", "c", "a\nb"),
        ("Reasoning: a", "", "a"),
        ("a </think> b", "a </think> b", None),
    ],
)
def test_reasoning_is_separated(content: str, answer: str, reasoning: str | None) -> None:
    assert extract_reasoning(content) == (answer, reasoning)


@pytest.mark.parametrize("key", ["sk-hun\nter2", "sk-hunter2\x00", "sk-hunter2\u20ac"])
def test_keys_that_cannot_be_sent_are_not_shown(key: str) -> None:
    connection = OpenAICompatibleChatModelConnection(base_url="http://127.0.0.1:9/v1", api_key=key)
    with pytest.raises(ResourceFailed, match="cannot be sent") as raised:
        asyncio.run(BaseChatModelSetup(connection=connection, model="m").chat("hi"))
    assert "hunter2" not in "".join(traceback.format_exception_only(raised.value))


def test_a_line_break_after_a_key_is_left_out() -> None:
    connection = OpenAICompatibleChatModelConnection(base_url="http://127.0.0.1:9/v1", api_key="sk-1\n")
    assert connection._key == "sk-1"
