"""Functions whose results have a declared type: reduce functions, whose results become state, and key selectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emberflow.events.types.conversion import converter_of
from emberflow.events.types.type_information import TypeInformation


class TypedCall:
    """Calls a function and converts its result; raises TypeMismatch for one that does not fit."""

    def __init__(self, call: Callable[..., Any], declared: TypeInformation[Any]) -> None:
        self.call = call
        self._convert = converter_of(declared).one

    def __call__(self, *arguments: Any) -> Any:
        return self._convert(self.call(*arguments))


def typed_call(call: Callable[..., Any], declared: TypeInformation[Any] | None) -> Callable[..., Any]:
    """The function itself where no type is declared."""
    return call if declared is None else TypedCall(call, declared)
