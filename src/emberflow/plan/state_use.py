"""Whether a function gives its state a time to live, as far as its code shows before the function runs.

Spark must know when a query is planned whether a step has timers, and state without a time to live needs none. A function
that is not recognized loses nothing but time: expired state of a key group is then removed when the group has input.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

from emberflow.state.descriptors import StateDescriptor

_CALL = "enable_time_to_live"
_MOST = 500
"""Functions and classes that are looked at; user code that is found within fewer is the rule."""


def enables_ttl(function: Any) -> bool:
    """Follows methods, closures, and the global functions and classes that they name."""
    seen: set[int] = set()
    waiting: list[Any] = [function]
    while waiting and len(seen) < _MOST:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, StateDescriptor):
            if item.ttl is not None:
                return True
        elif isinstance(item, FunctionType):
            names = set(_names(item.__code__))
            if _CALL in names:
                return True
            waiting.extend(_mentioned(item, names))
        elif isinstance(item, MethodType):
            waiting += [item.__func__, item.__self__]
        elif isinstance(item, type):
            waiting.extend(_methods(item))
        elif not isinstance(item, str | bytes | int | float | type(None)):
            waiting.append(type(item))
            waiting.extend(getattr(item, "__dict__", {}).values())
    return False


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _mentioned(function: FunctionType, names: set[str]) -> Iterator[Any]:
    for name in names:
        found = function.__globals__.get(name)
        if isinstance(found, FunctionType | type | StateDescriptor):
            yield found
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            pass  # A name that is not bound yet.


def _methods(kind: type) -> Iterator[Any]:
    for base in kind.__mro__:
        if base.__module__.split(".")[0] not in ("builtins", "emberflow", "typing", "abc"):
            for item in vars(base).values():
                found: Any = getattr(item, "__func__", item)
                if isinstance(found, FunctionType):
                    yield found
