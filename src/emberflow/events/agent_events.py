"""The events of agents: `Event`, the built-in `InputEvent` and `OutputEvent`, and users' own event classes.

An event class with annotated fields is a dataclass of its fields:

    class Scored(Event):
        score: int
        reason: str = ""

The operator assigns ids when an event is sent: they are derived from (key, input, ordinal), so a repeated run produces
the same ids, and two events with equal contents never share one. An id that is read before is assigned then
(`events/event_ids.py`).

Events have the methods of pydantic models (`events/model_shape.py`), without being models.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, dataclass_transform, get_type_hints
from uuid import UUID

from emberflow.errors import InvalidAgent, InvalidArgument, shorten
from emberflow.events.event_ids import EventId
from emberflow.events.model_shape import ModelShape, rows_from_plain, without_models
from emberflow.events.stored_types import stored_type

E = TypeVar("E", bound="Event")


_TAKEN = ("id", "type", "attributes", "upstream_event_id", "upstream_action_name")
_ALIASES = {"upstream_event_id": "upstreamEventId", "upstream_action_name": "upstreamActionName"}


def _is_class_variable(hint: Any) -> bool:
    return "ClassVar" in (hint if isinstance(hint, str) else str(hint))


@functools.cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(item.name for item in dataclasses.fields(kind))


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    try:
        return get_type_hints(kind)
    except Exception:
        # Annotations of events are for readers; only those that can be resolved convert anything.
        return {}


@stored_type()
@dataclass_transform(eq_default=False, field_specifiers=(dataclasses.field,))
class Event(ModelShape):
    """`type` determines which actions it triggers; `attributes` is its content."""

    EVENT_TYPE: ClassVar[str] = ""
    _shape_aliases: ClassVar[Mapping[str, str]] = _ALIASES
    # Not annotated as fields: they belong to the occurrence, not to what an event class declares.
    if TYPE_CHECKING:
        id = ""
        upstream_event_id: str | None
        upstream_action_name: str | None
    else:
        id = EventId()
        upstream_event_id = None
        upstream_action_name = None
    type = ""

    def __init__(
        self, type: str, attributes: dict[str, Any] | None = None, id: str | UUID | None = None, **extra: Any
    ) -> None:
        if not type:
            raise InvalidArgument(
                "an event needs a type", way_out="Event(type='order_placed', attributes={...})"
            )
        if attributes is not None and not isinstance(attributes, dict):
            raise InvalidArgument(
                f"the attributes of the event {type!r} are {shorten(attributes)}; they must be a dictionary",
                way_out="Event(type='order_placed', attributes={'order': 3})",
            )
        self.type = type
        self.attributes = {} if attributes is None else attributes
        if id:
            self.id = str(id)
        if extra:
            self._take_extra(extra)

    def _take_extra(self, extra: dict[str, Any]) -> None:
        """Properties beside the attributes, as Flink Agents allows them, and the event that caused this one."""
        names = {alias: name for name, alias in _ALIASES.items()}
        for given, value in extra.items():
            name = names.get(given, given)
            near = [] if name in _TAKEN else get_close_matches(name, _TAKEN, 1, 0.8)
            if near:
                raise InvalidArgument(
                    f"an event has no {given!r}; did you mean {near[0]!r}?",
                    way_out="give a property of your own a name that is less like it",
                )
            self.__dict__[name] = value

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "EVENT_TYPE" not in cls.__dict__:
            setattr(cls, "EVENT_TYPE", cls.__name__)  # noqa: B010 - a constant of the subclass
        cls.type = cls.EVENT_TYPE
        declared = [
            name for name, hint in inspect.get_annotations(cls).items() if not _is_class_variable(hint)
        ]
        taken = [name for name in declared if name in _TAKEN]
        if taken:
            raise InvalidAgent(
                f"the event class {cls.__name__} declares a field {taken[0]!r}, which every event already has",
                way_out=f"rename the field, e.g. to {cls.__name__.lower()}_{taken[0]}",
            )
        if "__init__" not in cls.__dict__ and (declared or cls.__init__ is Event.__init__):
            dataclasses.dataclass(eq=False, repr=False)(cls)

    def __getattr__(self, name: str) -> Any:
        # Only reached for event classes with fields: their attributes are their fields.
        if name == "attributes" and dataclasses.is_dataclass(self):
            found = self.__dict__
            return {
                name: without_models(found[name] if name in found else getattr(self, name))
                for name in _names(type(self))
            }
        raise AttributeError(f"{type(self).__name__!r} event has no attribute {name!r}", name=name, obj=self)

    def get_type(self) -> str:
        """The type, which determines the actions that the event triggers."""
        return self.type

    def get_attr(self, name: str) -> Any:
        """An attribute by name; None if there is none."""
        return self.attributes.get(name)

    def set_attr(self, name: str, value: Any) -> None:
        """Sets an attribute by name."""
        if dataclasses.is_dataclass(self):
            setattr(self, name, value)
        else:
            self.attributes[name] = value

    @classmethod
    def from_event(cls: type[E], event: Event) -> E:
        """The same occurrence as an instance of this class; raises `InvalidArgument` if an attribute is missing."""
        if cls is Event or isinstance(event, cls):
            return event  # pyright: ignore[reportReturnType]
        made: Any = cls.__new__(cls)
        if dataclasses.is_dataclass(cls):
            attributes = event.attributes
            made = cls(
                **{item.name: _typed(cls, item.name, attributes[item.name]) for item in _given(cls, event)}
            )
        else:
            made.type = event.type
            made.attributes = event.attributes
        return made.reconstruct_from(event)

    def reconstruct_from(self: E, source: Event) -> E:
        """Takes over the identity of the event that this one was converted from."""
        self.id = source.id
        self.upstream_event_id = source.upstream_event_id
        self.upstream_action_name = source.upstream_action_name
        return self

    @classmethod
    def from_json(cls, json_str: str) -> Self:
        """Reads an event from JSON; raises `InvalidArgument`."""
        try:
            return cls.model_validate_json(json_str)
        except InvalidArgument as error:
            raise InvalidArgument("this is not an event in JSON", cause=error.message) from error

    def _shape_fields(self) -> dict[str, Any]:
        fields = {"id": self.id, "type": self.type, "attributes": self.attributes, **self._extra()}
        for name, alias in _ALIASES.items():
            # Left out if there is none, and named as in Flink Agents' JSON.
            if getattr(self, name):
                fields[alias] = getattr(self, name)
        return fields

    def _extra(self) -> dict[str, Any]:
        """Properties beside the attributes."""
        declared = _names(type(self)) if dataclasses.is_dataclass(self) else ()
        return {
            name: value
            for name, value in self.__dict__.items()
            if name not in _TAKEN and name not in declared
        }

    @classmethod
    def _from_shape(cls, fields: dict[str, Any]) -> Self:
        data = dict(fields)
        kind = data.pop("type", None) or cls.EVENT_TYPE
        if not isinstance(kind, str) or not kind:
            raise InvalidArgument(
                f"this is not an event: {shorten(fields)}", cause="it needs a type, which is a string"
            )
        if "attributes" in data or not dataclasses.is_dataclass(cls):
            attributes: Any = data.pop("attributes", None) or {}
        else:
            attributes = {name: data.pop(name) for name in _names(cls) if name in data}
        if not isinstance(attributes, dict):
            raise InvalidArgument(f"the attributes of an event are a dictionary, got {shorten(attributes)}")
        event = Event(kind, rows_from_plain(attributes), **data)
        return event if cls is Event else cls.from_event(event)  # pyright: ignore[reportReturnType]

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some fields replaced, as pydantic makes it; not validated. `deep` copies the attributes too."""
        made = super().model_copy(deep=deep)
        for name, value in (update or {}).items():
            setattr(made, name, value)
        return made

    def __eq__(self, other: object) -> bool:
        """Equal in type and contents; ids are ignored."""
        if not isinstance(other, Event):
            return NotImplemented
        if self.type != other.type or self.attributes != other.attributes:
            return False
        return self._extra() == other._extra()

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.attributes.items())
        kind = type(self).__name__
        return f"Event({self.type!r}, {shown})" if kind == "Event" else f"{kind}({shown})"


@stored_type()
class InputEvent(Event):
    """A record that arrived at the agent."""

    EVENT_TYPE: ClassVar[str] = "_input_event"

    def __init__(self, input: Any) -> None:
        self.attributes = {"input": input}

    @property
    def input(self) -> Any:
        """The record that started the run."""
        return self.attributes["input"]


@stored_type()
class OutputEvent(Event):
    """Sends its output downstream, with the input's timestamp."""

    EVENT_TYPE: ClassVar[str] = "_output_event"

    def __init__(self, output: Any) -> None:
        self.attributes = {"output": output}

    @property
    def output(self) -> Any:
        """The value that is emitted downstream."""
        return self.attributes["output"]


@stored_type()
class ErrorEvent(Event):
    """An action has failed permanently. An agent with an action for this event handles the error itself."""

    EVENT_TYPE: ClassVar[str] = "_error_event"

    def __init__(self, action: str, event: Event, error_type: str, message: str, attempts: int = 1) -> None:
        self.attributes: dict[str, Any] = {
            "action": action,
            "event": event,
            "error_type": error_type,
            "message": message,
            "attempts": attempts,
        }

    @property
    def action(self) -> str:
        """The action that failed."""
        return self.attributes["action"]

    @property
    def event(self) -> Event:
        """The event that triggered the action."""
        return self.attributes["event"]

    @property
    def error_type(self) -> str:
        """The name of the exception's class."""
        return self.attributes["error_type"]

    @property
    def message(self) -> str:
        """The error message."""
        return self.attributes["message"]

    @property
    def attempts(self) -> int:
        """The number of attempts."""
        return self.attributes["attempts"]


class EventType:
    """The built-in types by name, for `@action(EventType.InputEvent)` and for expressions."""

    InputEvent = InputEvent.EVENT_TYPE
    OutputEvent = OutputEvent.EVENT_TYPE
    ErrorEvent = ErrorEvent.EVENT_TYPE
    # Their classes are in `agents/built_in/`.
    ChatRequestEvent = "_chat_request_event"
    ChatResponseEvent = "_chat_response_event"
    ToolRequestEvent = "_tool_request_event"
    ToolResponseEvent = "_tool_response_event"
    # Their classes are in `events/memory_events.py`.
    ShortTermWriteEvent = "_short_term_write_event"
    ShortTermReadEvent = "_short_term_read_event"
    SensoryWriteEvent = "_sensory_write_event"
    SensoryReadEvent = "_sensory_read_event"
    LongTermUpdateEvent = "_long_term_update_event"
    LongTermGetEvent = "_long_term_get_event"
    LongTermSearchEvent = "_long_term_search_event"
    AgentRunBeginEvent = "_agent_run_begin_event"


def fields_of(kind: type[Event]) -> list[str] | None:
    """The attributes an event class declares; None if it may have any."""
    if kind in (InputEvent, OutputEvent):
        return ["input"] if kind is InputEvent else ["output"]
    if kind is ErrorEvent:
        return ["action", "event", "error_type", "message", "attempts"]
    if dataclasses.is_dataclass(kind):
        return [item.name for item in dataclasses.fields(kind)]
    declared: tuple[str, ...] | None = getattr(kind, "ATTRIBUTES", None)
    return None if declared is None else [*declared]


def _typed(kind: Any, name: str, value: Any) -> Any:
    """The value of an attribute as the event class declares it: plain data becomes a model again."""
    if value.__class__ is dict:
        validate: Any = getattr(_hints(kind).get(name), "model_validate", None)
        if validate is not None:
            return validate(value)
    return value


def _given(kind: Any, event: Event) -> list[dataclasses.Field[Any]]:
    given: list[dataclasses.Field[Any]] = []
    for item in dataclasses.fields(kind):
        if item.name in event.attributes:
            given.append(item)
        elif item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING:
            raise InvalidArgument(
                f"an event of type {event.type!r} has no attribute {item.name!r}, which {kind.__name__} needs",
                cause=f"its attributes: {', '.join(map(repr, event.attributes)) or 'none'}",
                way_out=f"send a {kind.__name__}, or an Event with all of its attributes",
            )
    return given
