"""From what a user passes as a function to what is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from emberflow.errors import InvalidArgument
from emberflow.event_time.watermarks import WatermarkStrategy
from emberflow.events.output_tag import OutputTag
from emberflow.events.types.type_information import RowTypeInfo, TupleTypeInfo, TypeInformation
from emberflow.plan.specs import function_name


def method_of(function: Any, method: str, where: str) -> Callable[..., Any]:
    """`function.method` of a function object, or the callable itself."""
    found = getattr(function, method, None)
    if not callable(found):
        found = function
    if not callable(found):
        raise InvalidArgument(
            f"{where} needs a function or an object with a {method}() method, not {function!r}",
            way_out="pass e.g. a lambda",
        )
    check_called_here(function, found, method, where)
    return found


def check_called_here(function: Any, called: Any, method: str, where: str) -> None:
    """Raises InvalidArgument for a coroutine function, whose result would be a coroutine, and for a class instead of an
    object of it."""
    check_object(function, method, where)
    if _is_coroutine_function(called):
        raise InvalidArgument(
            f"{where} calls its function without awaiting it, and {function_name(called)} is a coroutine function",
            way_out="use AsyncDataStream.unordered_wait() for calls that wait, or write a plain `def`",
        )


def check_object(function: Any, method: str, where: str, made_by: str = "") -> None:
    """Raises InvalidArgument for a class whose `method` needs an object; `made_by` is how one is created, if not by the class
    itself."""
    if isinstance(function, type) and inspect.isfunction(inspect.getattr_static(function, method, None)):
        raise InvalidArgument(
            f"{where} needs an object, not the class {function.__name__}",
            way_out=f"create one: {function.__name__}{made_by}(…)",
        )


def check_aggregate(function: Any) -> None:
    """Raises InvalidArgument for something else than an object with the methods of an `AggregateFunction`."""
    check_object(function, "add", "aggregate()")
    if not all(
        callable(getattr(function, name, None)) for name in ("create_accumulator", "add", "get_result")
    ):
        raise InvalidArgument(
            f"aggregate() needs an AggregateFunction, not {function!r}",
            way_out="derive a class from it; a plain function of two values goes to reduce()",
        )


def check_strategy(given: Any) -> None:
    """Raises InvalidArgument for something else than a `WatermarkStrategy`."""
    if not isinstance(given, WatermarkStrategy):
        raise InvalidArgument(
            f"assign_timestamps_and_watermarks() needs a WatermarkStrategy, not {given!r}",
            way_out="WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, before: …)",
        )


def tag_id_of(given: Any) -> str:
    """The name of an `OutputTag`; raises InvalidArgument for something else."""
    if not isinstance(given, OutputTag):
        raise InvalidArgument(
            f"get_side_output() needs an OutputTag, not {given!r}", way_out=f"OutputTag({str(given)!r})"
        )
    return given.tag_id


def _is_coroutine_function(function: Any) -> bool:
    of_object = inspect.getattr_static(function, "__call__", None)
    return any(
        inspect.iscoroutinefunction(item) or inspect.isasyncgenfunction(item)
        for item in (function, of_object)
    )


class Projection:
    """The fields of a record at some positions, as a tuple."""

    def __init__(self, positions: tuple[int, ...]) -> None:
        if not positions or not all(type(position) is int for position in positions):
            raise InvalidArgument(
                f"project() needs the positions of fields, not {positions!r}",
                way_out="write e.g. project(0, 2)",
            )
        self._positions = positions

    def __call__(self, value: Any) -> tuple[Any, ...]:
        return tuple([value[position] for position in self._positions])

    def type_of(self, declared: TypeInformation[Any] | None) -> TypeInformation[Any] | None:
        """The type of the tuples that are made of records of a declared type; None if it has no such fields."""
        if not isinstance(declared, RowTypeInfo | TupleTypeInfo):
            return None
        fields = declared.field_types
        if not all(-len(fields) <= position < len(fields) for position in self._positions):
            return None
        return TupleTypeInfo(tuple([fields[position] for position in self._positions]))
