"""`TypeInformation`: a value type as PyFlink writes it. Made by `emberflow.streams.Types`; it only documents and types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TypeInformation(Generic[T]):
    """Names the type of a value; `Types.STRING()` is a `TypeInformation[str]`. Any Python value travels whatever it says."""

    name: str
    arguments: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.arguments))
        return f"Types.{self.name}({inner})"
