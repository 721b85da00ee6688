"""Stand-ins for classes that cannot be imported where a savepoint is created or inspected; their values are preserved.

State may contain objects of the program's own classes, and `emberflow savepoint` does not run the program. A stand-in
replaces such a class: it keeps what pickle passes to it and pickles to the same bytes. Only commands enable this; a job
never uses one.
"""

from __future__ import annotations

import copyreg
import importlib
import sys
from io import BytesIO
from types import ModuleType
from typing import Any

from emberflow.errors import InvalidArgument
from emberflow.events import codecs


class _Called(type):
    """Distinguishes an object that was created by a call from one that was created without `__init__`."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        kind: Any = cls
        made = kind.__new__(kind, *args, **kwargs)
        made.stand_in_called = True
        return made


class StandIn(metaclass=_Called):
    """Base of all stand-ins. Equal to another of the same class with the same content."""

    __slots__ = ("stand_in_args", "stand_in_called", "stand_in_items", "stand_in_pairs", "stand_in_state")

    stand_in_args: tuple[tuple[Any, ...], dict[str, Any]]
    stand_in_called: bool
    stand_in_state: Any
    stand_in_items: list[Any]
    stand_in_pairs: dict[Any, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> StandIn:
        self = object.__new__(cls)
        self.stand_in_args = (args, kwargs)
        self.stand_in_called = False
        self.stand_in_state = None
        self.stand_in_items = []
        self.stand_in_pairs = {}
        return self

    def __setstate__(self, state: Any) -> None:
        self.stand_in_state = state

    def append(self, item: Any) -> None:
        self.stand_in_items.append(item)

    def extend(self, items: Any) -> None:
        self.stand_in_items.extend(items)

    def __setitem__(self, name: Any, value: Any) -> None:
        self.stand_in_pairs[name] = value

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        if protocol < 5:
            # Only pickling works without the real class; anything else, such as a hash, needs it.
            raise InvalidArgument(
                f"the class {_shown(type(self))} of a key cannot be imported here",
                way_out="run the command where it can be imported: add its folder to PYTHONPATH",
            )
        args, kwargs = self.stand_in_args
        made: tuple[Any, ...] = (type(self), args)
        if not self.stand_in_called:
            made = (copyreg.__newobj__, (type(self), *args))  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
            if kwargs:
                made = (copyreg.__newobj_ex__, (type(self), args, kwargs))  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
        items = iter(self.stand_in_items) if self.stand_in_items else None
        pairs = iter(self.stand_in_pairs.items()) if self.stand_in_pairs else None
        return (*made, self.stand_in_state, items, pairs)

    def _content(self) -> tuple[Any, ...]:
        return self.stand_in_args, self.stand_in_state, self.stand_in_items, self.stand_in_pairs

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is type(self) and isinstance(other, StandIn) and other._content() == self._content()
        )

    def __hash__(self) -> int:
        return hash((type(self), repr(self._content())))

    def __repr__(self) -> str:
        args, _ = self.stand_in_args
        parts = [repr(item) for item in args]
        if self.stand_in_state is not None:
            parts.append(repr(self.stand_in_state))
        parts.extend(repr(item) for item in (self.stand_in_items, self.stand_in_pairs) if item)
        return f"{type(self).__qualname__}({', '.join(parts)})"


def allow_unknown_classes() -> None:
    """Makes this process read values of unknown classes as stand-ins."""
    codecs.use_for_missing_classes(_install_all)


class _Finder(codecs.StoredUnpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        try:
            return super().find_class(module_name, global_name)
        except (ImportError, AttributeError):
            return _install(module_name, global_name)


def _install_all(data: bytes) -> None:
    _Finder(BytesIO(data)).load()


def _install(module_name: str, global_name: str) -> Any:
    """Puts a stand-in where pickle looks for the class, so that pickle finds it from now on."""
    holder: Any = _module(module_name)
    path: list[str] = []
    for name in global_name.split("."):
        path.append(name)
        if not hasattr(holder, name):
            fields = {"__module__": module_name, "__qualname__": ".".join(path), "__slots__": ()}
            setattr(holder, name, _Called(name, (StandIn,), fields))
        holder = getattr(holder, name)
    return holder


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError:
        parent, _, last = name.rpartition(".")
        made = sys.modules[name] = ModuleType(name)
        if parent:
            setattr(_module(parent), last, made)
        return made


def _shown(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
