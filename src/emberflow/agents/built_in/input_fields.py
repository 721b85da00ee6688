"""An agent's input as values for the placeholders of a prompt, and as text."""

from __future__ import annotations

import json
from typing import Any, cast

from emberflow.events.model_shape import plain
from emberflow.events.types.row import Row


def fields_of_input(value: Any) -> dict[str, Any]:
    """The fields of a dictionary, a row or an object; `input` for a single value."""
    if value is None or isinstance(value, str | int | float | bool):
        return {"input": value}
    if isinstance(value, Row):
        return value.as_dict(recursive=True)
    made: Any = plain(value)
    found = cast("dict[Any, Any]", made if isinstance(made, dict) else getattr(value, "__dict__", {}))
    return {"input": text_of_input(value), **{str(name): item for name, item in found.items()}}


def text_of_input(value: Any) -> str:
    """A single value as it is written, anything else as JSON."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, int | float | bool):
        return str(value)
    data: Any = value.as_dict(recursive=True) if isinstance(value, Row) else value
    return json.dumps(plain(data, mode="json", fallback=str), ensure_ascii=False)
