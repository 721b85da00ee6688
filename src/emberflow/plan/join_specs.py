"""The parts of an interval join, as frozen data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from emberflow.events.output_tag import OutputTag
from emberflow.plan.specs import Spec, function_name

LEFT, RIGHT = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SideOutputs:
    """Where records of one input go that take no part in the join; None: nowhere."""

    late: OutputTag[Any] | None = None
    unmatched: OutputTag[Any] | None = None

    def describe(self) -> dict[str, str]:
        named = {"late": self.late, "unmatched": self.unmatched}
        return {name: tag.tag_id for name, tag in named.items() if tag is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalJoinSpec(Spec):
    """A right record at time r joins a left one at time l if `lower_ms <= r - l <= upper_ms`."""

    kind: str = "interval_join"
    call: Callable[[Any, Any, Any], Any]
    lower_ms: int
    upper_ms: int
    side_outputs: tuple[SideOutputs, SideOutputs] = field(default=(SideOutputs(), SideOutputs()))
    """Of the left and the right input."""

    @property
    def keyed(self) -> bool:
        return True

    def describe(self) -> dict[str, Any]:
        described: dict[str, Any] = {
            "function": function_name(self.function),
            "lower_ms": self.lower_ms,
            "upper_ms": self.upper_ms,
        }
        for name, outputs in zip(("left", "right"), self.side_outputs, strict=True):
            if outputs.describe():
                described[name] = outputs.describe()
        return described
