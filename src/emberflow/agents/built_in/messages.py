"""Messages of a chat in the forms in which they are given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from emberflow.agents.models.chat_message import ChatMessage
from emberflow.errors import InvalidArgument, shorten


def as_messages(given: Any) -> list[ChatMessage]:
    """A string is a message of the user; a dictionary is a message as plain data. Raises InvalidArgument."""
    if isinstance(given, str):
        return [ChatMessage(content=given)]
    if isinstance(given, ChatMessage):
        return [given]
    if not isinstance(given, Iterable) or isinstance(given, dict | bytes):
        raise InvalidArgument(
            f"messages must be a string or a list of ChatMessage, got {shorten(cast('object', given))}",
            way_out="ctx.chat('model', 'the question'), or [ChatMessage(...), ...]",
        )
    return [_as_message(item) for item in cast("Iterable[Any]", given)]


def _as_message(item: Any) -> ChatMessage:
    if isinstance(item, ChatMessage):
        return item
    if isinstance(item, dict):
        return ChatMessage.from_dict(item)
    if isinstance(item, str):
        return ChatMessage(content=item)
    raise InvalidArgument(
        f"{shorten(item)} is not a message", way_out="ChatMessage(role='user', content='the question')"
    )
