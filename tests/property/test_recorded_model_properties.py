"""Cassettes: no bytes cause harm, and whatever is recorded is found again."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from emberflow.agents.models.chat_message import ChatMessage, MessageRole
from emberflow.errors import CorruptData
from emberflow.testing.cassette import HEADER, entry_line, read_cassette, request_text
from emberflow.testing.recorded_model import RecordedChatModel
from emberflow.testing.scripted_model import ScriptedChatModel

json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=8), json_values, max_size=3)
messages = st.builds(
    ChatMessage,
    role=st.sampled_from(MessageRole),
    content=st.text(st.characters(codec=None)),
    tool_calls=st.lists(objects, max_size=2),
    extra_args=objects,
)


def problem(data: bytes, otherwise: str = "c.jsonl") -> str:
    """The error for a cassette; any error other than ours fails the test."""
    try:
        read_cassette(data, "c.jsonl")
    except CorruptData as error:
        return str(error)
    return otherwise


@given(st.binary(max_size=300))
def test_any_bytes_load_or_raise_our_error(data: bytes) -> None:
    for start in (b"", HEADER.encode() + b"\n"):
        assert "c.jsonl" in problem(start + data)


@given(json_values, json_values)
@example({}, {"role": [], "content": {}})
@example({"x": 1}, {"role": "user", "tool_calls": {"a": 1}})
def test_any_entry_loads_or_raises_our_error(request_value: Any, reply: Any) -> None:
    for entry in ({"request": request_value, "reply": reply}, request_value):
        assert "line 2" in problem(f"{HEADER}\n{json.dumps(entry)}\n".encode(), "line 2")


@pytest.mark.parametrize("depth", [100, 900, 5_000, 200_000])
def test_deep_nesting(depth: int) -> None:
    nested = '{"a":' * depth + "1" + "}" * depth
    for entry in (nested, f'{{"request": {nested}, "reply": {{"role": "user", "extra_args": {nested}}}}}'):
        assert "line 2" in problem(f"{HEADER}\n{entry}\n".encode(), "line 2")


@given(st.lists(messages, max_size=3), st.lists(st.text(), max_size=2), objects, messages)
def test_recorded_entries_are_found_again(
    asked: list[ChatMessage], tools: list[str], given_settings: dict[str, Any], reply: ChatMessage
) -> None:
    request = request_text(asked, tools, given_settings)
    line = entry_line(request, reply)
    assert "\n" not in line
    cassette = read_cassette(f"{HEADER}\n{line}\n".encode("utf-8", "surrogatepass"), "c.jsonl")
    found = cassette.take(request)
    assert found is not None
    assert found.role is reply.role
    assert list(cassette.replies) == [request]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.text("xyz", max_size=2)), min_size=1, max_size=8))
def test_replies_are_returned_in_recorded_order(conversation: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.jsonl"
        live = RecordedChatModel(
            path, mode="record", connection=ScriptedChatModel([answer for _, answer in conversation])
        )
        replayed = RecordedChatModel(path)

        async def run(model: RecordedChatModel) -> list[str]:
            return [(await model.chat([ChatMessage(content=text)])).content for text, _ in conversation]

        assert asyncio.run(run(live)) == asyncio.run(run(replayed)) == [answer for _, answer in conversation]
