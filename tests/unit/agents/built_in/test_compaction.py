"""A chat that is longer than the model's window is shortened for the model; what is stored stays complete (A19)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from emberflow.agents import AgentExecutionOptions, ChatMessage, HistoryStrategy, MessageRole
from emberflow.agents.built_in.compaction import (
    LEFT_OUT,
    HistoryLimit,
    Summary,
    fitted,
    latest,
    to_summarize,
    tokens_of,
    with_summary,
)
from emberflow.errors import InvalidAgent, InvalidArgument
from emberflow.testing import Reply, ScriptedChatModel, When, run_agent, tool_call
from tests.support.chat_agents import FORMS, chatting

SYSTEM = ChatMessage(role=MessageRole.SYSTEM, content="Be brief.")
TASK = ChatMessage(content="the task")


def call(number: int) -> ChatMessage:
    wanted = {"id": f"c{number}", **tool_call("long_text", size=number)}
    return ChatMessage(role=MessageRole.ASSISTANT, tool_calls=[wanted])


def result(number: int, size: int = 400) -> ChatMessage:
    return ChatMessage(
        role=MessageRole.TOOL, content=str(number) * size, extra_args={"external_id": f"c{number}"}
    )


def chat(turns: int) -> list[ChatMessage]:
    messages = [SYSTEM, TASK]
    for number in range(turns):
        messages += [call(number), result(number)]
    return messages


def limit(max_tokens: int, strategy: HistoryStrategy = HistoryStrategy.KEEP_LAST) -> HistoryLimit:
    return HistoryLimit(max_tokens=max_tokens, strategy=strategy, summary_model=None)


def test_nothing_is_left_out_without_a_limit_or_below_it() -> None:
    assert fitted(chat(5), limit(0)) == chat(5)
    assert fitted(chat(5), limit(100_000)) == chat(5)


@pytest.mark.parametrize("max_tokens", range(0, 800, 37))
@pytest.mark.parametrize("strategy", list(HistoryStrategy))
def test_calls_and_results_stay_together_and_the_beginning_stays(
    max_tokens: int, strategy: HistoryStrategy
) -> None:
    sent = fitted(chat(6), limit(max_tokens + 1, strategy))
    assert sent[:2] == [SYSTEM, TASK]
    assert sent[-1].extra_args == result(5).extra_args, "the latest result is never left out"
    for before, message in itertools.pairwise(sent):
        if message.role is MessageRole.TOOL:
            assert before.tool_calls[0]["id"] == message.extra_args["external_id"]
    assert tokens_of(sent) <= max(max_tokens + 1, tokens_of([SYSTEM, TASK, call(5), result(5)]))


def test_results_are_left_out_oldest_first() -> None:
    sent = fitted(chat(4), limit(400, HistoryStrategy.DROP_TOOL_RESULTS))
    contents = [message.content for message in sent if message.role is MessageRole.TOOL]
    assert contents == [LEFT_OUT, LEFT_OUT, "2" * 400, "3" * 400]
    assert len(sent) == len(chat(4))


def test_results_of_one_reply_stay_together() -> None:
    both = ChatMessage(
        role=MessageRole.ASSISTANT,
        tool_calls=[{"id": "c1", **tool_call("add")}, {"id": "c2", **tool_call("add")}],
    )
    messages = [TASK, call(0), result(0), both, result(1), result(2)]
    assert messages[latest(messages, 1, 1) :] == [both, result(1), result(2)]


def test_a_summary_replaces_what_it_covers() -> None:
    messages = chat(4)
    wanted = to_summarize(messages, None, limit(300, HistoryStrategy.SUMMARIZE))
    assert wanted is not None
    end, (question,) = wanted
    assert messages[end].role is MessageRole.ASSISTANT
    assert "long_text" in question.content
    assert "the task" not in question.content, "the beginning stays"

    first = Summary(end=end, text="so far")
    sent = with_summary(messages, first)
    assert sent[:2] == [SYSTEM, TASK]
    assert "so far" in sent[2].content
    assert sent[3:] == messages[end:]
    assert to_summarize(messages, first, limit(300, HistoryStrategy.SUMMARIZE)) is None

    longer = chat(8)
    again = to_summarize(longer, first, limit(300, HistoryStrategy.SUMMARIZE))
    assert again is not None
    assert again[0] > end
    assert "so far" in again[1][0].content, "the next summary includes the first"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("strategy", list(HistoryStrategy))
def test_a_long_chat_fits_into_the_window(form: Any, strategy: HistoryStrategy) -> None:
    calls = ScriptedChatModel.calls_of("window")
    calls.clear()
    turns = [Reply(tool_calls=[tool_call("long_text", size=800)]) for _ in range(6)]

    agent = form(_replies(turns), name="window")
    options = {
        AgentExecutionOptions.CHAT_HISTORY_MAX_TOKENS: 700,
        AgentExecutionOptions.CHAT_HISTORY_STRATEGY: strategy,
    }
    run = run_agent(agent, ["the task"], options=options)

    assert run.outputs == ["done after 6"]
    asked = [item for item in calls if not item.messages[-1].content.startswith("Summarize")]
    assert len(asked) == 7
    assert all(tokens_of(item.messages) <= 700 for item in asked)
    assert all(item.messages[0].content == "the task" for item in asked)
    assert (len(calls) > len(asked)) == (strategy is HistoryStrategy.SUMMARIZE)


def _replies(turns: list[Reply]) -> Any:
    """By what was asked, not by how often: summaries are asked in between, and history is left out."""
    state = {"turn": 0}

    def decide(messages: list[ChatMessage]) -> Any:
        if messages[-1].content.startswith("Summarize"):
            return "a summary"
        state["turn"] += 1
        return turns[state["turn"] - 1] if state["turn"] <= len(turns) else f"done after {len(turns)}"

    return decide


def test_a_setup_may_have_its_own_limit() -> None:
    calls = ScriptedChatModel.calls_of("own")
    calls.clear()
    turns = [Reply(tool_calls=[tool_call("long_text", size=800)]) for _ in range(4)]
    agent = chatting([When(reply=[*turns, "done"])], name="own", max_history_tokens=300)
    with pytest.raises(Exception, match=r"."):
        # The script counts the replies that it is shown, and some are left out.
        run_agent(agent, ["the task"], options={AgentExecutionOptions.CHAT_MAX_STEPS: 6})
    assert all(tokens_of(item.messages) <= 300 for item in calls)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (-1, "max_history_tokens must be a non-negative integer"),
        (1.5, "'max_history_tokens' is 1.5"),
        ([1], r"'max_history_tokens' is \[1\]"),
    ],
)
def test_a_limit_is_a_number(wrong: Any, said: str) -> None:
    with pytest.raises((InvalidArgument, InvalidAgent), match=said):
        run_agent(chatting(["hi"], max_history_tokens=wrong), ["go"])


def test_a_strategy_is_one_that_exists() -> None:
    with pytest.raises(InvalidAgent, match="'history_strategy' cannot be 'forget'"):
        run_agent(chatting(["hi"], history_strategy="forget"), ["go"])
