"""`PythonFunction`: a function by the names under which it is imported, where a function itself is not at hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from emberflow.errors import InvalidAgent, shorten
from emberflow.events.model_shape import ModelShape
from emberflow.plan import json_functions


@dataclass(frozen=True, slots=True)
class PythonFunction(ModelShape):
    """A function in a module: `PythonFunction(module="shop.actions", qualname="check")`, or `"Shop.check"` in a class."""

    module: str
    qualname: str

    def __post_init__(self) -> None:
        if not self.module or not self.qualname:
            raise InvalidAgent(
                f"{self!r} does not name a function",
                way_out="PythonFunction(module='shop', qualname='check')",
            )

    @staticmethod
    def from_callable(func: Callable[..., Any]) -> PythonFunction:
        """The names of a function; raises `InvalidAgent` for one that cannot be imported by name."""
        qualname = getattr(func, "__qualname__", "")
        if not qualname or "<" in qualname:
            raise InvalidAgent(
                f"{shorten(func)} cannot be imported by name",
                way_out="use a function at the top of a module, or a method of a class there",
            )
        return PythonFunction(func.__module__, qualname)

    def as_callable(self) -> Callable[..., Any]:
        """The function, imported; raises `InvalidAgent` if there is none."""
        found: Any = json_functions.from_json({"module": self.module, "qualname": self.qualname})
        if not callable(found):
            raise InvalidAgent(f"{self.module}.{self.qualname} is {shorten(found)}, which cannot be called")
        return found
