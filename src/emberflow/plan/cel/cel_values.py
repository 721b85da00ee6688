"""Python values for trigger expressions: dataclasses, Pydantic models and other objects become maps of fields."""

from __future__ import annotations

import dataclasses
import datetime
import numbers
import uuid
from collections.abc import Mapping
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from pathlib import PurePath
from typing import Any

from emberflow.events.agent_events import Event

PLAIN = frozenset([str, int, float, bool, type(None), bytes, datetime.datetime, datetime.timedelta])
MISSING: Any = object()


class NotReadable(Exception):
    """A value that an expression cannot read; the message names its class."""


def member(value: Any, name: str) -> Any:
    """`value.name` in an expression; MISSING if there is none. Calls nothing of the value but properties."""
    kind: Any = value.__class__
    if kind is dict:
        return value.get(name, MISSING)
    if issubclass(kind, Mapping):
        try:
            return value[name]
        except KeyError:
            return MISSING
    if kind in PLAIN:
        return MISSING
    if isinstance(value, Event):
        return member(value.attributes, name)
    fields = _fields(kind)
    if fields is None:
        return MISSING if name.startswith("_") else getattr(value, "__dict__", {}).get(name, MISSING)
    if name in fields:
        return getattr(value, name, MISSING)
    # A Pydantic model may have more fields than it declares.
    extra: dict[str, Any] | None = getattr(value, "model_extra", None)
    return extra.get(name, MISSING) if isinstance(extra, dict) else MISSING


def plain(value: Any) -> Any:
    """Converts a value for the CEL package; raises NotReadable."""
    kind: Any = value.__class__
    if kind in PLAIN:
        return value
    if issubclass(kind, Mapping):
        return {plain(name): plain(item) for name, item in value.items()}
    fields = _fields(kind)
    if fields is None and issubclass(kind, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, Event):
        return plain(value.attributes)
    if fields is not None:
        extra: Any = getattr(value, "model_extra", None) or {}
        return {**{name: plain(getattr(value, name)) for name in fields}, **plain(dict(extra))}
    return _scalar(value, kind)


def _scalar(value: Any, kind: type[Any]) -> Any:
    if isinstance(value, (datetime.datetime, datetime.timedelta)):
        return value
    for known, turn in _SCALARS:
        if isinstance(value, known):
            return turn(value)
    # numpy arrays and scalars.
    if callable(getattr(value, "tolist", None)):
        return plain(value.tolist())
    own: dict[str, Any] | None = getattr(value, "__dict__", None)
    if own:
        return {name: plain(item) for name, item in own.items() if not name.startswith("_")}
    raise NotReadable(f"a {kind.__module__}.{kind.__qualname__}")


# Dates compare correctly as strings.
_SCALARS: tuple[tuple[Any, Any], ...] = (
    (str, str),
    (bytes, bytes),
    (bytearray, bytes),
    (datetime.date, str),
    (numbers.Integral, int),
    ((numbers.Real, Decimal), float),
    ((uuid.UUID, PurePath), str),
)


@lru_cache(maxsize=1024)
def _fields(kind: type[Any]) -> tuple[str, ...] | None:
    """The declared fields of a dataclass, Pydantic model or named tuple; None for other classes."""
    if dataclasses.is_dataclass(kind):
        return tuple(item.name for item in dataclasses.fields(kind))
    declared: Any = getattr(kind, "model_fields", None)
    if isinstance(declared, dict):
        return tuple(str(name) for name in declared)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    named: Any = getattr(kind, "_fields", None)
    if issubclass(kind, tuple) and isinstance(named, tuple):
        return tuple(str(name) for name in named)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return None
