"""OpenAI's interface through the official client, against a server that answers well, badly and not at all."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import re
import ssl
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import ChatChunk, ChatMessage, FunctionTool, Image, OutputSchema, Secret
from emberflow.agents.models.chat_model import BaseChatModelSetup
from emberflow.errors import InvalidArgument, ModelFailed, ResourceFailed
from emberflow.integrations.chat_models.azure_openai import (
    AzureOpenAIChatModelConnection,
    AzureOpenAIChatModelSetup,
)
from emberflow.integrations.chat_models.openai import (
    OpenAIChatModelConnection,
    OpenAICompatibleChatModelConnection,
)
from emberflow.integrations.chat_models.vllm import VLLMChatModelConnection, VLLMChatModelSetup
from emberflow.operators.admission.throttling import throttle_of
from tests.support.certificates import self_signed
from tests.support.model_server import Answer, ModelServer
from tests.support.openai_answers import USAGE, call, completion, error, stream

KEY = "sk-very-secret-4242424242"
HELLO = [ChatMessage(content="Hello?")]
PNG = b"\x89PNG\r\n\x1a\n not a real one"


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def connection(server: ModelServer, **kwargs: Any) -> OpenAIChatModelConnection:
    return OpenAIChatModelConnection(**{"api_key": KEY, "base_url": f"{server.url}/v1", **kwargs})


def ask(
    made: OpenAIChatModelConnection, messages: Any = HELLO, tools: Any = None, **kwargs: Any
) -> ChatMessage:
    async def asked() -> ChatMessage:
        try:
            return await made.chat(messages, tools, **{"model": "gpt-test", **kwargs})
        finally:
            made.close()
            await asyncio.sleep(0.01)

    return asyncio.run(asked())


def test_a_request_has_messages_tools_images_and_settings_in_the_format() -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": {"a": 1, "b": 2}}}]
    messages = [
        ChatMessage(role="system", content="Be brief."),
        ChatMessage(content="What is it?", images=[Image(data=PNG), Image(url="https://x.test/a.png")]),
        ChatMessage(role="assistant", tool_calls=calls, extra_args={"usage": USAGE}),
        ChatMessage(role="tool", content="3", extra_args={"external_id": "c1"}),
    ]
    with ModelServer([completion()]) as server:
        ask(connection(server), messages, [FunctionTool(add)], temperature=0.5, strict=True)
        [request] = server.requests

    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert (request.body["model"], request.body["temperature"]) == ("gpt-test", 0.5)
    system, user, assistant, tool = request.body["messages"]
    assert system == {"role": "system", "content": "Be brief."}
    assert [part["type"] for part in user["content"]] == ["text", "image_url", "image_url"]
    assert user["content"][1]["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
    assert assistant["content"] is None
    assert json.loads(assistant["tool_calls"][0]["function"]["arguments"]) == {"a": 1, "b": 2}
    assert tool == {"role": "tool", "content": "3", "tool_call_id": "c1"}
    [described] = request.body["tools"]
    assert described["function"]["description"] == "Adds two numbers."
    assert described["function"]["strict"]
    assert described["function"]["parameters"]["additionalProperties"] is False


def test_an_answer_has_content_usage_tool_calls_and_reasoning() -> None:
    said = completion(
        "<think>easy</think>Two calls.",
        tool_calls=[call("add", '{"a": 1, "b": 2}'), call("add", "{broken", "call_2")],
        finish="tool_calls",
    )
    with ModelServer([said]) as server:
        answer = ask(connection(server), extract_reasoning=True)

    assert (answer.role.value, answer.content) == ("assistant", "Two calls.")
    assert [item["id"] for item in answer.tool_calls] == ["call_1", "call_2"]
    assert answer.tool_calls[0]["function"] == {"name": "add", "arguments": {"a": 1, "b": 2}}
    # Rejected by the tool, so that the model learns what was wrong.
    assert answer.tool_calls[1]["function"]["arguments"] == "{broken"
    assert answer.usage is not None
    assert answer.usage.total_tokens == 18
    extra = {"model_name": "gpt-test", "promptTokens": 11, "completionTokens": 7, "reasoning": "easy"}
    assert extra.items() <= answer.extra_args.items()
    assert answer.extra_args["finish_reason"] == "tool_calls"
    assert pickle.loads(pickle.dumps(answer)) == answer


def test_a_refusal_is_told_apart_from_an_answer() -> None:
    with ModelServer([completion(None, refusal="I cannot help with that.")]) as server:
        answer = ask(connection(server))
    assert (answer.content, answer.extra_args["refusal"]) == ("", "I cannot help with that.")


def test_tokens_arrive_one_by_one_and_add_up_to_the_answer() -> None:
    pieces = stream(
        {"reasoning_content": "hm"},
        {"content": "Hel"},
        {"content": "lo"},
        {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "add", "arguments": '{"a"'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]},
    )
    with ModelServer([pieces]) as server:
        setup = BaseChatModelSetup(connection=connection(server), model="gpt-test")

        async def read() -> list[ChatChunk]:
            chunks = [chunk async for chunk in setup.stream("Hello?")]
            setup.connection.close()  # pyright: ignore[reportAttributeAccessIssue]
            await asyncio.sleep(0.01)
            return chunks

        chunks = asyncio.run(read())
        assert server.requests[0].body["stream_options"] == {"include_usage": True}

    assert [chunk.text for chunk in chunks] == ["", "Hel", "lo", ""]
    assert chunks[0].reasoning == "hm"
    answer = chunks[-1].message
    assert answer is not None
    assert answer.content == "Hello"
    assert answer.tool_calls[0]["function"] == {"name": "add", "arguments": {"a": 1}}
    assert answer.usage is not None
    assert answer.usage.total_tokens == 18


FAILURES: dict[str, tuple[Answer, int | None, str]] = {
    "429": (error(429, "Slow down.", retry_after="7"), 429, "status 429.*Slow down"),
    "500": (error(500, "Oops."), 500, "status 500.*Oops.*retry"),
    "503 without JSON": (Answer(status=503, raw=b"<html>away</html>"), 503, "status 503"),
    "401": (error(401, f"Incorrect API key: {KEY}."), 401, "status 401.*Incorrect.*check the key"),
    "404": (error(404, "No such model."), 404, "No such model.*name of the model"),
    "cut": (Answer({"choices": []}, cut=True), None, "closed the connection"),
    "malformed JSON": (Answer(raw=b'{"choices": ['), None, "invalid response"),
    "not JSON": (Answer(raw=b"<p>hi</p>", headers={"Content-Type": "text/html"}), None, "invalid response"),
    "another format": (Answer({"text": "hi"}), None, "invalid response.*no 'choices'"),
    "no message": (Answer({"choices": [{}]}), None, "invalid response.*message is missing"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures_say_what_happened_and_show_no_secret(name: str, caplog: pytest.LogCaptureFixture) -> None:
    answer, status, said = FAILURES[name]
    caplog.set_level(logging.DEBUG)
    with ModelServer([answer]) as server, pytest.raises(ModelFailed) as failed:
        ask(connection(server))
    caught = failed.value

    assert len(server.requests) == 1, "the client repeats nothing itself"
    assert caught.status_code == status
    shown = str(caught).replace("\n", " ")
    assert re.search(said, shown), shown
    assert "gpt-test" in shown
    assert KEY not in shown + repr(caught) + caplog.text + repr(vars(caught))
    assert caught.__cause__ is None
    assert caught.__context__ is None
    throttle = throttle_of(caught)
    assert (throttle is not None) == (status in (429, 503))
    if name == "429":
        assert throttle is not None
        assert throttle.retry_after_s == 7
    again = pickle.loads(pickle.dumps(caught))
    assert (str(again), again.status_code, again.retry_after) == (str(caught), status, caught.retry_after)


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        (stream({"content": "Hel"}, finish=None, done=False), "truncated response"),
        (stream({"content": "Hel"}, finish=None, done=False, cut=True), "closed the connection"),
        (
            Answer(events=['data: {"error": {"message": "Out of memory."}}\n\n']),
            "reported an error.*Out of memory",
        ),
        (Answer(events=["data: {broken\n\n"]), "invalid response"),
        (error(500, "Oops."), "status 500"),
    ],
    ids=["stops", "cut", "error event", "malformed", "status"],
)
def test_a_stream_that_fails(pieces: Answer, said: str) -> None:
    seen: list[str] = []
    with ModelServer([pieces]) as server, pytest.raises(ModelFailed, match=f"(?s){said}"):
        ask(connection(server), on_chunk=lambda chunk: seen.append(chunk.text))


def test_a_service_that_is_not_there_or_too_slow() -> None:
    with ModelServer([completion()]) as server:
        pass
    with pytest.raises(ModelFailed, match="could not be reached"):
        ask(connection(server))
    slow = Answer(delay_s=30)
    for timeouts, settings in (({"timeout": 0.2}, {}), ({}, {"timeout": 0.2})):
        with ModelServer([slow]) as server, pytest.raises(ModelFailed, match="not answer in time") as failed:
            ask(connection(server, **timeouts), **settings)
        assert failed.value.cause == "the request timed out after 200 ms"


def test_a_certificate_that_is_not_trusted_until_it_is_named(tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with ModelServer([completion()], tls=tls) as server:
        with pytest.raises(ModelFailed, match=r"(?s)over TLS.*ca_file") as failed:
            ask(connection(server))
        assert KEY not in str(failed.value)
        assert ask(connection(server, ca_file=str(certificate))).content == "Hello."


def test_the_schema_is_sent_natively_to_models_that_have_it_and_in_the_prompt_to_others() -> None:
    said = completion('{"value": 3}')
    with ModelServer([said]) as server:
        for model, strategy in [
            ("gpt-5", "auto"),
            ("gpt-3", "AUTO"),
            ("gpt-5", "prompt"),
            ("gpt-3", "Native"),
        ]:
            made = connection(server)
            setup = BaseChatModelSetup(connection=made, model=model, structured_output_strategy=strategy)
            answer = asyncio.run(setup.chat("How many?", output_schema=int))
            assert OutputSchema(int).parse(answer.content) == 3
        bodies = [request.body for request in server.requests]

    natively = [body.get("response_format", {}).get("type") for body in bodies]
    assert natively == ["json_schema", None, None, "json_schema"]
    schema = bodies[0]["response_format"]["json_schema"]
    assert schema["strict"]
    assert schema["schema"]["additionalProperties"] is False
    assert [len(body["messages"]) for body in bodies] == [1, 2, 2, 1]
    assert "JSON Schema" in bodies[1]["messages"][0]["content"]


def test_a_key_comes_from_the_environment_of_the_worker_but_never_goes_to_another_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ResourceFailed, match=r"(?s)no API key.*OPENAI_API_KEY"):
        OpenAIChatModelConnection().open()
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OTHER_KEY", "other-key")
    with ModelServer([completion()]) as server:
        address = f"{server.url}/v1"
        ask(OpenAIChatModelConnection(base_url=address))
        ask(OpenAICompatibleChatModelConnection(base_url=address))
        ask(VLLMChatModelConnection(base_url=address))
        ask(OpenAICompatibleChatModelConnection(base_url=address, api_key=Secret("OTHER_KEY")))
        sent = [request.headers["authorization"].removeprefix("Bearer ") for request in server.requests]
    assert sent == [KEY, "EMPTY", "EMPTY", "other-key"]
    with pytest.raises(InvalidArgument, match="no address is configured"):
        OpenAICompatibleChatModelConnection()


def test_a_connection_shows_and_pickles_no_resolved_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    made = OpenAIChatModelConnection(
        api_key=Secret("OPENAI_API_KEY"), base_url="https://user:pass@x.test/v1?k=1"
    )
    made.open()
    assert repr(made) == "OpenAIChatModelConnection(https://x.test/v1)"
    assert KEY.encode() not in pickle.dumps(made)


def test_azure_names_deployments_in_the_address() -> None:
    with ModelServer([completion()]) as server:
        made = AzureOpenAIChatModelConnection(azure_endpoint=server.url, api_key=KEY)
        setup = AzureOpenAIChatModelSetup(
            connection=made, model="our-deployment", model_of_azure_deployment="gpt-5"
        )
        answer = asyncio.run(setup.chat("How many?", output_schema=int))
        [request] = server.requests
    assert answer.extra_args["model_name"] == "gpt-5"
    assert request.path == "/openai/deployments/our-deployment/chat/completions?api-version=2024-10-21"
    assert request.headers["api-key"] == KEY
    assert request.body["response_format"]["type"] == "json_schema"
    with pytest.raises(InvalidArgument, match="takes no base_url"):
        AzureOpenAIChatModelConnection(azure_endpoint="https://x.test", base_url="https://y.test")


def test_unknown_settings_are_refused_with_a_suggestion() -> None:
    made = OpenAIChatModelConnection(api_key=KEY, base_url="http://127.0.0.1:1/v1")
    with pytest.raises(InvalidArgument, match="no setting 'temprature'; did you mean 'temperature'"):
        ask(made, temprature=1)
    with pytest.raises(InvalidArgument, match="no model is specified"):
        ask(made, model="")
    with pytest.raises(InvalidArgument, match="no model is specified for vLLM"):
        VLLMChatModelSetup(connection=made)
    with ModelServer([completion()]) as server:
        ask(connection(server), additional_kwargs={"extra_body": {"top_k": 5}, "seed": 1}, temperature=None)
    assert server.requests[0].body["top_k"] == 5
    assert "temperature" not in server.requests[0].body


def test_connections_are_shared_by_calls_and_closed_at_the_end() -> None:
    with ModelServer([completion()]) as server:
        made = connection(server)

        async def ask_often() -> None:
            for _ in range(5):
                await made.chat(HELLO, model="gpt-test")
            made.close()
            await asyncio.sleep(0.05)

        asyncio.run(ask_often())
        assert (server.connections, len(server.requests)) == (1, 5)
        # Another event loop has connections of its own.
        asyncio.run(ask_often())
        assert server.connections == 2


def test_a_ca_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing, wrong = tmp_path / "nope.pem", tmp_path / "text.pem"
    wrong.write_text("not a certificate")
    for path, said in (
        (missing, "FileNotFoundError"),
        (wrong, "PEM|CERTIFICATE"),
        (tmp_path, "IsADirectory|PEM"),
    ):
        made = OpenAIChatModelConnection(api_key=KEY, base_url="http://localhost:1/v1", ca_file=str(path))
        with pytest.raises(
            ResourceFailed, match=r"the CA file '.*' of the connection cannot be read"
        ) as failed:
            made.open()
        assert str(path) in failed.value.message
        assert re.search(said, failed.value.cause)
        with pytest.raises(ResourceFailed, match="cannot be read"):
            ask(made)
