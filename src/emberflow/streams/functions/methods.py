"""From what a user passes as a function to what is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emberflow.errors import InvalidArgument
from emberflow.events.types.type_information import RowTypeInfo, TupleTypeInfo, TypeInformation


def method_of(function: Any, method: str, where: str) -> Callable[..., Any]:
    """`function.method` of a function object, or the callable itself."""
    found = getattr(function, method, None)
    if callable(found):
        return found
    if callable(function):
        return function
    raise InvalidArgument(
        f"{where} needs a function or an object with a {method}() method, not {function!r}",
        way_out="pass e.g. a lambda",
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
