"""The parts of each kind of step: the user's functions and settings, as frozen data.

`operators.factory` turns a spec into a running operator; `describe` returns what can be stored as JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from emberflow.connectors.sink import Sink
from emberflow.connectors.source import Source
from emberflow.event_time.watermarks import WatermarkStrategy
from emberflow.plan.agents.agent_api import NO_API, AgentApi
from emberflow.plan.agents.agent_plan import AgentPlan
from emberflow.plan.agents.options import AgentExecutionOptions
from emberflow.plan.retry import NO_RETRY, Retries
from emberflow.plan.state_use import enables_ttl


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTraits:
    """What an engine must know about a step in order to host it; none of it applies to most steps."""

    may_wait: bool = False
    """Starts calls whose results come later: before an epoch ends, the engine waits for those in flight."""
    may_park: bool = False
    """Work in flight may outlive the epoch: it is stored and continues in a later one."""
    max_in_flight: int | None = None
    """Inputs that a task of the step may have unfinished, where it may park."""
    records_calls: bool = False
    """What it does depends on the durable call log."""
    sets_timers: bool = False
    """It has processing-time timers, which may be due while there is no input."""
    keyed_by_channel: bool = False
    """Its keys are the channels of its input, not keys of records."""
    shares_state: bool = False
    """It has entries that are the same in all its scopes: broadcast state."""
    acts: bool = False
    """It is executed for what it does, also if no sink takes what it emits."""
    package_data: tuple[tuple[str, str], ...] = ()
    """Packages of the program, each with the path of a folder or file in it that tasks of the step read."""


NO_TRAITS = StepTraits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """`kind` is the step's name in plans and error messages; a `keyed` step owns state."""

    kind: str = "step"
    function: Any = None

    @property
    def traits(self) -> StepTraits:
        return NO_TRAITS

    @property
    def keyed(self) -> bool:
        return False

    @property
    def stored_kind(self) -> str:
        """What manifests and savepoints call the step's state; see `plan/stored_kinds.py`."""
        return self.kind

    @property
    def keeps_type(self) -> bool:
        """Whether its records are of the type of those it gets."""
        return False

    def describe(self) -> dict[str, Any]:
        return {"function": function_name(self.function)} if self.function is not None else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSpec(Spec):
    kind: str = "source"
    source: Source[Any]

    def describe(self) -> dict[str, Any]:
        return {"source": self.source.describe(), "bounded": self.source.bounded}


@dataclass(frozen=True, slots=True, kw_only=True)
class MapSpec(Spec):
    kind: str = "map"
    call: Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterSpec(Spec):
    kind: str = "filter"
    call: Callable[[Any], Any]

    @property
    def keeps_type(self) -> bool:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatMapSpec(Spec):
    kind: str = "flat_map"
    call: Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec(Spec):
    kind: str = "process"
    call: Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestampsSpec(Spec):
    """A standard strategy: chained, without state."""

    kind: str = "timestamps"
    strategy: WatermarkStrategy
    per_batch: bool = False
    """Whether the watermark advances after each batch instead of each record."""

    @property
    def keeps_type(self) -> bool:
        return True

    def describe(self) -> dict[str, Any]:
        return describe_strategy(self.strategy)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkGeneratorSpec(Spec):
    """A custom generator: a separate step, keyed by channel."""

    kind: str = "watermark_generator"
    strategy: WatermarkStrategy

    @property
    def keeps_type(self) -> bool:
        return True

    @property
    def keyed(self) -> bool:
        return True

    @property
    def traits(self) -> StepTraits:
        return StepTraits(keyed_by_channel=True)

    def describe(self) -> dict[str, Any]:
        return describe_strategy(self.strategy)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedProcessSpec(Spec):
    """One function per input, `(value, context) -> results`."""

    kind: str = "keyed_process"
    calls: tuple[Callable[[Any, Any], Any], ...]
    on_timer: Callable[[int, Any], Any] | None = None
    """None if the function does nothing when a timer is due."""

    @property
    def keyed(self) -> bool:
        return True

    @property
    def traits(self) -> StepTraits:
        # Expired state is removed at a separate time, as by a timer.
        return StepTraits(sets_timers=self.on_timer is not None or enables_ttl(self.function))

    @property
    def keeps_type(self) -> bool:
        return self.kind == "keyed_filter"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReduceSpec(Spec):
    kind: str = "reduce"
    combine: Callable[[Any, Any], Any]

    @property
    def traits(self) -> StepTraits:
        return StepTraits(sets_timers=enables_ttl(self.function))

    @property
    def keeps_type(self) -> bool:
        return True

    @property
    def keyed(self) -> bool:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec(Spec):
    """`plan_id` identifies this use of the agent: its resources are created once for it in each process."""

    kind: str = "agent"
    plan: AgentPlan
    plan_id: str
    takes_pairs: bool = False
    """Whether inputs are (key, input) pairs. Outputs are always (key, output) pairs."""
    api: AgentApi = NO_API

    @property
    def keyed(self) -> bool:
        return True

    @property
    def traits(self) -> StepTraits:
        waits = self.plan.is_async
        return StepTraits(
            may_wait=waits,
            may_park=waits,
            max_in_flight=self.plan.config.get(AgentExecutionOptions.MAX_IN_FLIGHT) if waits else None,
            records_calls=True,
            acts=True,
            package_data=self.plan.package_data,
        )

    def describe(self) -> dict[str, Any]:
        return {"agent": self.plan.name, "actions": list(self.plan.actions)}


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncSpec(Spec):
    kind: str = "async_wait"
    call: Callable[[Any], Any]
    ordered: bool
    capacity: int
    timeout_ms: int
    retry: Retries = NO_RETRY
    on_timeout: Callable[[Any], Any] | None = None

    @property
    def traits(self) -> StepTraits:
        return StepTraits(may_wait=True)

    def describe(self) -> dict[str, Any]:
        return {
            "function": function_name(self.function),
            "ordered": self.ordered,
            "capacity": self.capacity,
            "timeout_ms": self.timeout_ms,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSpec(Spec):
    kind: str = "sink"
    sink: Sink[Any]

    def describe(self) -> dict[str, Any]:
        return {"sink": self.sink.describe()}


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedSpec(Spec):
    """A step that was loaded from JSON: can be displayed, not run."""

    details: tuple[tuple[str, Any], ...] = ()
    is_keyed: bool = False

    @property
    def keyed(self) -> bool:
        return self.is_keyed

    def describe(self) -> dict[str, Any]:
        return dict(self.details)


def function_name(function: Any) -> str:
    """`module.Class`, `function` or `<lambda>`, as a reader of a plan would name it."""
    name = getattr(function, "__qualname__", None)
    return name if isinstance(name, str) else type(function).__qualname__


def describe_strategy(strategy: WatermarkStrategy) -> dict[str, Any]:
    described: dict[str, Any] = {}
    if strategy.generator is not None:
        described["generator"] = function_name(strategy.generator)
    elif strategy.delay_ms is not None:
        described["max_out_of_orderness_ms"] = strategy.delay_ms
    if strategy.idle_ms is not None:
        described["idle_ms"] = strategy.idle_ms
    if strategy.alignment is not None:
        described["watermark_group"] = strategy.alignment.group
        described["max_drift_ms"] = strategy.alignment.max_drift_ms
    return described
