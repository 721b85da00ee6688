"""Chats of a repeated action are answered from the log, also those that run side by side (A14, A19)."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    AgentsExecutionEnvironment,
    BaseChatModelConnection,
    BaseChatModelSetup,
    ChatMessage,
    ChatRequestEvent,
    ChatResponseEvent,
    InputEvent,
    MessageRole,
    OutputEvent,
    ResourceDescriptor,
    ResourceType,
    Retry,
    RunnerContext,
)
from emberflow.errors import ActionFailed, ReplayMismatch
from emberflow.testing import tool_call

made: list[str] = []
crashes: list[str] = []
questions: list[str] = []
order: list[asyncio.Event] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    for seen in (made, crashes, questions, order):
        seen.clear()


class Service(BaseChatModelConnection):
    """Answers the first of two chats last the first time: their calls overlap in another order when repeated."""

    async def chat(self, messages: Any, tools: Any = None, **kwargs: Any) -> ChatMessage:
        asked = messages[0].content
        results = [item.content for item in messages if item.role is MessageRole.TOOL]
        made.append(f"{asked} {len(results)}")
        if asked == "slow":
            for _ in range(20):
                await asyncio.sleep(0)
        if len(results) < 2:
            call = {"id": str(len(results)), **tool_call("square", number=len(results) + 2)}
            return ChatMessage(role=MessageRole.ASSISTANT, tool_calls=[call])
        return ChatMessage(role=MessageRole.ASSISTANT, content=f"{asked}: {'+'.join(results)}")


async def square(number: int) -> int:
    """Of a number."""
    made.append(f"square {number}")
    return number * number


def crash_once(where: str) -> None:
    if where not in crashes:
        crashes.append(where)
        raise RuntimeError(f"a crash {where}")


async def both(event: InputEvent, ctx: RunnerContext) -> None:
    slow, quick = await asyncio.gather(ctx.chat("model", "slow"), ctx.chat("model", "quick"))
    after = await ctx.call_tool("square", number=9)
    crash_once("after all")
    ctx.send_event(OutputEvent([slow.content, quick.content, after]))


def run(
    act: Any,
    folder: Path,
    *,
    retry: Retry | None = None,
    mismatch: str | None = None,
    answered: Any = None,
) -> list[Any]:
    env = AgentsExecutionEnvironment.get_execution_environment(
        engine="local", checkpoint_dir=folder, parallelism=1
    )
    if mismatch is not None:
        env.get_config().set(AgentExecutionOptions.ON_REPLAY_MISMATCH, mismatch)
    model = ResourceDescriptor(clazz=BaseChatModelSetup, connection="service", tools=["square"])
    agent = (
        Agent("asker")
        .add_action("act", [InputEvent], act, retry=retry)
        .add_resource("service", ResourceType.CHAT_MODEL_CONNECTION, ResourceDescriptor(clazz=Service))
        .add_resource("model", ResourceType.CHAT_MODEL, model)
        .add_resource("square", ResourceType.TOOL, square)
    )
    if answered is not None:
        agent.add_action("answered", [ChatResponseEvent], answered)
    outputs = env.from_list([{"key": "k", "value": 0}]).apply(agent).to_list()
    env.execute()
    return [item["k"] for item in outputs]


EXPECTED = [["slow: 4+9", "quick: 4+9", 81]]


def test_chats_side_by_side_are_repeated_without_paying_again(tmp_path: Path) -> None:
    with pytest.raises(ActionFailed, match="a crash after all"):
        run(both, tmp_path)
    before = list(made)
    assert len(before) == 11

    assert run(both, tmp_path) == EXPECTED
    assert made == before


def test_a_retry_of_the_action_does_not_pay_again(tmp_path: Path) -> None:
    assert run(both, tmp_path, retry=Retry(attempts=2, backoff_ms=1)) == EXPECTED
    assert len(made) == 11


async def asks_something_else(event: InputEvent, ctx: RunnerContext) -> None:
    questions.append("first" if not questions else "second")
    answer = await ctx.chat("model", questions[-1])
    await ctx.call_tool("square", number=9)
    crash_once("after all")
    ctx.send_event(OutputEvent(answer.content))


def test_a_repeated_action_that_asks_something_else_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ActionFailed):
        run(asks_something_else, tmp_path)
    with pytest.raises(ReplayMismatch, match="durable call 1 of the action was chat model 'model'"):
        run(asks_something_else, tmp_path)


def test_it_starts_over_if_it_may(tmp_path: Path) -> None:
    with pytest.raises(ActionFailed):
        run(asks_something_else, tmp_path)
    made.clear()
    assert run(asks_something_else, tmp_path, mismatch="restart") == ["second: 4+9"]
    assert made == ["second 0", "square 2", "second 1", "square 3", "second 2", "square 9"]


def asks_twice(event: InputEvent, ctx: RunnerContext) -> None:
    for question in ("slow", "quick"):
        ctx.send_event(ChatRequestEvent("model", question))


def answered(event: ChatResponseEvent, ctx: RunnerContext) -> None:
    crash_once(f"after {event.response.content}")
    ctx.send_event(OutputEvent(event.response.content))


def test_adjacent_requests_are_repeated_without_paying_again(tmp_path: Path) -> None:
    def start() -> list[Any]:
        return run(asks_twice, tmp_path, answered=answered)

    for crash in ("slow: 4+9", "quick: 4+9"):
        with pytest.raises(ActionFailed, match=f"a crash after {re.escape(crash)}"):
            start()
        assert len(made) == 10
    assert start() == ["slow: 4+9", "quick: 4+9"]
    assert len(made) == 10
