"""Failures whose first symptom says nothing: each is reported as what it is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from emberflow.agents import ChatMessage, MessageRole, Tool
from emberflow.errors import EmberflowError, ModelFailed, NotSerializable
from emberflow.integrations.chat_models.anthropic import AnthropicChatModelConnection
from emberflow.integrations.chat_models.llama_cpp import LlamaCppChatModelConnection
from emberflow.integrations.chat_models.ollama import OllamaChatModelConnection
from emberflow.integrations.chat_models.openai import OpenAICompatibleChatModelConnection
from emberflow.integrations.chat_models.openai_format import Pieces, Reported
from emberflow.operators.agents.guards.error_kinds import is_permanent
from tests.support.model_server import Answer, ModelServer
from tests.support.small_model import small_model

KEY = "sk-of-the-connection-314159"
VENDORS = ["openai", "anthropic", "ollama"]


def connection_to(vendor: str, url: str) -> Any:
    if vendor == "openai":
        return OpenAICompatibleChatModelConnection(base_url=f"{url}/v1", api_key=KEY)
    if vendor == "anthropic":
        return AnthropicChatModelConnection(base_url=url, api_key=KEY)
    return OllamaChatModelConnection(url)


async def failure(connection: Any, messages: list[ChatMessage], **given: Any) -> EmberflowError:
    try:
        await connection.chat(messages, model="m", **given)
    except EmberflowError as error:
        return error
    finally:
        connection.close()
    raise AssertionError("it did not fail")


def failure_with(vendor: str, answer: Answer) -> EmberflowError:
    with ModelServer([answer]) as server:
        return asyncio.run(failure(connection_to(vendor, server.url), [ChatMessage(content="hi")]))


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ("<html>please log in</html>", "it is not JSON: <html>please log in</html>"),
        ("{broken", "it is not JSON: {broken"),
        ("", "it is empty"),
    ],
)
@pytest.mark.parametrize("kind", ["text/html", "application/json"])
def test_a_response_that_is_not_json_is_shown(vendor: str, body: str, cause: str, kind: str) -> None:
    found = failure_with(vendor, Answer(raw=body.encode(), headers={"Content-Type": kind}))
    assert "returned an invalid response" in found.message
    assert found.cause == cause


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
def test_a_key_in_such_a_response_is_masked_before_it_is_cut(vendor: str) -> None:
    found = failure_with(vendor, Answer(raw=(("x" * 575) + KEY + "y" * 1_000).encode()))
    assert found.cause.endswith("xxx***yyyyyy")
    assert len(found.cause) == 600


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("error", "said", "status", "permanent"),
    [
        ({"message": "model overloaded", "code": 503}, "model overloaded", 503, False),
        ({"message": f"wrong key {KEY}", "code": "401"}, "wrong key ***", 401, True),
        ({"message": "busy", "type": "overloaded_error"}, "busy", 529, False),
        ({"message": "no such model", "type": "not_found_error"}, "no such model", 404, True),
        ({"message": "hm", "code": "something_else"}, "hm", None, False),
        ("plain words", "plain words", None, False),
    ],
)
def test_an_error_with_the_status_of_a_success(
    vendor: str, error: Any, said: str, status: int | None, permanent: bool
) -> None:
    found = failure_with(vendor, Answer({"error": error}))
    assert isinstance(found, ModelFailed)
    assert "reported an error" in found.message
    assert (found.cause, found.status_code, is_permanent(found)) == (said, status, permanent)


def test_an_error_in_the_middle_of_a_stream() -> None:
    with pytest.raises(Reported, match="overloaded"):
        Pieces(lambda _: None).add({"error": {"message": "overloaded"}})


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_message_that_cannot_be_encoded_is_named(vendor: str) -> None:
    messages = [
        ChatMessage(role=MessageRole.SYSTEM, content="Be brief."),
        ChatMessage(content="x" * 100 + "half \ud83d of it" + "y" * 100),
    ]
    with ModelServer([Answer({})]) as server:
        found = asyncio.run(failure(connection_to(vendor, server.url), messages))
        assert server.requests == []
    assert isinstance(found, NotSerializable)
    assert "was not sent: it cannot be encoded as UTF-8" in found.message
    assert "message 2 of 2 (user) contains an unpaired surrogate, '\\ud83d' at position 105" in found.cause
    assert is_permanent(found)


@pytest.mark.parametrize("vendor", VENDORS)
def test_calls_and_tools_that_cannot_be_encoded(vendor: str) -> None:
    def look_up(order: int) -> str:
        return "found"

    look_up.__doc__ = "Finds \udc00 orders."
    call = {"id": "1", "function": {"name": "look_up", "arguments": {"note": "\ud83d"}}}
    messages = [ChatMessage(content="hi"), ChatMessage(role=MessageRole.ASSISTANT, tool_calls=[call])]
    connection = connection_to(vendor, "http://127.0.0.1:9")
    found = asyncio.run(failure(connection, messages))
    assert "message 2 of 2 (assistant) contains" in found.cause
    found = asyncio.run(failure(connection, messages[:1], tools=[Tool.from_callable(look_up)]))
    assert "the request contains an unpaired surrogate" in found.cause


def test_a_local_model_that_cannot_be_sent_a_message() -> None:
    connection = LlamaCppChatModelConnection(small_model(), context_tokens=512)
    found = asyncio.run(failure(connection, [ChatMessage(content="half \ud83d")]))
    assert "message 1 of 1 (user) contains" in found.cause


@pytest.mark.parametrize("vendor", VENDORS)
def test_prompts_and_keys_do_not_follow_redirects(vendor: str) -> None:
    with ModelServer([Answer({})]) as elsewhere:
        redirect = Answer({}, status=307, headers={"Location": f"{elsewhere.url}/moved?token=t0ken"})
        found = failure_with(vendor, redirect)
        assert elsewhere.requests == []
        if vendor != "ollama":
            assert found.cause == f"it redirects to {elsewhere.url}/moved"
    assert "responded with the status 307" in found.message
    assert "correct the address of the service" in (found.way_out or "")
    assert is_permanent(found)
