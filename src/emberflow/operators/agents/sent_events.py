"""An event as it is sent: checked, and copied so that later changes by its sender have no effect.

The size check and the copy both traverse the event, on the hottest path of an agent. Plain events are handled in one
traversal; unusual or invalid ones go through `check_event`, which reports what is wrong, and `copied_event`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from emberflow.errors import NotSerializable
from emberflow.events.agent_events import Event, OutputEvent
from emberflow.events.copies import UNCHANGEABLE, copied_event, is_plain_event, plain_copy, walked_copy
from emberflow.events.json_values import json_attributes
from emberflow.operators.agents.action_errors import check_event
from emberflow.state.sizes import FIXED_SIZE, measure

E = TypeVar("E", bound=Event)
_OUTPUT = OutputEvent.EVENT_TYPE
_NEW: Any = object.__new__


def sent_copy(event: E, max_bytes: int, *, as_json: bool = False) -> E:
    """`as_json`: the attributes become what JSON can represent. Raises InvalidArgument or NotSerializable for an event that
    cannot be sent."""
    kind = event.__class__
    if as_json and is_plain_event(kind) and event.__dict__.get("attributes").__class__ is dict:
        given, event = event, _NEW(kind)
        event.__dict__ = {**given.__dict__, "attributes": json_attributes(given.attributes)}
    if is_plain_event(kind) and not (event.type == _OUTPUT and "output" not in event.attributes):
        try:
            fields = event.__dict__.copy()
            if _isolate(fields, walked_copy) <= max_bytes:
                made = _NEW(kind)
                made.__dict__ = fields
                return made
        except (NotSerializable, RecursionError):
            pass  # Reported properly below, or handled by pickle.
    check_event(event, max_bytes)
    return copied_event(event)


def _isolate(fields: dict[Any, Any], copy: Callable[[Any], Any]) -> int:
    """Replaces mutable values in a shallow copy by copies; returns the total size. Attributes are plain data: pydantic
    models in them become dictionaries. The fields of an event class keep their types."""
    size = 0
    for name, value in fields.items():
        kind = value.__class__
        size += len(name) if name.__class__ is str else measure(name)
        if kind is str:
            size += len(value)
        elif kind in FIXED_SIZE:
            size += 8
        elif kind is dict and name == "attributes":
            # One level deeper in the same traversal: most of an event is in its attributes.
            fields[name] = inner = value.copy()
            size += _isolate(inner, plain_copy)
        else:
            if kind not in UNCHANGEABLE:
                fields[name] = value = copy(value)
            size += measure(value)
    return size
