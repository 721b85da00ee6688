"""Content that MCP servers send, as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def plain_item(item: Any) -> Any:
    """Text as a string; an image, sound or resource as a dictionary with its `type`, as Flink Agents does."""
    kind: Any = getattr(item, "type", None)
    if kind == "text":
        return item.text
    if kind in ("image", "audio"):
        return {"type": kind, "data": item.data, "mimeType": item.mime_type}
    if kind == "resource":
        held = item.resource
        body = {"text": held.text} if hasattr(held, "text") else {"blob": held.blob}
        return {"type": "resource", "uri": str(held.uri), **body}
    return item.model_dump(mode="json", exclude_none=True)


def plain_content(items: Iterable[Any]) -> Any:
    """One string if everything is text, otherwise a list of items."""
    made = [plain_item(item) for item in items]
    return "\n".join(made) if all(isinstance(item, str) for item in made) else made
