"""Steps without keys that head a stage of their own: both inputs of a connect, broadcast state, operator state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from emberflow.plan.specs import Spec, StepTraits, function_name
from emberflow.state.descriptors import MapStateDescriptor


@dataclass(frozen=True, slots=True, kw_only=True)
class CoProcessSpec(Spec):
    """Two inputs without keys; one function per input, `(value, context) -> results`."""

    kind: str = "unkeyed_co_process"
    calls: tuple[Callable[[Any, Any], Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BroadcastSpec(Spec):
    """A broadcast input and another one, `calls` in the order (other, broadcast); `with_keys` if the other is keyed."""

    kind: str = "broadcast_process"
    calls: tuple[Callable[[Any, Any], Any], ...]
    descriptors: tuple[MapStateDescriptor[Any, Any], ...]
    with_keys: bool = False
    on_timer: Callable[[int, Any], Any] | None = None

    @property
    def keyed(self) -> bool:
        return True

    @property
    def traits(self) -> StepTraits:
        return StepTraits(sets_timers=self.on_timer is not None, shares_state=True)

    def describe(self) -> dict[str, Any]:
        return {
            "function": function_name(self.function),
            "broadcast_state": [item.name for item in self.descriptors],
        }
