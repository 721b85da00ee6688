"""Anthropic's interface through the official client, against a server that answers well and badly."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import re
from typing import Any

import pytest

from emberflow.agents import ChatChunk, ChatMessage, FunctionTool, Image, OutputSchema
from emberflow.errors import InvalidArgument, ModelFailed
from emberflow.integrations.chat_models.anthropic import (
    AnthropicChatModelConnection,
    AnthropicChatModelSetup,
)
from emberflow.operators.admission.throttling import throttle_of
from tests.support.anthropic_answers import block, error, message, stream, text, tool_use
from tests.support.model_server import Answer, ModelServer

KEY = "sk-ant-very-secret-4242424242"
HELLO = [ChatMessage(content="Hello?")]
MODEL = "claude-sonnet-5"
OLD = "claude-test-3-7"
"""The client warns of real old names."""


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def connection(server: ModelServer, **kwargs: Any) -> AnthropicChatModelConnection:
    return AnthropicChatModelConnection(api_key=KEY, base_url=server.url, **kwargs)


def ask(server: ModelServer, messages: Any = HELLO, tools: Any = None, **kwargs: Any) -> ChatMessage:
    async def asked() -> ChatMessage:
        made = connection(server)
        try:
            return await made.chat(messages, tools, **{"model": MODEL, **kwargs})
        finally:
            made.close()
            await asyncio.sleep(0.01)

    return asyncio.run(asked())


def test_a_conversation_with_tools_and_images_has_instructions_apart_and_roles_in_turn() -> None:
    with ModelServer(
        [message(text("Adding."), tool_use("add", a=1, b=2), stop="tool_use"), message()]
    ) as server:
        asked = [
            ChatMessage(role="system", content="Be brief."),
            ChatMessage(
                content="What is it?", images=[Image(data=b"\xff\xd8\xff"), Image(url="https://x.test/a")]
            ),
        ]
        answer = ask(server, asked, [FunctionTool(add)], temperature=0.5)
        results = [
            ChatMessage(role="tool", content="3", extra_args={"external_id": call["id"]})
            for call in answer.tool_calls * 2
        ]
        ask(server, [*asked, pickle.loads(pickle.dumps(answer)), *results])
        first, second = server.requests

    assert first.path == "/v1/messages"
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.body["system"] == [{"type": "text", "text": "Be brief."}]
    assert (first.body["max_tokens"], first.body["temperature"]) == (4096, 0.5)
    [tool] = first.body["tools"]
    assert (tool["name"], tool["input_schema"]["required"]) == ("add", ["a", "b"])
    [user] = first.body["messages"]
    assert [part["type"] for part in user["content"]] == ["text", "image", "image"]
    assert user["content"][1]["source"]["media_type"] == "image/jpeg"

    assert answer.content == "Adding."
    assert answer.tool_calls[0]["function"] == {"name": "add", "arguments": {"a": 1, "b": 2}}
    assert answer.usage is not None
    assert answer.usage.total_tokens == 18
    assert answer.extra_args["promptTokens"] == 11
    assert [turn["role"] for turn in second.body["messages"]] == ["user", "assistant", "user"]
    assert second.body["messages"][1]["content"][1]["input"] == {"a": 1, "b": 2}
    assert [part["type"] for part in second.body["messages"][2]["content"]] == ["tool_result"] * 2


def test_tokens_arrive_one_by_one_and_add_up_to_the_answer() -> None:
    pieces = stream(
        *block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "hm"},
            {"type": "signature_delta", "signature": "abc"},
        ),
        *block(1, text(""), {"type": "text_delta", "text": "Hel"}, {"type": "text_delta", "text": "lo"}),
        *block(
            2,
            tool_use("add"),
            {"type": "input_json_delta", "partial_json": '{"a"'},
            {"type": "input_json_delta", "partial_json": ": 1}"},
        ),
    )
    with ModelServer([pieces]) as server:
        setup = AnthropicChatModelSetup(connection=connection(server), model=MODEL)

        async def read() -> list[ChatChunk]:
            return [chunk async for chunk in setup.stream("Hello?")]

        chunks = asyncio.run(read())

    assert [(chunk.text, chunk.reasoning) for chunk in chunks] == [
        ("", "hm"),
        ("Hel", ""),
        ("lo", ""),
        ("", ""),
    ]
    answer = chunks[-1].message
    assert answer is not None
    assert (answer.content, answer.extra_args["reasoning"]) == ("Hello", "hm")
    assert answer.tool_calls[0]["function"]["arguments"] == {"a": 1}
    # Its signature must be sent back with it.
    assert answer.extra_args["anthropic_content_blocks"][0]["signature"] == "abc"


def test_a_refusal_is_told_apart_from_an_answer() -> None:
    with ModelServer([message(stop="refusal")]) as server:
        answer = ask(server)
    assert (answer.content, answer.extra_args["refusal"]) == ("", "the model refused to answer")


def test_the_schema_is_sent_natively_to_models_that_have_it_and_in_the_prompt_to_others() -> None:
    with ModelServer([message(text('{"value": 3}'))]) as server:
        for model in (MODEL, "claude-test-4-6", "claude-test-4-1", OLD):
            setup = AnthropicChatModelSetup(connection=connection(server), model=model)
            answer = asyncio.run(setup.chat("How many?", output_schema=int))
            assert OutputSchema(int).parse(answer.content) == 3
        bodies = [request.body for request in server.requests]
    natively = [body.get("output_config", {}).get("format", {}).get("type") for body in bodies]
    assert natively == ["json_schema", "json_schema", None, None]
    assert bodies[0]["output_config"]["format"]["schema"]["additionalProperties"] is False
    assert "JSON Schema" in bodies[2]["system"][0]["text"]


def test_structured_output_came_with_claude_4_5() -> None:
    made = AnthropicChatModelConnection(api_key=KEY)
    native = ["claude-sonnet-4-5-20250929", "claude-haiku-4-5", "claude-opus-4-8", "claude-opus-5"]
    others = ["claude-opus-4-1-20250805", "claude-opus-4-20250514", "claude-3-5-sonnet-20241022", "gpt-5", ""]
    assert all(map(made.supports_native_structured_output, native))
    assert not any(map(made.supports_native_structured_output, others))


def test_an_older_model_may_be_made_to_start_with_json() -> None:
    with ModelServer([message(text('"a": 1}'))]) as server:
        answer = ask(server, model=OLD, json_prefill=True)
    assert answer.content == '{"a": 1}'


FAILURES: dict[str, tuple[Answer, int | None, str]] = {
    "429": (error(429, "rate_limit_error", "Slow down.", retry_after="7"), 429, "status 429.*Slow down"),
    "529": (error(529, "overloaded_error", "Overloaded."), 529, "status 529.*Overloaded"),
    "500": (error(500, "api_error", "Oops."), 500, "status 500.*Oops.*retry"),
    "401": (error(401, "authentication_error", f"invalid {KEY}"), 401, "status 401.*check the key"),
    "cut": (Answer({"type": "message"}, cut=True), None, "closed the connection"),
    "malformed JSON": (Answer(raw=b'{"type": '), None, "invalid response"),
    "another format": (Answer({"choices": []}), None, "invalid response"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures_say_what_happened_and_show_no_secret(name: str, caplog: pytest.LogCaptureFixture) -> None:
    answer, status, said = FAILURES[name]
    caplog.set_level(logging.DEBUG)
    with ModelServer([answer]) as server, pytest.raises(ModelFailed) as failed:
        ask(server)
    caught = failed.value
    assert len(server.requests) == 1
    assert caught.status_code == status
    assert re.search(said, str(caught).replace("\n", " ")), str(caught)
    assert KEY not in str(caught) + repr(vars(caught)) + caplog.text
    assert caught.__context__ is None
    assert (throttle_of(caught) is not None) == (status in (429, 529))
    if name == "429":
        assert caught.retry_after == 7


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        (
            stream(*block(0, text(""), {"type": "text_delta", "text": "Hel"}), ends=False),
            "truncated response",
        ),
        (stream(*block(0, text("")), ends=False, cut=True), "closed the connection"),
        (
            Answer(
                events=[
                    f"event: error\ndata: {json.dumps(error(529, 'overloaded_error', 'Overloaded.').body)}\n\n"
                ]
            ),
            "Overloaded",
        ),
    ],
    ids=["stops", "cut", "error event"],
)
def test_a_stream_that_fails(pieces: Answer, said: str) -> None:
    with ModelServer([pieces]) as server, pytest.raises(ModelFailed, match=f"(?s){said}"):
        ask(server, on_chunk=lambda chunk: None)


def test_unknown_settings_are_refused_with_a_suggestion() -> None:
    made = AnthropicChatModelConnection(api_key=KEY, base_url="http://127.0.0.1:1")
    with pytest.raises(InvalidArgument, match="no setting 'max_token'; did you mean 'max_tokens'"):
        asyncio.run(made.chat(HELLO, model=MODEL, max_token=3))
    with pytest.raises(InvalidArgument, match="must declare all properties"):
        asyncio.run(made.chat(HELLO, model=MODEL, output_schema=OutputSchema(dict[str, int])))
