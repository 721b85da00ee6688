"""Values as they would be after a journey as JSON: what Flink Agents' programs find in events, whatever was put in.

Used for inputs and attributes of events if the option `events.as-json` is set.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import Any, cast

from emberflow.errors import NotSerializable
from emberflow.events.copies import copied, walked_copy
from emberflow.events.model_shape import ModelShape, is_model, plain, rows_from_plain
from emberflow.events.types.row import Row


def json_value(value: Any) -> Any:
    """A copy with dictionaries instead of models and dataclasses, lists instead of tuples and sets, text instead of dates,
    UUIDs, enums and bytes. Rows remain rows, and messages, images and references to memory what they are: they can be read
    like dictionaries. So does what JSON cannot represent, which Flink Agents rejects."""
    try:
        return _walked(value)
    except RecursionError:
        # Nested too deeply, or a value that contains itself.
        return copied(value)


def _walked(value: Any) -> Any:
    kind: Any = value.__class__
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is dict:
        return _dictionary(value)
    if kind is list or kind is tuple:
        return [_walked(item) for item in value]
    if kind is Row:
        return value._shape(tuple([_walked(item) for item in value._values]))
    if isinstance(value, ModelShape):
        return _shaped(value)
    if is_model(kind):
        return rows_from_plain(_as_json(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: _walked(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, (tuple, set, frozenset)):
        return [_walked(item) for item in cast("tuple[Any, ...]", value)]
    return _as_json(value)


def json_attributes(attributes: dict[Any, Any]) -> dict[str, Any]:
    """The attributes of an event, each as `json_value`."""
    return {_name(name): json_value(item) for name, item in attributes.items()}


def _dictionary(value: dict[Any, Any]) -> Any:
    made = {_name(name): _walked(item) for name, item in value.items()}
    return rows_from_plain(made) if made.get("type") == "Row" else made


def _name(name: Any) -> str:
    if name.__class__ is str:
        return name
    if isinstance(name, tuple):
        return ",".join(str(item) for item in cast("tuple[Any, ...]", name))
    return str(None) if name is None else next(iter(plain({name: None}, mode="json")))


def _shaped(value: ModelShape) -> Any:
    """One of our values, whose dictionaries and lists become plain data."""
    if not dataclasses.is_dataclass(value):
        return walked_copy(value)
    made = copy.copy(value)
    for item in dataclasses.fields(value):
        held = getattr(value, item.name)
        if held.__class__ is dict or held.__class__ is list:
            # Most of them are frozen, for their users.
            object.__setattr__(made, item.name, _walked(held))
    return made


def _as_json(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray)) and not _is_text(value):
        return bytes(value)
    try:
        return plain(value, mode="json")
    except (NotSerializable, ValueError, TypeError):
        return walked_copy(value)


def _is_text(value: bytes | bytearray) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
