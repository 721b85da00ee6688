"""Window functions in the one form that operators call, and what is asked of them when a program is built."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any, TypeVar

from emberflow.errors import InvalidArgument
from emberflow.operators.operator import function_behind
from emberflow.operators.windows.window_context import WindowContext
from emberflow.streams.functions.function import (
    AggregateFunction,
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from emberflow.streams.functions.methods import check_called_here

IN = TypeVar("IN")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
WINDOW = TypeVar("WINDOW")

AnyWindowFunction = (
    ProcessWindowFunction[IN, OUT, KEY, WINDOW]
    | WindowFunction[IN, OUT, KEY, WINDOW]
    | Callable[[KEY, WindowContext[WINDOW], Iterable[IN]], Iterable[OUT] | None]
)
"""A window function of either class, or a plain `function(key, context, elements)`."""

AnyAllWindowFunction = (
    ProcessAllWindowFunction[IN, OUT, WINDOW]
    | AllWindowFunction[IN, OUT, WINDOW]
    | Callable[[WindowContext[WINDOW], Iterable[IN]], Iterable[OUT] | None]
)
"""The same for `window_all()`: `function(context, elements)`."""


class _Wrapped(ProcessWindowFunction[Any, Any, Any, Any]):
    """A function object of another form: opened and closed, and told of removed windows, as it would be itself."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def open(self, runtime_context: Any) -> None:
        self._tell("open", runtime_context)

    def close(self) -> None:
        self._tell("close")

    def clear(self, context: WindowContext[Any]) -> None:
        self._tell("clear", context)

    def _tell(self, method: str, *arguments: Any) -> None:
        found = getattr(self._function, method, None)
        if found is not None:
            found(*arguments)


class _Applied(_Wrapped):
    def process(self, key: Any, context: WindowContext[Any], elements: Any) -> Any:
        return self._function.apply(key, context.window(), elements)


class _Plain(_Wrapped):
    def process(self, key: Any, context: WindowContext[Any], elements: Any) -> Any:
        return self._function(key, context, elements)


class _AllProcessed(_Wrapped):
    def process(self, key: Any, context: WindowContext[Any], elements: Any) -> Any:
        return self._function.process(context, elements)


class _AllApplied(_Wrapped):
    def process(self, key: Any, context: WindowContext[Any], elements: Any) -> Any:
        return self._function.apply(context.window(), elements)


class _AllPlain(_Wrapped):
    def process(self, key: Any, context: WindowContext[Any], elements: Any) -> Any:
        return self._function(context, elements)


def keyed_function(function: Any) -> Any:
    """A window function of a keyed stream, as `process(key, context, elements)`."""
    if function is not None:
        _check_window_function(function)
    if function is None or hasattr(function, "process"):
        return function
    return _Applied(function) if hasattr(function, "apply") else _Plain(function)


def all_function(function: Any) -> Any:
    """A window function of `window_all()`, in the same form."""
    if function is None:
        return None
    _check_window_function(function)
    if hasattr(function, "process"):
        return _AllProcessed(function)
    return _AllApplied(function) if hasattr(function, "apply") else _AllPlain(function)


def _check_window_function(function: Any) -> None:
    method = "process" if hasattr(function, "process") else "apply"
    called = getattr(function, method, function)
    if not callable(called):
        raise InvalidArgument(f"a window function needs process() or apply(), which {function!r} lacks")
    check_called_here(function, called, method, "a window")


_MERGE: Any = AggregateFunction[Any, Any, Any].merge


def can_merge(aggregate: Any) -> bool:
    """Whether an aggregate function has a `merge()` that merges. PyFlink demands the method of every aggregate function
    but calls it only for windows that merge, so programs have ones that do nothing."""
    merge = _own_merge(aggregate)
    code = getattr(merge, "__code__", None)
    if merge is None or code is None:
        return merge is not None
    arguments = _arguments(code)
    return not arguments or bool(arguments & _used(code))


def shares_panes(reduce: Any, aggregate: Any) -> bool:
    """Whether partial results of a window function may be merged although its windows do not merge.

    Flink never does that, so programs written for it may have functions that only work on single records, and a
    `merge()` that raises or returns one of its arguments.
    """
    if aggregate is None:
        return bool(getattr(function_behind(reduce, "reduce"), "mergeable", False))
    merge = _own_merge(aggregate)
    code = getattr(merge, "__code__", None)
    if merge is None or code is None:
        return merge is not None
    returns = any(step.opname.startswith("RETURN_") for step in dis.get_instructions(code))
    return returns and _arguments(code) <= _used(code)


def _own_merge(aggregate: Any) -> Any:
    """`merge` of the function's class; None if it is only that of the base class."""
    merge: Any = getattr(aggregate.__class__, "merge", None)
    return None if merge is _MERGE else merge


def _arguments(code: CodeType) -> set[str]:
    """The names of arguments without `self`."""
    return set(code.co_varnames[1 : code.co_argcount])


def _used(code: CodeType) -> set[str]:
    return {name for step in dis.get_instructions(code) for name in _names(step)}


def _names(step: dis.Instruction) -> tuple[Any, ...]:
    """What an instruction refers to; some load two variables at once."""
    kind: type[Any] = step.argval.__class__
    return step.argval if kind is tuple else (step.argval,) if kind is str else ()
