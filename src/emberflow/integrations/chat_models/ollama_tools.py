"""Descriptions of tools as Ollama's client sends them.

Of a parameter it keeps the type, the elements of an array, the values of an enum and the description, and drops everything else:
the fields of an object, and both types of `str | None`. What would be lost is expressed by what it keeps.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from emberflow.agents.tools.function_tool import Tool
from emberflow.integrations.chat_models.openai_format import tool_data

Data = dict[str, Any]

_KEPT = frozenset({"type", "items", "enum", "description"})
# Of no use to a model that has the rest.
_NOT_NEEDED = frozenset({"title", "default"})


def ollama_tool(tool: Tool) -> Data:
    """The tool, of which the model sees everything that its schema says."""
    data = tool_data(tool)
    function: Data = data["function"]
    parameters: Data = function["parameters"]
    properties: Mapping[str, Data] = parameters.get("properties") or {}
    kept = {name: _kept(schema) for name, schema in properties.items()}
    return {**data, "function": {**function, "parameters": {**parameters, "properties": kept}}}


def _kept(schema: Data) -> Data:
    types = _types(schema.get("anyOf"))
    made = {name: value for name, value in schema.items() if name in _KEPT}
    if types is not None:
        return {**made, "type": types}
    lost = {name: value for name, value in schema.items() if name not in _KEPT | _NOT_NEEDED}
    if not lost:
        return made
    whole = {name: value for name, value in schema.items() if name not in ("description", *_NOT_NEEDED)}
    said = f"JSON Schema: {json.dumps(whole, ensure_ascii=False)}"
    told = str(schema.get("description") or "")
    return {**made, "description": f"{told}\n{said}" if told else said}


def _types(choices: Any) -> list[str] | None:
    """The types of `str | None`; None if there is more to say."""
    found: list[str] = []
    for choice in cast("list[Data]", choices or ()):
        kind = choice.get("type")
        if not isinstance(kind, str) or set(choice) - _NOT_NEEDED - {"type"}:
            return None
        found.append(kind)
    return found or None
