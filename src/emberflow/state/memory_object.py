"""`MemoryObject`: a place in an agent's memory, as used by actions; `MemoryRef`: its address, to send in events."""

from __future__ import annotations

from enum import Enum
from typing import Any, Self

from emberflow.errors import InvalidArgument, did_you_mean, shorten
from emberflow.events.copies import copied
from emberflow.events.memory_events import json_value
from emberflow.events.model_shape import ReadableAsDict
from emberflow.events.stored_types import stored_type
from emberflow.state.memory import Memory
from emberflow.state.pages import Node

NESTED_OBJECT = "NestedObject"
"""What `get_fields` returns for a nested object."""


class MemoryType(Enum):
    """The memories of an agent that hold values by path."""

    SENSORY = "sensory"
    SHORT_TERM = "short_term"


_KINDS = {MemoryType.SENSORY: "sensory", MemoryType.SHORT_TERM: "short-term"}

SUB_AGENTS = "$agents"
"""Where the memory of the agents that an agent calls is kept; the agent itself does not see it."""


@stored_type(write=lambda ref: (ref.kind, ref.path), read=lambda _, place: MemoryRef(*place))
class MemoryRef(ReadableAsDict):
    """A place in memory that one action passes to another inside an event."""

    __slots__ = ("kind", "path")

    def __init__(self, memory_type: MemoryType | str = MemoryType.SHORT_TERM, path: str = "") -> None:
        self.kind = _kind(memory_type)
        self.path = path

    @staticmethod
    def create(memory_type: MemoryType | str, path: str) -> MemoryRef:
        """A reference to a path; raises `InvalidArgument` for an unknown type of memory."""
        return MemoryRef(memory_type, path)

    @property
    def memory_type(self) -> MemoryType:
        """The memory that the path belongs to."""
        return MemoryType.SENSORY if self.kind == "sensory" else MemoryType.SHORT_TERM

    def _shape_fields(self) -> dict[str, Any]:
        return {"memory_type": self.memory_type.value, "path": self.path}

    @classmethod
    def _from_shape(cls, fields: dict[str, Any]) -> Self:
        for name in fields:
            if name not in ("memory_type", "path"):
                raise InvalidArgument(f"MemoryRef has no field {name!r}")
        if not isinstance(fields.get("path"), str):
            raise InvalidArgument("MemoryRef needs a field 'path'", cause=f"got {shorten(fields)}")
        return cls(**fields)

    def resolve(self, ctx: Any) -> Any:
        """The current value at this place."""
        memory = ctx.short_term_memory if self.kind == "short-term" else ctx.sensory_memory
        return memory.get(self.path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemoryRef) and (self.kind, self.path) == (other.kind, other.path)

    def __hash__(self) -> int:
        return hash((self.kind, self.path))

    def __repr__(self) -> str:
        return f"MemoryRef({self.kind!r}, {self.path!r})"


_NEW: Any = object.__new__


def _ref(kind: str, path: str) -> MemoryRef:
    """A reference without checks: every write returns one."""
    made: MemoryRef = _NEW(MemoryRef)
    made.kind = kind
    made.path = path
    return made


def _kind(given: MemoryType | str) -> str:
    if isinstance(given, MemoryType):
        return _KINDS[given]
    # By value, or as earlier versions stored it.
    for kind, name in _KINDS.items():
        if given in (name, kind.value):
            return name
    raise InvalidArgument(
        f"{given!r} is not a type of memory{did_you_mean(given, [kind.value for kind in _KINDS])}",
        way_out="MemoryType.SHORT_TERM or MemoryType.SENSORY",
    )


class MemoryObject:
    """A place in memory. Values are copied when they are written and read: change one with `set`, not in place."""

    __slots__ = ("_memory", "_owner", "_prefix")

    def __init__(self, memory: Memory, prefix: str = "", owner: Any = None) -> None:
        self._memory = memory
        self._prefix = prefix
        self._owner = owner
        """The action's context: code that it left running must not write once it has `stopped`."""

    def get(self, path_or_ref: str | MemoryRef, default: Any = None) -> Any:
        """The value at a path; a MemoryObject if the path is a nested object; `default` if there is nothing. A reference
        may have become a dictionary on its way."""
        if isinstance(path_or_ref, str):
            path = self._prefix + path_or_ref
        else:
            path = MemoryRef.model_validate(path_or_ref).path
        found = self._memory.get(path)
        if found is None:
            return default
        if found.__class__ is Node:
            return self.__class__(self._memory, path + ".", self._owner)
        # A copy: changes to it are not stored, and a later append() does not affect it.
        return copied(found)

    def set(self, path: str, value: Any) -> MemoryRef:
        """Stores a value; creates nested objects on the path. Returns a reference to it."""
        self._check()
        path = self._prefix + path
        if isinstance(value, MemoryObject):
            raise InvalidArgument(
                f"{self._memory.kind} memory: {path!r} cannot be set to a memory object",
                way_out=f"call new_object({path!r}) to create a nested object; then set its fields",
            )
        # A copy: later changes to the value are not stored.
        self._memory.set(path, copied(value))
        return _ref(self._memory.kind, path)

    def append(self, path: str, value: Any) -> MemoryRef:
        """Appends to the list at a path; creates the list if there is none."""
        self._check()
        path = self._prefix + path
        self._memory.append(path, copied(value))
        return _ref(self._memory.kind, path)

    def delete(self, path: str) -> bool:
        """Removes a value or a whole nested object; returns False if there was nothing."""
        self._check()
        return self._memory.delete(self._prefix + path)

    def new_object(self, path: str, overwrite: bool = False) -> MemoryObject:
        """An empty nested object. An existing one is kept; a value at the path is replaced only with `overwrite`."""
        self._check()
        path = self._prefix + path
        found = self._memory.get(path)
        if found is None or (found.__class__ is not Node and overwrite):
            self._memory.set(path, Node())
        elif found.__class__ is not Node:
            raise InvalidArgument(
                f"{self._memory.kind} memory: {path!r} already contains a value",
                cause=f"it is {shorten(found)}",
                way_out="use new_object(path, overwrite=True) to replace it",
            )
        return self.__class__(self._memory, path + ".", self._owner)

    def _check(self) -> None:
        if self._owner is not None and self._owner.stopped:
            raise InvalidArgument(
                f"{self._memory.kind} memory is written after the action has ended or its attempt has failed",
                way_out="await everything the action starts before it returns or raises",
            )

    def is_exist(self, path: str) -> bool:
        """Whether there is a nested object or a value at the path; the value may be None."""
        return self._memory.exists(self._prefix + path)

    __contains__ = is_exist

    def keys(self) -> list[str]:
        """The names directly below this place, sorted."""
        memory, prefix = self._memory, self._prefix
        node = memory.node(prefix[:-1]) or {}
        names = [name for name, value in list(node.items()) if memory.alive(prefix + name, value)]
        return sorted([name for name in names if prefix or name != SUB_AGENTS])

    get_field_names = keys

    def get_fields(self) -> dict[str, Any]:
        """Names and values directly below this place; for a nested object the text of `NESTED_OBJECT`, as in Flink Agents."""
        return {
            name: NESTED_OBJECT if isinstance(value, MemoryObject) else value
            for name, value in self._fields().items()
        }

    def _fields(self) -> dict[str, Any]:
        return {name: self.get(name) for name in self.keys()}

    def to_dict(self) -> dict[str, Any]:
        """Everything below this place as plain dictionaries."""
        return {
            name: value.to_dict() if isinstance(value, MemoryObject) else value
            for name, value in self._fields().items()
        }

    def __repr__(self) -> str:
        return f"MemoryObject({self._memory.kind} {self._prefix or '(root)'}: {shorten(self.to_dict())})"


class ObservedMemoryObject(MemoryObject):
    """The same for agents whose reads of memory are observed. A class of its own, so that other agents do not pay for it."""

    __slots__ = ()

    def get(self, path_or_ref: str | MemoryRef, default: Any = None) -> Any:
        """As in `MemoryObject`."""
        found = super().get(path_or_ref, _NOTHING)
        if isinstance(found, MemoryObject):
            return found
        memory = self._memory
        if isinstance(path_or_ref, str):
            path = self._prefix + path_or_ref
        else:
            path = MemoryRef.model_validate(path_or_ref).path
        if found is not _NOTHING or memory.exists(path):
            try:
                # Now: the action may change what it has read.
                shown = None if found is _NOTHING else json_value(found)
                memory.journal.reads[memory.kind, path] = shown
            except InvalidArgument:
                # Left out, also if an earlier value could be shown: it is no longer what was read.
                memory.journal.reads.pop((memory.kind, path), None)
        return default if found is _NOTHING else found


_NOTHING: Any = object()
