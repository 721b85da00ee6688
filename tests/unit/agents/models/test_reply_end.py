"""Refusals and answers that are cut off: never an empty answer, never a pointless question (A19)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    ChatMessage,
    ChatModel,
    InputEvent,
    OutputEvent,
    ResourceType,
    RunnerContext,
)
from emberflow.agents.models.reply_end import is_cut, with_refusal
from emberflow.errors import EmberflowError, ModelFailed, ModelRefused, OutputMismatch
from emberflow.testing import ScriptedChatModel, run_agent, tool_call
from tests.support.anthropic_answers import message, text
from tests.support.chat_agents import FORMS, Total
from tests.support.model_server import Answer, ModelServer
from tests.support.openai_answers import completion

NO = "I cannot help with that."

in_every_form = pytest.mark.parametrize("form", FORMS)
Form = Callable[..., Agent]


def reply(content: str = "", **extra: Any) -> ChatMessage:
    return ChatMessage(role="assistant", content=content, extra_args=extra)


@pytest.fixture(autouse=True)
def _forget() -> None:
    ScriptedChatModel.calls_of("scripted").clear()


def asked() -> int:
    return len(ScriptedChatModel.calls_of("scripted"))


@in_every_form
@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (reply(refusal=NO), NO),
        (reply(finish_reason="content_filter"), "the service withheld the answer: content_filter"),
        (reply('{"total": 3}', finish_reason="refusal"), "the service withheld the answer: refusal"),
    ],
)
def test_a_refusal_has_no_type_and_is_not_asked_again(form: Form, said: ChatMessage, cause: str) -> None:
    with pytest.raises(ModelRefused, match="the model 'model' refused to answer") as failed:
        run_agent(form([said], name="scripted", output=Total), ["1 + 2?"])
    assert failed.value.cause == cause
    assert asked() == 1


@in_every_form
def test_the_text_of_a_refusal_is_an_answer_without_a_type(form: Form) -> None:
    assert run_agent(form([reply(refusal=NO)]), ["?"]).outputs == [NO]
    withheld = "the service withheld the answer: content_filter"
    assert run_agent(form([reply(finish_reason="content_filter")]), ["?"]).outputs == [withheld]


def test_a_refusal_is_marked() -> None:
    assert with_refusal(reply(refusal=NO)) == reply(NO, refusal=NO)
    assert with_refusal(reply("Well, ", refusal=NO)).content == "Well, "
    plain = reply("3", finish_reason="stop")
    assert with_refusal(plain) is plain
    calls = ChatMessage(
        role="assistant", tool_calls=[tool_call("add")], extra_args={"finish_reason": "content_filter"}
    )
    assert with_refusal(calls) is calls


@in_every_form
@pytest.mark.parametrize("reason", ["length", "max_tokens"])
def test_a_typed_answer_that_is_cut_off_is_not_asked_again(form: Form, reason: str) -> None:
    with pytest.raises(
        OutputMismatch, match="not a complete Total: it was cut at the limit of tokens"
    ) as failed:
        run_agent(form([reply('{"tot', finish_reason=reason)], name="scripted", output=Total), ["1 + 2?"])
    assert "raise max_tokens" in failed.value.way_out
    assert f"finish_reason '{reason}'" in failed.value.cause
    assert asked() == 1


@in_every_form
def test_a_complete_value_counts_though_the_limit_was_reached(form: Form) -> None:
    said = reply('{"total": 3} and so', finish_reason="length")
    assert run_agent(form([said], output=Total), ["1 + 2?"]).outputs == [Total(3)]


@in_every_form
def test_an_answer_that_is_cut_off_before_it_begins(form: Form) -> None:
    with pytest.raises(ModelFailed, match="reached its limit of tokens before it answered"):
        run_agent(form([reply(finish_reason="length")]), ["?"])
    assert run_agent(form([reply("It is", finish_reason="length")]), ["?"]).outputs == ["It is"]


def ollama(content: str, reason: str) -> Answer:
    said = {"role": "assistant", "content": content}
    return Answer({"model": "m", "message": said, "done": True, "done_reason": reason, "eval_count": 1})


@pytest.mark.parametrize(
    ("vendor", "answer", "error"),
    [
        ("openai", completion(None, refusal=NO), ModelRefused),
        ("openai", completion('{"tot', finish="length"), OutputMismatch),
        ("anthropic", message(text(NO), stop="refusal"), ModelRefused),
        ("anthropic", message(text('{"tot'), stop="max_tokens"), OutputMismatch),
        ("ollama", ollama('{"tot', "length"), OutputMismatch),
    ],
)
def test_every_service_is_understood(
    vendor: str, answer: Answer, error: type[EmberflowError], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(await ctx.chat("model", "1 + 2?", output=Total)))

    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "k")
    with ModelServer([answer]) as server:
        address = f"{server.url}/v1" if vendor == "openai" else server.url
        described = getattr(ChatModel, vendor)("m", base_url=address)
        agent = Agent("a").add_action("act", [InputEvent], act)
        agent.add_resource("model", ResourceType.CHAT_MODEL, described)
        with pytest.raises(error):
            run_agent(agent, ["x"])
        assert len(server.requests) == 1


def test_the_reason_is_read_from_the_answer() -> None:
    assert is_cut(reply(finish_reason="model_context_window_exceeded"))
    assert not is_cut(reply(finish_reason="stop"))
    assert not is_cut(reply())
