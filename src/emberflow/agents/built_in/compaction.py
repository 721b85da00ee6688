"""Shortens a chat that is longer than a model can read. What is stored of the chat stays complete.

A pure function of the messages, so that a repeated action sends the same again; the summaries that one strategy needs are
durable calls of a model, and belong to the chat.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from emberflow.agents.models.chat_message import ChatMessage, MessageRole
from emberflow.agents.models.system_messages import leading_system_messages
from emberflow.errors import InvalidArgument
from emberflow.operators.agents.resources.token_estimates import estimated_tokens
from emberflow.plan.agents.config import Configuration
from emberflow.plan.agents.options import AgentExecutionOptions, HistoryStrategy

LEFT_OUT = "[this result was left out because the conversation has become too long]"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryLimit:
    """How much of a chat a model receives."""

    max_tokens: int
    """0: everything."""
    strategy: HistoryStrategy
    summary_model: str | None

    @staticmethod
    def of(config: Configuration, model: Any) -> HistoryLimit:
        """As the options say, unless the setup of the model says otherwise."""
        own: Any = getattr(model, "max_history_tokens", None)
        if own is not None and (not isinstance(own, int) or own < 0):
            raise InvalidArgument(f"max_history_tokens must be a non-negative integer, got {own!r}")
        strategy: Any = getattr(model, "history_strategy", None)
        options = AgentExecutionOptions
        return HistoryLimit(
            max_tokens=config.get(options.CHAT_HISTORY_MAX_TOKENS) if own is None else own,
            strategy=options.CHAT_HISTORY_STRATEGY.convert(strategy)
            if strategy is not None
            else config.get(options.CHAT_HISTORY_STRATEGY),
            summary_model=config.get(options.CHAT_SUMMARY_MODEL),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a model wrote about the messages between the beginning of a chat and `end`."""

    end: int
    text: str


def tokens_of(messages: Sequence[ChatMessage]) -> float:
    """An estimate."""
    return sum(map(estimated_tokens, messages))


def beginning_of(messages: Sequence[ChatMessage]) -> int:
    """The length of what is never left out: leading system messages, and the first other message."""
    return min(leading_system_messages(messages) + 1, len(messages))


def latest(messages: Sequence[ChatMessage], start: int, max_tokens: float) -> int:
    """Where the latest messages begin that have at most so many tokens together: at least the last ones that belong
    together. A call of a tool and its result are never separated, because services reject one without the other."""
    chosen, used = len(messages), 0.0
    for at in range(len(messages) - 1, start - 1, -1):
        used += estimated_tokens(messages[at])
        if messages[at].role is MessageRole.TOOL:
            continue
        if used > max_tokens and chosen < len(messages):
            break
        chosen = at
    return chosen


def fitted(messages: Sequence[ChatMessage], limit: HistoryLimit) -> list[ChatMessage]:
    """What the model receives with the strategies that need no model."""
    found = list(messages)
    if not limit.max_tokens or tokens_of(found) <= limit.max_tokens:
        return found
    if limit.strategy is HistoryStrategy.DROP_TOOL_RESULTS:
        found = _without_results(found, limit.max_tokens)
        if tokens_of(found) <= limit.max_tokens:
            return found
    start = beginning_of(found)
    return [*found[:start], *found[latest(found, start, limit.max_tokens - tokens_of(found[:start])) :]]


def _without_results(messages: list[ChatMessage], max_tokens: float) -> list[ChatMessage]:
    found, over = list(messages), tokens_of(messages) - max_tokens
    last_reply = max((at for at, item in enumerate(found) if item.role is MessageRole.ASSISTANT), default=0)
    for at in range(last_reply):
        if over <= 0:
            break
        if found[at].role is MessageRole.TOOL and len(found[at].content) > len(LEFT_OUT):
            shorter = replace(found[at], content=LEFT_OUT)
            over -= estimated_tokens(found[at]) - estimated_tokens(shorter)
            found[at] = shorter
    return found


# summaries


def with_summary(messages: Sequence[ChatMessage], summary: Summary | None) -> list[ChatMessage]:
    """The messages with the summary instead of those that it covers."""
    if summary is None:
        return list(messages)
    text = f"Summary of the conversation so far:\n{summary.text}"
    start = beginning_of(messages)
    return [*messages[:start], ChatMessage(content=text), *messages[summary.end :]]


def to_summarize(
    messages: Sequence[ChatMessage], summary: Summary | None, limit: HistoryLimit
) -> tuple[int, list[ChatMessage]] | None:
    """Where the next summary must end, and what to ask the model that writes it; None if none is needed."""
    if not limit.max_tokens or limit.strategy is not HistoryStrategy.SUMMARIZE:
        return None
    if tokens_of(with_summary(messages, summary)) <= limit.max_tokens:
        return None
    start = beginning_of(messages)
    done = start if summary is None else summary.end
    # Half of the space, so that not every further message needs another summary.
    end = latest(messages, done, limit.max_tokens / 2 - tokens_of(messages[:start]))
    if end <= done:
        return None
    earlier = "" if summary is None else f"Summary of what came before:\n{summary.text}\n\n"
    return end, [
        ChatMessage(
            content="Summarize this part of a conversation between a user, an assistant and its tools in a few sentences. "
            "Keep every fact, number, name and decision that may be needed later. Do not call tools.\n\n"
            f"{earlier}{_transcript(messages[done:end])}"
        )
    ]


def _transcript(messages: Sequence[ChatMessage]) -> str:
    lines: list[str] = []
    for message in messages:
        calls = [
            f"{call.get('function', {}).get('name')}({json.dumps(call.get('function', {}).get('arguments'), default=str)})"
            for call in message.tool_calls
        ]
        text = " ".join(filter(None, (message.content, *(f"[calls {call}]" for call in calls))))
        lines.append(f"{message.role.value}: {text}")
    return "\n".join(lines)
