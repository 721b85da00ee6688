"""The result of a tool as text for the model, and as plain data for events."""

from __future__ import annotations

import json
from typing import Any

from emberflow.agents.models.unsendable import surrogate_in
from emberflow.errors import NotSerializable, shorten
from emberflow.events.model_shape import plain

MOST_CHARACTERS = 200_000
"""No model reads more of one result, and an event with the results must not become too large."""


def result_of(tool: str, value: Any) -> dict[str, Any]:
    """`value` as plain data, with `text` if that differs from it; `error` for a value that has no such form."""
    try:
        data, text = _as_text(value)
    except Exception as error:
        return {"error": _no_text(tool, value, error)}
    if len(text) > MOST_CHARACTERS:
        left_out = len(text) - MOST_CHARACTERS
        return {"value": f"{text[:MOST_CHARACTERS]}\n[{left_out:,} more characters were left out]"}
    return {"value": data} if data is text else {"value": data, "text": text}


def shown(tool: str, value: Any) -> tuple[Any, str]:
    """The value in an event with results as plain data, and as the text that the model receives."""
    try:
        return _as_text(value)
    except Exception as error:
        text = f"Error: {_no_text(tool, value, error)}"
        return text, text


def _as_text(value: Any) -> tuple[Any, str]:
    data = plain(value, mode="json", fallback=_described)
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    # No service could be sent it.
    text.encode()
    return data, text


def _no_text(tool: str, value: Any, error: Exception) -> str:
    if isinstance(error, UnicodeEncodeError):
        return f"the tool {tool!r} returned text that cannot be encoded as UTF-8: it contains {surrogate_in(error)}"
    return f"the tool {tool!r} returned a {type(value).__name__}, which cannot be converted to text"


def _described(value: Any) -> str:
    """The text of an object whose class defines one."""
    kind: type[Any] = value.__class__
    if isinstance(value, BaseException) or (
        kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__
    ):
        raise NotSerializable(f"{shorten(value)} cannot be converted to text")
    text = str(value)
    if text.startswith("<") and " at 0x" in text:
        # An address says nothing, and differs when the call is repeated.
        raise NotSerializable(f"{shorten(value)} cannot be converted to text")
    return text
