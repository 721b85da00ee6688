"""Events about memory: what an action read and wrote, and what short-term memory contained when a run began.

The operator sends them (`operators/agents/memory_observation.py`); actions, listeners and the event log see them like any
other event. The names are Flink Agents'. Those of long-term memory have classes only: there is no long-term memory yet.
"""

from __future__ import annotations

import base64
import json
from typing import Any, ClassVar, Self, cast

from emberflow.errors import EmberflowError, InvalidArgument, describe_cause, shorten
from emberflow.events.agent_events import Event, EventType
from emberflow.events.model_shape import plain
from emberflow.events.stored_types import stored_type


def json_value(value: Any) -> Any:
    """The value as JSON has it; bytes become base64. Raises InvalidArgument for a value without such a form."""
    try:
        return json.loads(json.dumps(value, ensure_ascii=False, allow_nan=False, default=_encoded))
    except (TypeError, ValueError, RecursionError, EmberflowError) as error:
        raise InvalidArgument(
            f"a memory event cannot contain {shorten(value)}", cause=describe_cause(error)
        ) from error


def _encoded(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(bytes(value)).decode("ascii")
    return plain(value, mode="json")


def _attributes(key: Any, value: Any) -> dict[str, Any]:
    if not isinstance(key, str):
        raise InvalidArgument(f"the key of a memory event must be a string, got {shorten(key)}")
    if not isinstance(value, dict):
        raise InvalidArgument(f"the value of a memory event must be a dictionary, got {shorten(value)}")
    return {"key": key, "value": json_value(cast("dict[Any, Any]", value))}


class _Observation(Event):
    ATTRIBUTES: ClassVar[tuple[str, ...]] = ("key", "value")

    def __init_subclass__(cls, init: bool = True, **kwargs: Any) -> None:
        """`init=False` tells type checkers that a subclass has the `__init__` of this class."""
        super().__init_subclass__(**kwargs)

    def __init__(self, *, key: str, value: dict[str, Any]) -> None:
        self.attributes: dict[str, Any] = _attributes(key, value)

    @classmethod
    def of_json(cls, key: str, value: dict[str, Any]) -> Self:
        """An event whose value is in the form of JSON already."""
        made = cls.__new__(cls)
        made.attributes = {"key": key, "value": value}
        return made

    @classmethod
    def from_event(cls, event: Event) -> Self:
        """The same event as an instance of this class; raises `InvalidArgument` for an event of another type."""
        if isinstance(event, cls):
            return event
        if event.type != cls.EVENT_TYPE:
            raise InvalidArgument(f"expected an event of type {cls.EVENT_TYPE!r}, got {event.type!r}")
        given: dict[str, Any] = {name: event.attributes.get(name) for name in cls.ATTRIBUTES}
        return cls(**given).reconstruct_from(event)

    @property
    def key(self) -> str:
        """The key of the input, as text."""
        return self.attributes["key"]

    @property
    def value(self) -> dict[str, Any]:
        """Values by their paths in memory."""
        return self.attributes["value"]


class MemoryEvent(_Observation):
    """What one action read or wrote; the last value of each path. Use one of the subclasses."""

    def __init__(self, *, key: str, value: dict[str, Any]) -> None:
        if type(self) is MemoryEvent:
            raise InvalidArgument(
                "a MemoryEvent has no type of its own", way_out="use a subclass, such as ShortTermWriteEvent"
            )
        super().__init__(key=key, value=value)

    @classmethod
    def is_memory_type(cls, type: str | None) -> bool:
        """Whether this is one of the seven types of memory events."""
        return type in MEMORY_EVENTS

    @classmethod
    def from_event(cls, event: Event) -> Self:
        """The same event as an instance of its class; raises `InvalidArgument` if it is not a memory event."""
        if cls is not MemoryEvent or isinstance(event, MemoryEvent):
            return super().from_event(event)
        if event.type not in MEMORY_EVENTS:
            raise InvalidArgument(f"expected a memory event, got {event.type!r}")
        return cast("Self", MEMORY_EVENTS[event.type].from_event(event))


@stored_type()
class ShortTermWriteEvent(MemoryEvent, init=False):
    """An action wrote short-term memory. A path that was deleted, or that became a nested object, has the value None."""

    EVENT_TYPE: ClassVar[str] = EventType.ShortTermWriteEvent


@stored_type()
class ShortTermReadEvent(MemoryEvent, init=False):
    """An action read short-term memory."""

    EVENT_TYPE: ClassVar[str] = EventType.ShortTermReadEvent


@stored_type()
class SensoryWriteEvent(MemoryEvent, init=False):
    """An action wrote sensory memory."""

    EVENT_TYPE: ClassVar[str] = EventType.SensoryWriteEvent


@stored_type()
class SensoryReadEvent(MemoryEvent, init=False):
    """An action read sensory memory."""

    EVENT_TYPE: ClassVar[str] = EventType.SensoryReadEvent


@stored_type()
class LongTermUpdateEvent(MemoryEvent):
    """Items that were added, changed or deleted, by memory set. Not sent yet: there is no long-term memory."""

    EVENT_TYPE: ClassVar[str] = EventType.LongTermUpdateEvent
    ATTRIBUTES: ClassVar[tuple[str, ...]] = ("key", "value", "cleared_sets")

    def __init__(self, *, key: str, value: dict[str, Any], cleared_sets: list[str] | None = None) -> None:
        super().__init__(key=key, value=value)
        given: Any = [] if cleared_sets is None else cleared_sets
        if not isinstance(given, list) or not all(
            isinstance(name, str) for name in cast("list[object]", given)
        ):
            raise InvalidArgument(f"cleared_sets must be a list of names, got {shorten(cleared_sets)}")
        self.attributes["cleared_sets"] = [*cast("list[str]", given)]

    @property
    def cleared_sets(self) -> list[str]:
        """Memory sets that were emptied before the other changes."""
        return self.attributes.get("cleared_sets") or []


@stored_type()
class LongTermGetEvent(MemoryEvent, init=False):
    """Items that were read from long-term memory by their ids. Not sent yet: there is no long-term memory."""

    EVENT_TYPE: ClassVar[str] = EventType.LongTermGetEvent


@stored_type()
class LongTermSearchEvent(MemoryEvent, init=False):
    """What searches of long-term memory found. Not sent yet: there is no long-term memory."""

    EVENT_TYPE: ClassVar[str] = EventType.LongTermSearchEvent

    @property
    def results(self) -> dict[str, dict[str, list[dict[str, Any]]]]:
        """Memory set -> query -> hits in order."""
        return self.attributes["value"]


@stored_type()
class AgentRunBeginEvent(_Observation, init=False):
    """A run begins. `value` has the values in short-term memory by their paths; sent with the option `agent-run.begin-event`."""

    EVENT_TYPE: ClassVar[str] = EventType.AgentRunBeginEvent


MEMORY_EVENTS: dict[str, type[MemoryEvent]] = {
    kind.EVENT_TYPE: kind
    for kind in (
        ShortTermWriteEvent,
        ShortTermReadEvent,
        SensoryWriteEvent,
        SensoryReadEvent,
        LongTermUpdateEvent,
        LongTermGetEvent,
        LongTermSearchEvent,
    )
}
"""By type."""
