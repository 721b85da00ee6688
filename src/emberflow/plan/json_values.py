"""Any value inside a plan that is stored as JSON: plain data unchanged, everything else pickled and marked as such."""

from __future__ import annotations

import base64
from enum import Enum
from types import FunctionType
from typing import Any

from emberflow.events.codecs import decode, encode
from emberflow.plan import json_functions
from emberflow.plan.agents.resources import Secret

_MARK = "$emberflow"


def to_json_value(value: Any) -> Any:
    kind: Any = value.__class__
    if value is None or kind in (str, int, float, bool):
        return value
    if kind is list:
        return [to_json_value(item) for item in value]
    if kind is dict and all(type(name) is str and name != _MARK for name in value):
        return {name: to_json_value(item) for name, item in value.items()}
    if kind is tuple:
        return {_MARK: "tuple", "items": [to_json_value(item) for item in value]}
    if kind is dict:
        pairs = [[to_json_value(name), to_json_value(item)] for name, item in value.items()]
        return {_MARK: "dict", "items": pairs}
    if isinstance(value, Secret):
        # Where the secret is found, never its value.
        return {_MARK: "secret", "name": value.name, "file": value.file}
    if isinstance(value, (FunctionType, type)):
        named: Any = value
        return {_MARK: "function", **json_functions.to_json(named)}
    shown = f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(value, Enum):
        shown = f"{shown}.{value.name}"
    return {_MARK: "value", "of": shown, "data": base64.b64encode(encode(value)).decode()}


def from_json_value(value: Any) -> Any:
    """Loads a value written by `to_json_value`. Unpickles: load only plans that you trust."""
    if isinstance(value, list):
        return [from_json_value(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
    mark = found.get(_MARK)
    if mark == "secret":
        return Secret(found["name"], found["file"])
    if mark == "tuple":
        return tuple(from_json_value(item) for item in found["items"])
    if mark == "dict":
        return {from_json_value(name): from_json_value(item) for name, item in found["items"]}
    if mark == "function":
        return json_functions.from_json(found)
    if mark == "value":
        return decode(base64.b64decode(found["data"]))
    return {name: from_json_value(item) for name, item in found.items()}
