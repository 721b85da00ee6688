"""Stable names of our own classes in stored bytes: the registry of stored types.

pickle names a class by its module path, so moving a file would make every checkpoint unreadable. An object of a class
that is registered here is stored as a record instead: the class's stable name, the version of the record, and its fields
by name. The classes register themselves with `@stored_type`; `HOMES` says where each one is today, so that a process
that has not imported it yet finds it, and where it was in bytes of versions without stable names.

Rules: a name is never reused for another class. A new field has a default. Any other change of the fields needs a new
version and a `read` function that still reads the earlier ones.
"""

from __future__ import annotations

import copyreg
import dataclasses
import importlib
from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from emberflow.errors import CorruptData

_T = TypeVar("_T")


class Home(NamedTuple):
    """Where a class is."""

    module: str
    before: str
    """The module in bytes that were stored before the class had a stable name."""


def _stays(module: str) -> Home:
    return Home(module, module)


HOMES: dict[str, Home] = {
    "ActionOutcome": Home("emberflow.operators.agents.outcome", "emberflow.operators.agent_outcome"),
    "AgentRunBeginEvent": _stays("emberflow.events.memory_events"),
    "CallRecord": Home("emberflow.operators.agents.calls.durable_calls", "emberflow.operators.durable"),
    "ChatMessage": Home("emberflow.agents.models.chat_message", "emberflow.agents.chat_message"),
    "ChatRequestEvent": _stays("emberflow.agents.built_in.chat_events"),
    "ChatResponseEvent": _stays("emberflow.agents.built_in.chat_events"),
    "Checkpoint": Home(
        "emberflow.engines.local.checkpointing.checkpoints", "emberflow.engines.local.checkpoints"
    ),
    "CountWindow": _stays("emberflow.windowing.windows"),
    "Delayed": Home("emberflow.operators.agents.guards.delayed_events", "emberflow.operators.guard_timers"),
    "ErrorEvent": _stays("emberflow.events.agent_events"),
    "Event": _stays("emberflow.events.agent_events"),
    "Failure": Home("emberflow.operators.agents.guards.attempts", "emberflow.operators.agent_guards"),
    "FarTimers": _stays("emberflow.operators.far_timers"),
    "Fields": _stays("emberflow.state.pages"),
    "GlobalWindow": _stays("emberflow.windowing.windows"),
    "HumanAnswer": Home("emberflow.operators.agents.guards.questions", "emberflow.operators.guard_approvals"),
    "Image": Home("emberflow.agents.models.image", "emberflow.agents.image"),
    "InputEvent": _stays("emberflow.events.agent_events"),
    "Instant": _stays("emberflow.events.types.instant"),
    "ListKey": _stays("emberflow.events.list_keys"),
    "LongTermGetEvent": _stays("emberflow.events.memory_events"),
    "LongTermSearchEvent": _stays("emberflow.events.memory_events"),
    "LongTermUpdateEvent": _stays("emberflow.events.memory_events"),
    "MemoryRef": _stays("emberflow.state.memory_object"),
    "MessageRole": Home("emberflow.agents.models.chat_message", "emberflow.agents.chat_message"),
    "Node": _stays("emberflow.state.pages"),
    "OutputEvent": _stays("emberflow.events.agent_events"),
    "OutputSchema": Home("emberflow.agents.models.output_schema", "emberflow.agents.output_schema"),
    "PageRef": _stays("emberflow.state.pages"),
    "PagedList": _stays("emberflow.state.paged_list"),
    "PagedMap": _stays("emberflow.state.paged_map"),
    "RowShape": _stays("emberflow.events.types.row"),
    "SavedScope": _stays("emberflow.operators.scope"),
    "SensoryReadEvent": _stays("emberflow.events.memory_events"),
    "SensoryWriteEvent": _stays("emberflow.events.memory_events"),
    "SharedKey": _stays("emberflow.state.entry"),
    "ShortTermReadEvent": _stays("emberflow.events.memory_events"),
    "ShortTermWriteEvent": _stays("emberflow.events.memory_events"),
    "SourceState": Home(
        "emberflow.engines.local.checkpointing.checkpoints", "emberflow.engines.local.checkpoints"
    ),
    "StoredError": Home(
        "emberflow.operators.agents.calls.stored_errors", "emberflow.operators.stored_errors"
    ),
    "TimeWindow": Home("emberflow.windowing.windows", "emberflow.event_time.windows"),
    "TokenUsage": Home("emberflow.agents.models.token_usage", "emberflow.agents.token_usage"),
    "ToolRequestEvent": _stays("emberflow.agents.built_in.tool_events"),
    "ToolResponseEvent": _stays("emberflow.agents.built_in.tool_events"),
}
"""By stable name, which is the name of the class."""


MOVED: dict[str, tuple[str, ...]] = {
    "emberflow.agents.frame_transform": ("emberflow.agents.with_agent",),
    "emberflow.agents.models.chat_connection": ("emberflow.agents.chat_connection",),
    "emberflow.agents.models.chat_model": ("emberflow.agents.chat_model",),
    "emberflow.agents.models.model_shortcuts": ("emberflow.agents.model_shortcuts",),
    "emberflow.agents.models.prompt_text": ("emberflow.agents.prompt", "emberflow.agents.prompt_text"),
    "emberflow.agents.tools.function_tool": ("emberflow.agents.tool", "emberflow.agents.function_tool"),
    "emberflow.agents.tools.tool_injection": ("emberflow.agents.tool_injection",),
    "emberflow.connectors.files.file_sink": ("emberflow.connectors.file_sink",),
    "emberflow.connectors.files.file_sink_options": ("emberflow.connectors.file_sink_options",),
    "emberflow.connectors.files.file_source": ("emberflow.connectors.file_source",),
    "emberflow.connectors.files.stream_formats": ("emberflow.connectors.stream_formats",),
    "emberflow.events.types.type_information": ("emberflow.streams.types",),
    "emberflow.operators.agents.runner_context": ("emberflow.operators.runner_context",),
    "emberflow.operators.partitions.broadcast_state": ("emberflow.operators.broadcast_state",),
    "emberflow.operators.partitions.operator_state": ("emberflow.operators.operator_state",),
    "emberflow.plan.agents.agent_plan": ("emberflow.plan.agent_plan",),
    "emberflow.plan.agents.config": ("emberflow.plan.agent_config",),
    "emberflow.plan.agents.guards": ("emberflow.plan.agent_guards",),
    "emberflow.plan.agents.options": ("emberflow.plan.agent_options",),
    "emberflow.plan.agents.resources": ("emberflow.plan.resources",),
    "emberflow.plan.job_contract": ("emberflow.plan.job",),
    "emberflow.streams.functions.broadcast_functions": ("emberflow.streams.broadcast_functions",),
    "emberflow.streams.functions.checkpointed_function": ("emberflow.streams.checkpointed_function",),
    "emberflow.streams.functions.function": ("emberflow.streams.functions",),
    "emberflow.streams.functions.join_functions": ("emberflow.streams.join_functions",),
    "emberflow.streams.settings.checkpoint_config": ("emberflow.streams.checkpoint_config",),
    "emberflow.testing.committed_files": ("emberflow.testing.files",),
    "emberflow.testing.crashable_source": ("emberflow.testing.source",),
    "emberflow.windowing.assigners": ("emberflow.event_time.windows",),
}
"""Modules with public classes that are rarely stored: where they are, and where they were, the oldest first. A user's function that is
stored by value refers to the classes it uses, if only in an annotation such as `ctx: RunnerContext`."""


@dataclasses.dataclass(frozen=True, slots=True)
class StoredType:
    """A registered class."""

    kind: Any
    version: int
    read: Callable[[int, Any], Any]
    """version and fields -> object"""


_registered: dict[str, StoredType] = {}
_paths = {(home.before, name): home.module for name, home in HOMES.items()}
_moved_from = {before: module for module, earlier in MOVED.items() for before in earlier}


def stored_type(
    *,
    version: int = 1,
    write: Callable[[Any], Any] | None = None,
    read: Callable[[int, Any], Any] | None = None,
) -> Callable[[type[_T]], type[_T]]:
    """Registers a class. A dataclass needs no functions; for any other class `write` returns the fields and `read` creates
    the object from them. A class with neither is stored with its attributes, and may contain itself."""

    def register(kind: type[_T]) -> type[_T]:
        made: Any = kind
        name = kind.__name__
        if HOMES[name].module != kind.__module__:
            raise AssertionError(f"HOMES does not name {kind.__module__} for {name}")
        if write is not None and read is not None:
            reduce, reader = _by_functions(name, version, write), read
        elif dataclasses.is_dataclass(made):
            reduce, reader = _by_fields(name, version, made), _reader_of_fields(made)
        else:
            reduce, reader = _by_attributes(name, version), _without_attributes(made)
        _registered[name] = StoredType(made, version, reader)
        copyreg.pickle(kind, reduce)
        return kind

    return register


def stored_types() -> dict[str, StoredType]:
    """All registered types, imported."""
    for home in HOMES.values():
        importlib.import_module(home.module)
    return dict(sorted(_registered.items()))


def _stored(name: str, version: int, fields: Any = None) -> Any:
    """Called by stored bytes to create an object. They refer to it as `emberflow._stored`."""
    known = _registered.get(name)
    if known is None and name in HOMES:
        importlib.import_module(HOMES[name].module)
        known = _registered.get(name)
    if known is None or version > known.version:
        what = f"version {version} of the record" if known is not None else "the record"
        raise CorruptData(
            f"{what} {name!r} is unknown",
            cause="it was stored by a newer version of emberflow",
            way_out="update emberflow",
        )
    return known.read(version, fields)


_stored.__module__ = "emberflow"


def class_before(module: str, name: str) -> Any:
    """The class that bytes without stable names refer to; None if it is not ours, or has not moved."""
    found = _paths.get((module, name)) or _moved_from.get(module)
    if found is None:
        return None
    try:
        return attrgetter(name)(importlib.import_module(found))
    except AttributeError:
        return None


def stable_path(kind: Any) -> str:
    """`module.Name` of a class or function for identities and hashes; the original path of classes of ours that moved."""
    module = getattr(kind, "__module__", "")
    name = getattr(kind, "__qualname__", type(kind).__qualname__)
    home = HOMES.get(name)
    if home is not None and home.module == module:
        return f"{home.before}.{name}"
    return f"{MOVED.get(module, (module,))[0]}.{name}"


_Reduced = tuple[Any, ...]


def _by_functions(name: str, version: int, write: Callable[[Any], Any]) -> Callable[[Any], _Reduced]:
    def reduce(value: Any) -> _Reduced:
        return _stored, (name, version, write(value))

    return reduce


def _by_attributes(name: str, version: int) -> Callable[[Any], _Reduced]:
    def reduce(value: Any) -> _Reduced:
        return _stored, (name, version), value.__dict__

    return reduce


def _without_attributes(kind: Any) -> Callable[[int, Any], Any]:
    def read(version: int, fields: Any) -> Any:
        # pickle adds the attributes.
        return kind.__new__(kind)

    return read


def _by_fields(name: str, version: int, kind: Any) -> Callable[[Any], _Reduced]:
    names = [field.name for field in dataclasses.fields(kind)]

    def reduce(value: Any) -> _Reduced:
        fields: dict[str, Any] = {}
        for name_of_field in names:
            item = getattr(value, name_of_field)
            if item is not defaults.get(name_of_field, defaults):
                fields[name_of_field] = item
        return _stored, (name, version, fields)

    # Only objects that are identical whenever they are equal: others would be compared by user code.
    defaults = {
        field.name: field.default
        for field in dataclasses.fields(kind)
        if field.default is None or field.default is True or field.default is False
    }
    return reduce


def _reader_of_fields(kind: Any) -> Callable[[int, Any], Any]:
    known = {field.name: field for field in dataclasses.fields(kind)}

    def read(version: int, fields: dict[str, Any]) -> Any:
        made = kind.__new__(kind)
        found = 0
        # Not by calling the class, which may be frozen or validate again.
        for name, field in known.items():
            if name in fields:
                value = fields[name]
                found += 1
            elif field.default_factory is not dataclasses.MISSING:
                value = field.default_factory()
            elif field.default is not dataclasses.MISSING:
                value = field.default
            else:
                raise CorruptData(f"a stored record {kind.__name__!r} lacks its field {name!r}")
            object.__setattr__(made, name, value)
        if found != len(fields):
            # If it were ignored, it would be lost with the next checkpoint.
            unknown = next(name for name in fields if name not in known)
            raise CorruptData(
                f"the field {unknown!r} of the record {kind.__name__!r} is not known",
                cause="it was stored by a newer version of emberflow",
                way_out="update emberflow",
            )
        return made

    return read
