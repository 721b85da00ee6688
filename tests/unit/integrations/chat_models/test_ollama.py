"""Ollama's own interface through the official client, against a server that answers well and badly."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
from typing import Any

import pytest

from emberflow.agents import ChatChunk, ChatMessage, FunctionTool, Image, OutputSchema
from emberflow.errors import InvalidArgument, ModelFailed
from emberflow.integrations.chat_models.ollama import OllamaChatModelConnection, OllamaChatModelSetup
from emberflow.operators.admission.throttling import throttle_of
from tests.support.model_server import Answer, ModelServer

HELLO = [ChatMessage(content="Hello?")]
COUNTS = {"prompt_eval_count": 11, "eval_count": 7, "done_reason": "stop"}


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def reply(content: str = "Hello.", **message: Any) -> dict[str, Any]:
    return {
        "model": "llama-test",
        "created_at": "2026-01-01T00:00:00Z",
        "message": {"role": "assistant", "content": content, **message},
        "done": True,
        **COUNTS,
    }


def pieces(*texts: str, done: bool = True, cut: bool = False) -> Answer:
    parts = [{**reply(text), "done": False} for text in texts]
    if done:
        parts.append(reply(""))
    return Answer(
        events=[json.dumps(part) + "\n" for part in parts],
        headers={"Content-Type": "application/x-ndjson"},
        cut=cut,
    )


def ask(server: ModelServer, messages: Any = HELLO, tools: Any = None, **kwargs: Any) -> ChatMessage:
    made = OllamaChatModelConnection(server.url)
    return asyncio.run(made.chat(messages, tools, **{"model": "llama-test", **kwargs}))


def test_a_conversation_with_tools_images_and_options() -> None:
    calls = [{"function": {"name": "add", "arguments": {"a": 1, "b": 2}}}] * 2
    with ModelServer([Answer(reply("<think>easy</think>", tool_calls=calls)), Answer(reply())]) as server:
        asked = [ChatMessage(content="What is it?", images=[Image(data=b"GIF89a")])]
        answer = ask(
            server,
            asked,
            [FunctionTool(add)],
            temperature=0.5,
            num_ctx=512,
            keep_alive="1m",
            extract_reasoning=True,
        )
        result = ChatMessage(role="tool", content="3", extra_args={"external_id": "call-0", "name": "add"})
        again = ask(server, [*asked, answer, result])
        first, second = server.requests

    assert first.path == "/api/chat"
    assert first.body["options"] == {"temperature": 0.5, "num_ctx": 512}
    assert first.body["keep_alive"] == "1m"
    assert first.body["messages"][0]["images"] == ["R0lGODlh"]
    assert first.body["tools"][0]["function"]["name"] == "add"
    assert [call["id"] for call in answer.tool_calls] == ["call-0", "call-1"]
    assert answer.tool_calls[0]["function"] == {"name": "add", "arguments": {"a": 1, "b": 2}}
    assert (answer.content, answer.extra_args["reasoning"]) == ("", "easy")
    assert answer.usage is not None
    assert answer.usage.total_tokens == 18
    assert answer.extra_args["model_name"] == "llama-test"
    assert second.body["messages"][1]["tool_calls"][0]["function"]["arguments"] == {"a": 1, "b": 2}
    assert second.body["messages"][2] == {"role": "tool", "content": "3", "tool_name": "add"}
    assert again.content == "Hello."
    with pytest.raises(InvalidArgument, match="does not fetch images"):
        ask(server, [ChatMessage(content="?", images=[Image(url="https://x.test/a.png")])])


def test_tokens_arrive_one_by_one_and_add_up_to_the_answer() -> None:
    with ModelServer([pieces("Hel", "lo")]) as server:
        setup = OllamaChatModelSetup(connection=OllamaChatModelConnection(server.url), model="llama-test")

        async def read() -> list[ChatChunk]:
            return [chunk async for chunk in setup.stream("Hello?")]

        chunks = asyncio.run(read())
    assert [chunk.text for chunk in chunks] == ["Hel", "lo", ""]
    answer = chunks[-1].message
    assert answer is not None
    assert answer.content == "Hello"
    assert answer.usage is not None


@dataclasses.dataclass
class Place:
    city: str
    zip: int | None = None


def search(
    place: Place,
    query: str | None = None,
    weights: dict[str, float] | None = None,
    tags: list[str] | None = None,
) -> str:
    """Searches.

    Args:
        place: where to look
        query: what for
    """
    return ""


def test_the_client_loses_nothing_of_the_parameters_of_a_tool() -> None:
    with ModelServer([Answer(reply())]) as server:
        ask(server, HELLO, [FunctionTool(search), FunctionTool(add)])
        sent = server.requests[0].body["tools"]
    found = sent[0]["function"]["parameters"]["properties"]
    told, _, schema = found["place"].pop("description").partition("\nJSON Schema: ")
    assert told == "where to look"
    assert json.loads(schema)["properties"]["city"] == {"type": "string"}
    assert found["place"] == {"type": "object"}
    assert found["query"] == {"type": ["string", "null"], "description": "what for"}
    weights, tags = (
        json.loads(found[name]["description"].removeprefix("JSON Schema: ")) for name in ("weights", "tags")
    )
    assert weights["anyOf"][0]["additionalProperties"] == {"type": "number"}
    assert tags["anyOf"][0] == {"type": "array", "items": {"type": "string"}}
    assert sent[1]["function"]["parameters"]["properties"]["a"] == {"type": "integer"}


def test_the_schema_restricts_the_answer_unless_tools_may_be_called() -> None:
    with ModelServer([Answer(reply('{"value": 3}'))]) as server:
        for tools in ([], [FunctionTool(add)]):
            made = OllamaChatModelConnection(server.url)
            setup = OllamaChatModelSetup(connection=made, model="llama-test", tools=tools)
            answer = asyncio.run(setup.chat("How many?", output_schema=int))
            assert OutputSchema(int).parse(answer.content) == 3
        first, second = server.requests
    assert first.body["format"]["required"] == ["value"]
    assert "format" not in second.body
    assert "JSON Schema" in second.body["messages"][0]["content"]


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        (Answer({"error": "busy"}, status=503, headers={"Retry-After": "7"}), 503, "status 503.*busy"),
        (Answer({"error": "no such model"}, status=404), 404, "no such model.*name of the model"),
        (Answer(reply(), cut=True), None, "closed the connection"),
        (Answer(raw=b'{"message": '), None, "invalid response"),
        (Answer({"choices": []}), None, "invalid response"),
    ],
    ids=["503", "404", "cut", "malformed JSON", "another format"],
)
def test_failures_say_what_happened(answer: Answer, status: int | None, said: str) -> None:
    with ModelServer([answer]) as server, pytest.raises(ModelFailed) as failed:
        ask(server)
    caught = failed.value
    assert caught.status_code == status
    assert re.search(said, str(caught).replace("\n", " ")), str(caught)
    throttle = throttle_of(caught)
    assert (throttle is not None) == (status == 503)
    assert throttle is None or throttle.retry_after_s == 7


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (pieces("Hel", done=False), "truncated response"),
        (pieces("Hel", done=False, cut=True), "closed the connection"),
        (Answer(events=['{"error": "out of memory"}\n']), "out of memory"),
        (Answer({"error": "busy"}, status=503), "status 503.*busy"),
    ],
    ids=["stops", "cut", "error", "status"],
)
def test_a_stream_that_fails(answer: Answer, said: str) -> None:
    with ModelServer([answer]) as server, pytest.raises(ModelFailed, match=f"(?s){said}"):
        ask(server, on_chunk=lambda chunk: None)


def test_a_server_that_is_not_there_and_settings_that_do_not_exist() -> None:
    with ModelServer([]) as server:
        pass
    with pytest.raises(ModelFailed, match="could not be reached"):
        ask(server)
    with pytest.raises(InvalidArgument, match="no setting 'temprature'; did you mean 'temperature'"):
        ask(server, temprature=1)
