"""Estimates of tokens: the same for admission and for chats that are shortened."""

from __future__ import annotations

from emberflow.agents import ChatMessage
from emberflow.agents.built_in.compaction import tokens_of
from emberflow.operators.agents.resources.token_estimates import estimated_tokens
from emberflow.testing import tool_call


def test_texts_wherever_they_are() -> None:
    assert estimated_tokens("x" * 8) == 2
    assert estimated_tokens({"a": "x" * 8, "b": ["x" * 4, ("x" * 4, 7, None)]}) == 4
    assert estimated_tokens(object()) == 0


def test_a_message_counts_with_the_calls_that_it_asks_for() -> None:
    plain = ChatMessage(content="x" * 40)
    calling = ChatMessage(role="assistant", content="x" * 40, tool_calls=[tool_call("add", a=1)])
    assert estimated_tokens(plain) == 14
    assert estimated_tokens(calling) > 24
    assert (
        tokens_of([plain, calling])
        == estimated_tokens(((plain, calling), {}))
        == estimated_tokens([plain, calling])
    )
