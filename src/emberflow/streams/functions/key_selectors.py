"""What `key_by()` makes of its arguments: functions, fields given by name or position, and declared key types."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from emberflow.events.types.type_information import TypeInformation, check_declared
from emberflow.events.types.typed_call import TypedCall
from emberflow.operators.operator import close_function, open_function
from emberflow.plan.specs import function_name
from emberflow.streams.functions.aggregations import read
from emberflow.streams.functions.methods import method_of

Selector = Callable[[Any], Any]


def key_selector_of(given: Any, key_type: Any) -> tuple[Selector, str]:
    """The selector that a stream's records pass, and its name in plans."""
    if isinstance(given, int | str) and not isinstance(given, bool):
        selector: Any = itemgetter(given) if isinstance(given, int) else FieldSelector(given)
        name = f"field {given!r}"
    else:
        selector, name = given, function_name(given)
    call = method_of(selector, "get_key", "key_by()")
    check_declared(key_type)
    if isinstance(key_type, TypeInformation):
        call = TypedKey(selector, TypedCall(call, key_type)).get_key  # pyright: ignore[reportUnknownArgumentType]
    return call, name


class FieldSelector:
    """The field of a name, in rows, dictionaries and objects."""

    def __init__(self, field: str) -> None:
        self._field = field

    def __call__(self, value: Any) -> Any:
        return read(value, self._field)


class TypedKey:
    """A selector whose keys are converted to a declared type."""

    def __init__(self, selector: Any, call: TypedCall) -> None:
        self._selector = selector
        self._call = call

    def open(self, runtime_context: Any) -> None:
        open_function(self._selector, runtime_context)

    def close(self) -> None:
        close_function(self._selector)

    def get_key(self, value: Any) -> Any:
        return self._call(value)
