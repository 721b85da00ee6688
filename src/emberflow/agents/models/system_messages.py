"""Where instructions are added to a chat: after the system messages at its beginning, for schemas and skills alike."""

from __future__ import annotations

from collections.abc import Sequence

from emberflow.agents.models.chat_message import ChatMessage, MessageRole


def leading_system_messages(messages: Sequence[ChatMessage]) -> int:
    """How many system messages a chat begins with."""
    others = (at for at, message in enumerate(messages) if message.role is not MessageRole.SYSTEM)
    return next(others, len(messages))


def with_system_message(messages: Sequence[ChatMessage], text: str) -> list[ChatMessage]:
    """The chat with one more instruction, after those at its beginning."""
    at = leading_system_messages(messages)
    return [*messages[:at], ChatMessage(role=MessageRole.SYSTEM, content=text), *messages[at:]]
