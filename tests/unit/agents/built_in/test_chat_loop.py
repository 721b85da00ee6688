"""The loop of a chat, in its three forms: `ctx.chat`, chat events, ReActAgent (A18, A19, A20)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    BaseChatModelConnection,
    BaseChatModelSetup,
    ChatMessage,
    InputEvent,
    MessageRole,
    OutputEvent,
    ResourceDescriptor,
    ResourceType,
    RunnerContext,
)
from emberflow.errors import EmberflowError, InvalidArgument, ModelFailed, OutputMismatch, StepLimitReached
from emberflow.testing import Reply, ScriptedChatModel, When, run_agent, tool_call
from tests.support.chat_agents import FORMS, Total, chatting, with_model

in_every_form = pytest.mark.parametrize("form", FORMS)
Form = Callable[..., Agent]


def asked(name: str) -> list[list[ChatMessage]]:
    """What a named model was sent, call by call."""
    return [call.messages for call in ScriptedChatModel.calls_of(name)]


@pytest.fixture(autouse=True)
def _forget() -> None:
    ScriptedChatModel.calls_of("scripted").clear()


def wants(*calls: dict[str, Any]) -> Reply:
    return Reply(tool_calls=calls)


@in_every_form
def test_the_model_gets_the_results_of_its_tools_until_it_answers(form: Form) -> None:
    replies = [wants(tool_call("add", a=1, b=2)), wants(tool_call("add", a=3, b=4)), "It is 7."]

    assert run_agent(form(replies, name="scripted"), ["1 + 2 + 4?"]).outputs == ["It is 7."]

    last = asked("scripted")[-1]
    assert [message.role.value for message in last] == ["user", "assistant", "tool", "assistant", "tool"]
    assert [message.content for message in last if message.role is MessageRole.TOOL] == ["3", "7"]
    # Every result says to which call it belongs.
    for reply, result in ((last[1], last[2]), (last[3], last[4])):
        assert result.extra_args["external_id"] == reply.tool_calls[0]["id"]


@in_every_form
def test_a_model_without_need_of_tools_answers_at_once(form: Form) -> None:
    run = run_agent(form(["Hello."], name="scripted"), ["Hi"])
    assert run.outputs == ["Hello."]
    assert len(asked("scripted")) == 1
    assert not run.sent("_tool_request_event")


@in_every_form
@pytest.mark.parametrize(("output", "answer"), [(None, '{"total": 3}'), (Total, Total(3))])
def test_a_model_without_tools_is_told_that_there_is_none(form: Form, output: Any, answer: Any) -> None:
    replies = [wants(tool_call("add", a=1, b=2)), '{"total": 3}']
    assert run_agent(form(replies, name="scripted", tools=[], output=output), ["1 + 2?"]).outputs == [answer]
    (result,) = [message.content for message in asked("scripted")[-1] if message.role is MessageRole.TOOL]
    assert result == "Error: there is no tool 'add'; your tools: none"


class Speaking(BaseChatModelConnection):
    """A user's own: its answer is a message in any form."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def chat(self, messages: Any, tools: Any = None, **kwargs: Any) -> Any:
        return self.answer


class PlainlySpeaking(Speaking):
    def chat(self, messages: Any, tools: Any = None, **kwargs: Any) -> Any:
        return self.answer


class OwnSetup(BaseChatModelSetup):
    """A setup with a `chat` of its own."""

    async def chat(self, messages: Any, prompt_args: Any = None, **kwargs: Any) -> Any:
        return self.settings.get("answer")


def speaking(form: Form, clazz: type[Any], answer: Any, output: Any) -> Agent:
    service = ResourceDescriptor(clazz=Speaking if clazz is OwnSetup else clazz, answer=answer)
    own = clazz is OwnSetup
    model = ResourceDescriptor(
        clazz=clazz if own else BaseChatModelSetup, connection="own", **({"answer": answer} if own else {})
    )
    agent = form(["unused"], output=output)
    agent.resources[ResourceType.CHAT_MODEL]["model"] = model
    return agent.add_resource("own", ResourceType.CHAT_MODEL_CONNECTION, service)


speakers = pytest.mark.parametrize("clazz", [Speaking, PlainlySpeaking, OwnSetup])


@in_every_form
@speakers
@pytest.mark.parametrize("answer", ['{"total": 3}', {"role": "assistant", "content": '{"total": 3}'}])
def test_a_string_is_a_message_with_that_content(form: Form, clazz: type[Any], answer: Any) -> None:
    assert run_agent(speaking(form, clazz, answer, Total), ["?"]).outputs == [Total(3)]
    assert run_agent(speaking(form, clazz, answer, None), ["?"]).outputs == ['{"total": 3}']


@in_every_form
@speakers
@pytest.mark.parametrize("answer", [None, 3, ["a"], {"content": "no role"}], ids=str)
def test_anything_else_names_the_class_and_the_value(form: Form, clazz: type[Any], answer: Any) -> None:
    named = f"the chat of {clazz.__name__} returned {answer!r} instead of a message"
    with pytest.raises(ModelFailed, match=re.escape(named)):
        run_agent(speaking(form, clazz, answer, Total), ["?"])


@in_every_form
def test_a_typed_answer_is_a_value_of_the_type(form: Form) -> None:
    replies = [wants(tool_call("add", a=1, b=2)), 'Here it is:\n```json\n{"total": 3}\n```']
    (output,) = run_agent(form(replies, output=Total), ["1 + 2?"]).outputs
    assert output == Total(3)


@in_every_form
def test_a_reply_that_does_not_fit_is_corrected_by_the_model(form: Form) -> None:
    replies = ["three", '{"total": "many"}', '{"total": 3}']

    assert run_agent(form(replies, name="scripted", output=Total), ["1 + 2?"]).outputs == [Total(3)]

    told = [message.content for message in asked("scripted")[-1] if message.role is MessageRole.USER]
    assert "not JSON" in told[1]
    assert "total" in told[2]


@in_every_form
def test_corrections_are_bounded(form: Form) -> None:
    agent = form([When(reply="never JSON")], name="scripted", output=Total)
    with pytest.raises(OutputMismatch, match="does not fit Total"):
        run_agent(agent, ["1 + 2?"], options={AgentExecutionOptions.CHAT_MAX_CORRECTIONS: 4})
    assert len(asked("scripted")) == 5


@in_every_form
def test_corrections_are_counted_over_the_whole_chat(form: Form) -> None:
    again = [wants(tool_call("add", a=1, b=2)), "never JSON"] * 20
    agent = form([When(reply=again)], name="scripted", output=Total)
    with pytest.raises(OutputMismatch, match="does not fit Total"):
        run_agent(agent, ["1 + 2?"], options={AgentExecutionOptions.CHAT_MAX_CORRECTIONS: 2})
    assert len(asked("scripted")) == 6


@in_every_form
def test_a_chat_that_ends_with_a_reply_that_does_not_fit_says_so(form: Form) -> None:
    agent = form([When(reply="never JSON")], name="scripted", output=Total, max_steps=2)
    with pytest.raises(StepLimitReached) as error:
        run_agent(agent, ["1 + 2?"])
    assert error.value.cause == "its last reply does not fit Total: 'never JSON'"


@in_every_form
def test_a_model_that_never_answers_is_stopped(form: Form) -> None:
    agent = form([When(reply=[wants(tool_call("add", a=1, b=2))] * 10)], name="scripted", max_steps=3)
    with pytest.raises(StepLimitReached, match="no final answer after 3 calls of the model") as error:
        run_agent(agent, ["loop"])
    assert "its last reply asked for add" in error.value.cause
    assert len(asked("scripted")) == 3


@in_every_form
def test_the_option_limits_every_chat(form: Form) -> None:
    agent = form([When(reply=[wants(tool_call("add", a=1, b=2))] * 10)], name="scripted")
    with pytest.raises(StepLimitReached):
        run_agent(agent, ["loop"], options={AgentExecutionOptions.CHAT_MAX_STEPS: 2})
    assert len(asked("scripted")) == 2


@in_every_form
def test_the_same_id_for_two_calls_does_not_mix_up_their_results(form: Form) -> None:
    twice = {"id": "x", "type": "function", "function": {"name": "add", "arguments": {"a": 1, "b": 1}}}
    other = {"id": "x", "type": "function", "function": {"name": "add", "arguments": {"a": 2, "b": 2}}}
    replies = [Reply(tool_calls=[twice, other]), "done"]
    assert run_agent(form(replies, name="scripted"), ["go"]).outputs == ["done"]
    results = [message for message in asked("scripted")[-1] if message.role is MessageRole.TOOL]
    assert [message.content for message in results] == ["2", "4"]
    assert len({message.extra_args["external_id"] for message in results}) == 2


def test_chats_of_one_action_run_side_by_side() -> None:
    replies = [
        When(contains="a", reply=[wants(tool_call("add", a=1, b=1)), Reply("two", delay_s=0.01)]),
        When(contains="b", reply=[Reply(tool_calls=[tool_call("add", a=2, b=2)], delay_s=0.02), "four"]),
    ]

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        both = await asyncio.gather(ctx.chat("model", "a"), ctx.chat("model", "b"))
        ctx.send_event(OutputEvent([message.content for message in both]))

    agent = with_model(Agent("both").add_action("act", [InputEvent], act), replies)
    assert run_agent(agent, ["go"]).outputs == [["two", "four"]]


def test_settings_of_a_call_reach_the_service() -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        await ctx.chat("model", [ChatMessage(content=event.input)], temperature=0.5)
        ctx.send_event(OutputEvent("done"))

    agent = with_model(Agent("set").add_action("act", [InputEvent], act), ["hello"], name="scripted", top_p=1)
    run_agent(agent, ["hi"])
    settings = ScriptedChatModel.calls_of("scripted")[0].settings
    assert settings["temperature"] == 0.5
    assert settings["top_p"] == 1


def test_messages_may_be_given_in_any_form() -> None:
    forms: list[Any] = [
        "hi",
        ChatMessage(content="hi"),
        [ChatMessage(content="hi")],
        [{"role": "user", "content": "hi"}],
    ]

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        for form in forms:
            await ctx.chat("model", form)
        ctx.send_event(OutputEvent("done"))

    agent = with_model(
        Agent("forms").add_action("act", [InputEvent], act), [When(reply="hello")], name="scripted"
    )
    run_agent(agent, ["hi"])
    assert asked("scripted") == [[ChatMessage(content="hi")]] * 4


@pytest.mark.parametrize("wrong", [5, None, b"hi", {"content": "hi"}, [5]])
def test_other_messages_are_rejected(wrong: Any) -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        await ctx.chat("model", wrong)

    with pytest.raises(InvalidArgument, match="message"):
        run_agent(with_model(Agent("wrong").add_action("act", [InputEvent], act), ["hello"]), ["hi"])


def test_in_a_plain_action_a_chat_returns_its_answer() -> None:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        answer: Any = ctx.chat("model", "hi")
        ctx.send_event(OutputEvent(answer.content))

    agent = with_model(Agent("plain").add_action("act", [InputEvent], act), ["hello"])
    assert run_agent(agent, ["hi"]).outputs == ["hello"]


def test_an_unknown_model_is_reported_with_a_suggestion() -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        await ctx.chat("modle", "hi")

    agent = with_model(Agent("typo").add_action("act", [InputEvent], act), ["hello"])
    with pytest.raises(EmberflowError, match="did you mean 'model'"):
        run_agent(agent, ["hi"])


@pytest.mark.parametrize("steps", [0, -1])
def test_a_chat_has_at_least_one_step(steps: int) -> None:
    with pytest.raises(InvalidArgument, match="max_steps must be at least 1"):
        run_agent(chatting(["hello"], max_steps=steps), ["hi"])


class OldSetup(BaseChatModelSetup):
    """A setup that knows nothing of output schemas, and is a plain function."""

    def chat(self, messages: Any, prompt_args: Any = None, **kwargs: Any) -> ChatMessage:  # pyright: ignore[reportIncompatibleMethodOverride]
        said = " | ".join(message.content for message in messages)
        assert '"total"' in said
        return ChatMessage(role=MessageRole.ASSISTANT, content='{"total": 1}')


def test_a_setup_of_the_user_gets_the_schema_in_its_messages() -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(await ctx.chat("old", "hi", output=Total)))

    agent = with_model(Agent("old").add_action("act", [InputEvent], act), ["hello"])
    agent.add_resource(
        "old", ResourceType.CHAT_MODEL, ResourceDescriptor(clazz=OldSetup, connection="service")
    )
    assert run_agent(agent, ["hi"]).outputs == [Total(1)]
