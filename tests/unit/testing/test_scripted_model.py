"""The scripted model: by content or by order, with delays and errors."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Sequence
from typing import Any

import pytest

from emberflow.agents.models.chat_message import ChatMessage, MessageRole
from emberflow.errors import InvalidArgument, ResourceFailed
from emberflow.plan.agents.resources import ResourceDescriptor
from emberflow.plan.json_values import from_json_value, to_json_value
from emberflow.testing.scripted_model import (
    Reply,
    ScriptedChatModel,
    ScriptedError,
    ScriptedTimeout,
    When,
    tool_call,
)

RULES = [
    When(contains="refund", reply="Sorry!"),
    When(matches=r"^\d+$", reply="A number."),
    When(reply="Hm."),
]


def ask(model: ScriptedChatModel, *texts: str) -> list[str]:
    async def ask_all() -> list[str]:
        return [(await model.chat([ChatMessage(content=text)])).content for text in texts]

    return asyncio.run(ask_all())


def by_length(messages: Sequence[ChatMessage]) -> str:
    return f"{len(messages[-1].content)} characters"


def test_in_order() -> None:
    model = ScriptedChatModel(["one", Reply("two"), ChatMessage(role=MessageRole.ASSISTANT, content="three")])
    assert ask(model, "a", "b", "c") == ["one", "two", "three"]
    with pytest.raises(ResourceFailed) as raised:
        ask(model, "what now?")
    assert "user: what now?" in str(raised.value)
    assert "all 3 replies of the script are used up" in str(raised.value)
    assert "When(reply=" in str(raised.value)


def test_by_content() -> None:
    model = ScriptedChatModel(RULES)
    assert ask(model, "a refund please", "12", "x") == ["Sorry!", "A number.", "Hm."]
    assert ask(model, "x", "12", "a refund please") == ["Hm.", "A number.", "Sorry!"]


def test_by_a_mapping_of_patterns() -> None:
    model = ScriptedChatModel({"refunds?": "Sorry!", "(?i)HELLO": Reply("Hi.")})
    assert ask(model, "hello", "two refunds") == ["Hi.", "Sorry!"]
    with pytest.raises(ResourceFailed, match="none of the 2 rules matches") as raised:
        ask(model, "bye")
    assert "user: bye" in str(raised.value)


def test_by_a_function() -> None:
    assert ask(ScriptedChatModel(by_length), "four", "") == ["4 characters", "0 characters"]


def test_rules_come_before_the_order() -> None:
    model = ScriptedChatModel(["first", When(contains="rule", reply="ruled"), "second"])
    assert ask(model, "x", "a rule", "y") == ["first", "ruled", "second"]


def test_turns_of_a_tool_call_are_decided_by_the_conversation() -> None:
    rule = When(contains="sum", reply=[Reply(tool_calls=[tool_call("add", a=1, b=2)]), "It is 3."])
    model = ScriptedChatModel([rule])
    question = [ChatMessage(role=MessageRole.SYSTEM, content="p"), ChatMessage(content="the sum?")]
    first = asyncio.run(model.chat(question))
    assert first.tool_calls == [
        {"id": "call-0-0", "type": "function", "function": {"name": "add", "arguments": {"a": 1, "b": 2}}}
    ]
    result = ChatMessage(role=MessageRole.TOOL, content="3")
    # The same answers from an instance without knowledge of the first call, as after a crash.
    for again in (model, pickle.loads(pickle.dumps(model))):
        assert asyncio.run(again.chat([*question, first, result])).content == "It is 3."
        assert asyncio.run(again.chat(question)) == first


def test_a_tool_call_is_not_repeated_forever() -> None:
    model = ScriptedChatModel([When(reply=Reply(tool_calls=[tool_call("add")]))])
    question = [ChatMessage(content="sum")]
    first = asyncio.run(model.chat(question))
    with pytest.raises(ResourceFailed, match="ends with a tool call"):
        asyncio.run(model.chat([*question, first, ChatMessage(role=MessageRole.TOOL, content="3")]))


def test_without_a_user_message_the_system_message_decides() -> None:
    model = ScriptedChatModel([When(contains="rate", reply="5")])
    asked = [ChatMessage(role=MessageRole.SYSTEM, content="rate it")]
    assert asyncio.run(model.chat(asked)).content == "5"
    with pytest.raises(ResourceFailed, match="without messages"):
        asyncio.run(model.chat([]))


def test_errors() -> None:
    model = ScriptedChatModel(
        [When(contains="busy", reply=Reply(error=429)), When(reply=Reply(error="timeout"))]
    )
    with pytest.raises(ScriptedError):
        ask(model, "busy")
    with pytest.raises(ScriptedError, match="status 429") as raised:
        ask(model, "busy")
    assert raised.value.status_code == 429
    with pytest.raises(TimeoutError) as timeout:
        ask(model, "x")
    assert isinstance(timeout.value, ScriptedTimeout)
    back = pickle.loads(pickle.dumps(raised.value))
    assert (type(back), str(back), back.status_code) == (ScriptedError, str(raised.value), 429)


def test_errors_before_the_answer_are_counted_per_request() -> None:
    model = ScriptedChatModel([When(reply=Reply("ok", errors_first=[500, "timeout"]))])
    seen: list[Any] = []
    for text in ["a", "b", "a", "a", "b", "b", "a"]:
        try:
            seen += ask(model, text)
        except ScriptedError as error:
            seen.append(error.status_code)
    assert seen == [500, 500, None, "ok", None, "ok", "ok"]


def test_delays_do_not_block_each_other() -> None:
    model = ScriptedChatModel([Reply("slowest", delay_s=0.4), Reply("slow", delay_s=0.2), "quick"])

    async def ask_all() -> list[str]:
        done: list[str] = []

        async def one() -> None:
            done.append((await model.chat([ChatMessage(content="x")])).content)

        await asyncio.gather(one(), one(), one())
        return done

    assert asyncio.run(ask_all()) == ["quick", "slow", "slowest"]


def test_calls_are_recorded() -> None:
    model = ScriptedChatModel(RULES)
    asyncio.run(model.chat([ChatMessage(content="x")], temperature=0.1))
    assert model.calls[0].messages == [ChatMessage(content="x")]
    assert model.calls[0].settings == {"temperature": 0.1}


def test_calls_of_instances_that_a_job_created() -> None:
    ScriptedChatModel.calls_of("shop").clear()
    descriptor = ResourceDescriptor(clazz=ScriptedChatModel, replies=RULES, name="shop")
    for _ in range(2):
        ask(descriptor.clazz(**descriptor.arguments), "x")
    assert len(ScriptedChatModel.calls_of("shop")) == 2


@pytest.mark.parametrize("replies", [RULES, ["x"], {"x": "y"}, by_length, [Reply("x", errors_first=[429])]])
def test_scripts_can_be_pickled(replies: Any) -> None:
    model = pickle.loads(pickle.dumps(ScriptedChatModel(replies)))
    assert model.calls == []
    descriptor = ResourceDescriptor(clazz=ScriptedChatModel, replies=replies)
    assert pickle.loads(pickle.dumps(descriptor)) == descriptor
    assert from_json_value(to_json_value(descriptor.arguments)) == {"replies": replies}


@pytest.mark.parametrize(
    ("replies", "said"),
    [
        ("x", r"replies=\['x'\]"),
        ([5], "5 is not a reply"),
        ({"(": "x"}, "not a regular expression"),
        ([When(reply=[])], "has no reply"),
        ([Reply(error="rate limit")], "a status such as 429"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_wrong_scripts(replies: Any, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        ScriptedChatModel(replies)
