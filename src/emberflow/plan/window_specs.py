"""The parts of a window step, and which of the ways to run it is used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from math import gcd
from typing import Any

from emberflow.events.output_tag import OutputTag
from emberflow.plan.specs import Spec, StepTraits, function_name
from emberflow.plan.stored_kinds import PANES, detailed
from emberflow.windowing.assigners import (
    GlobalWindows,
    MergingWindowAssigner,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from emberflow.windowing.count_windows import CountSlidingWindowAssigner, CountTumblingWindowAssigner
from emberflow.windowing.evictors import Evictor
from emberflow.windowing.repeating_triggers import ContinuousEventTimeTrigger, CountTrigger
from emberflow.windowing.sessions import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
)
from emberflow.windowing.triggers import EventTimeTrigger, NeverTrigger, PurgingTrigger, Trigger

_SHARED_BY = 4
"""Sliding windows share panes where a record belongs to at least so many windows."""

_WITHOUT_PROCESSING_TIME = (EventTimeTrigger, CountTrigger, ContinuousEventTimeTrigger, NeverTrigger)
_ENDLESS = (GlobalWindows, CountTumblingWindowAssigner, CountSlidingWindowAssigner)
"""Assigners of windows that no time ends."""


_OF_TIME = (
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
)


class WindowStrategy(Enum):
    """How windows are run. All give the same results; the first three are faster and only for some windows."""

    ALIGNED = "aligned"
    """Tumbling and sliding windows that fire once, at the end: each window has its contents and one timer."""
    PANES = "panes"
    """Sliding windows whose contents can be merged: contents are kept per pane, which all windows over it share."""
    SESSIONS = "sessions"
    """Sessions that fire once, at the end."""
    TRIGGERED = "triggered"
    """Everything else: a trigger decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSpec(Spec):
    """`reduce` or `aggregate` make the window incremental; `process` receives the contents of the window that fires, as
    `process(key, context, elements)`."""

    kind: str = "window"
    assigner: WindowAssigner[Any, Any]
    reduce: Callable[[Any, Any], Any] | None = None
    aggregate: Any = None
    process: Any = None
    trigger: Trigger[Any, Any] | None = None
    """None: the assigner's own."""
    evictor: Evictor[Any, Any] | None = None
    allowed_lateness_ms: int = 0
    late_tag: OutputTag[Any] | None = None
    """The side output for late records, which are otherwise dropped and counted."""
    mergeable: bool = False
    """Whether windows that do not merge may be put together from the contents of panes, in order of time."""

    @property
    def keyed(self) -> bool:
        return True

    @property
    def keeps_type(self) -> bool:
        return self.reduce is not None and self.process is None

    @property
    def stored_kind(self) -> str:
        details = [_contents(self), _windows(self.assigner, merging=self.merging)]
        if self.strategy is WindowStrategy.PANES:
            assigner: Any = self.assigner
            size_ms = pane_size(assigner)
            details.append(f"{PANES}{size_ms} ms, offset {assigner.offset_ms % size_ms} ms")
        return detailed(self.kind, *details)

    @property
    def traits(self) -> StepTraits:
        return StepTraits(sets_timers=_uses_processing_time(self))

    @property
    def strategy(self) -> WindowStrategy:
        """The fastest way that suits these windows."""
        # Given or not: it is what windows of event time have anyway.
        usual = self.trigger is None or type(self.trigger) is EventTimeTrigger
        if not usual or self.evictor is not None or self.allowed_lateness_ms:
            return WindowStrategy.TRIGGERED
        kind = type(self.assigner)
        if kind is SlidingEventTimeWindows and self.mergeable and _shares_panes(self.assigner):
            return WindowStrategy.PANES
        if kind in (TumblingEventTimeWindows, SlidingEventTimeWindows):
            return WindowStrategy.ALIGNED
        if kind in (EventTimeSessionWindows, DynamicEventTimeSessionWindows):
            return WindowStrategy.SESSIONS
        return WindowStrategy.TRIGGERED

    @property
    def merging(self) -> bool:
        """Whether windows may become one."""
        return isinstance(self.assigner, MergingWindowAssigner)

    def describe(self) -> dict[str, Any]:
        named = {"reduce": self.reduce, "aggregate": self.aggregate, "process": self.process}
        described: dict[str, Any] = {"assigner": repr(self.assigner)}
        described.update((name, function_name(value)) for name, value in named.items() if value is not None)
        if self.trigger is not None:
            described["trigger"] = _shown(self.trigger)
        if self.evictor is not None:
            described["evictor"] = _shown(self.evictor)
        if self.allowed_lateness_ms:
            described["allowed_lateness_ms"] = self.allowed_lateness_ms
        if self.late_tag is not None:
            described["late_records_to"] = self.late_tag.tag_id
        if self.strategy is not WindowStrategy.ALIGNED:
            described["strategy"] = self.strategy.value
        return described


def pane_size(assigner: SlidingEventTimeWindows) -> int:
    """The largest piece of time that is either wholly inside or wholly outside of every window."""
    return gcd(assigner.size_ms, assigner.slide_ms)


def _contents(spec: WindowSpec) -> str:
    """What a window holds."""
    if spec.evictor is not None:
        return "elements with timestamps"
    if spec.reduce is not None:
        return "reduced values"
    return "elements" if spec.aggregate is None else "accumulators"


def _windows(assigner: WindowAssigner[Any, Any], *, merging: bool) -> str:
    """Which windows there may be, and what ends them."""
    if type(assigner) not in _OF_TIME:
        return type(assigner).__name__
    domain = "event-time" if assigner.is_event_time() else "processing-time"
    return f"{domain} {'sessions' if merging else 'windows'}"


def _shares_panes(assigner: Any) -> bool:
    # Where size and slide have hardly a common divisor, panes would be many and small.
    return assigner.size_ms >= _SHARED_BY * assigner.slide_ms and pane_size(assigner) * 4 >= assigner.slide_ms


def _uses_processing_time(spec: WindowSpec) -> bool:
    trigger = spec.trigger or spec.assigner.get_default_trigger(None)
    while type(trigger) is PurgingTrigger:
        trigger = trigger.nested_trigger
    ends = not spec.assigner.is_event_time() and type(spec.assigner) not in _ENDLESS
    return ends or type(trigger) not in _WITHOUT_PROCESSING_TIME


def _shown(value: object) -> str:
    """The repr of what is data, the name of what has none."""
    shown = type(value).__repr__ is not object.__repr__
    return repr(value) if shown else function_name(value)
