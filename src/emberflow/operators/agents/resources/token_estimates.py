"""How many tokens a text has, roughly: services count differently, and only when they are asked.

For limits of tokens per minute, and for chats that are shortened to what a model can read.
"""

from __future__ import annotations

import json
from typing import Any, cast

CHARACTERS_PER_TOKEN = 4
_PER_MESSAGE = 4
"""Tokens that a message costs besides its text."""


def estimated_tokens(value: Any) -> float:
    """The tokens in the texts and messages of a value. A message counts with the calls of tools that it asks for."""
    if isinstance(value, str):
        return len(value) / CHARACTERS_PER_TOKEN
    if isinstance(value, dict):
        return sum(map(estimated_tokens, cast("dict[Any, Any]", value).values()))
    if isinstance(value, list | tuple):
        return sum(map(estimated_tokens, cast("list[Any]", value)))
    content: Any = getattr(value, "content", None)
    if not isinstance(content, str):
        return 0.0
    size = len(content)
    calls: Any = getattr(value, "tool_calls", None)
    if calls:
        size += len(json.dumps(calls, default=str))
    return size / CHARACTERS_PER_TOKEN + _PER_MESSAGE
