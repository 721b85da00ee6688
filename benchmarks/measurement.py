"""What a benchmark returns: figures, and the targets of some of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Direction(Enum):
    AT_LEAST = "at_least"
    AT_MOST = "at_most"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The target of a figure."""

    direction: Direction
    value: float

    def met(self, measured: float) -> bool:
        return measured >= self.value if self.direction is Direction.AT_LEAST else measured <= self.value

    def ratio(self, measured: float) -> float | None:
        """How good the figure is relative to the target; it is met at 1 or more."""
        if self.direction is Direction.AT_LEAST:
            return measured / self.value if self.value else None
        return self.value / measured if measured > 0 else None


def at_least(value: float) -> Bar:
    return Bar(direction=Direction.AT_LEAST, value=value)


def at_most(value: float) -> Bar:
    return Bar(direction=Direction.AT_MOST, value=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One figure; without a target it only explains the others."""

    name: str
    value: float
    unit: str
    bar: Bar | None = None
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        made: dict[str, Any] = {"name": self.name, "value": round(self.value, 4), "unit": self.unit}
        if self.bar is not None:
            ratio = self.bar.ratio(self.value)
            made["bar"] = {self.bar.direction.value: self.bar.value}
            made["ratio"] = None if ratio is None else round(ratio, 3)
            made["met"] = self.bar.met(self.value)
        if self.note:
            made["note"] = self.note
        return made


class Skipped(Exception):
    """A benchmark that cannot run here; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How long to measure."""

    quick: bool = False
    details: dict[str, Any] = field(default_factory=dict[str, Any])
    """Raw figures that are stored with a benchmark's measures."""

    def pick(self, quick: int, full: int) -> int:
        return quick if self.quick else full
