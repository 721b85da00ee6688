"""`TypeInformation`: a value type as in PyFlink. Created by `emberflow.streams.Types`; only for documentation and typing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TypeInformation(Generic[T]):
    """Names the type of a value; `Types.STRING()` is a `TypeInformation[str]`. It does not restrict the values."""

    name: str
    arguments: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.arguments))
        return f"Types.{self.name}({inner})"
