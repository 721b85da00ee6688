"""`MemoryObject`: a place in an agent's memory, as used by actions; `MemoryRef`: its address, to send in events."""

from __future__ import annotations

from typing import Any

from emberflow.errors import InvalidArgument, shorten
from emberflow.events.copies import copied
from emberflow.events.stored_types import stored_type
from emberflow.state.memory import Memory
from emberflow.state.pages import Node


@stored_type(write=lambda ref: (ref.kind, ref.path), read=lambda _, place: MemoryRef(*place))
class MemoryRef:
    """A place in memory that one action passes to another inside an event."""

    __slots__ = ("kind", "path")

    def __init__(self, kind: str, path: str) -> None:
        self.kind = kind
        self.path = path

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


class MemoryObject:
    """A place in memory. Values are copied when they are written and read: change one with `set`, not in place."""

    __slots__ = ("_memory", "_owner", "_prefix")

    def __init__(self, memory: Memory, prefix: str = "", owner: Any = None) -> None:
        self._memory = memory
        self._prefix = prefix
        self._owner = owner
        """The action's context: code that it left running must not write once it has `stopped`."""

    def get(self, path_or_ref: str | MemoryRef, default: Any = None) -> Any:
        """The value at a path; a MemoryObject if the path is a nested object; `default` if there is nothing."""
        path = self._prefix + path_or_ref if isinstance(path_or_ref, str) else path_or_ref.path
        found = self._memory.get(path)
        if found is None:
            return default
        if found.__class__ is Node:
            return MemoryObject(self._memory, path + ".", self._owner)
        # A copy: changes to it are not stored, and a later append() does not affect it.
        return copied(found)

    def set(self, path: str, value: Any) -> MemoryRef:
        """Stores a value; creates nested objects on the path. Returns a reference to it."""
        self._check()
        path = self._prefix + path
        if value.__class__ is MemoryObject:
            raise InvalidArgument(
                f"{self._memory.kind} memory: {path!r} cannot be set to a memory object",
                way_out=f"call new_object({path!r}) to create a nested object; then set its fields",
            )
        # A copy: later changes to the value are not stored.
        self._memory.set(path, copied(value))
        return MemoryRef(self._memory.kind, path)

    def append(self, path: str, value: Any) -> MemoryRef:
        """Appends to the list at a path; creates the list if there is none."""
        self._check()
        path = self._prefix + path
        self._memory.append(path, copied(value))
        return MemoryRef(self._memory.kind, path)

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
        return MemoryObject(self._memory, path + ".", self._owner)

    def _check(self) -> None:
        if self._owner is not None and self._owner.stopped:
            raise InvalidArgument(
                f"{self._memory.kind} memory is written after the action has ended or its attempt has failed",
                way_out="await everything the action starts before it returns or raises",
            )

    def is_exist(self, path: str) -> bool:
        """Whether there is a value or a nested object at the path."""
        return self._memory.get(self._prefix + path) is not None

    __contains__ = is_exist

    def keys(self) -> list[str]:
        """The names directly below this place."""
        memory, prefix = self._memory, self._prefix
        node = memory.node(prefix[:-1]) or {}
        return [name for name, value in list(node.items()) if memory.alive(prefix + name, value)]

    get_field_names = keys

    def get_fields(self) -> dict[str, Any]:
        """Names and values directly below this place."""
        return {name: self.get(name) for name in self.keys()}

    def to_dict(self) -> dict[str, Any]:
        """Everything below this place as plain dictionaries."""
        fields = self.get_fields()
        return {
            name: value.to_dict() if isinstance(value, MemoryObject) else value
            for name, value in fields.items()
        }

    def __repr__(self) -> str:
        return f"MemoryObject({self._memory.kind} {self._prefix or '(root)'}: {shorten(self.to_dict())})"
