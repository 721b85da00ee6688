"""Which strategy runs which windows, what explain shows of it, and which windows need a clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from emberflow.plan.window_specs import WindowSpec, WindowStrategy
from emberflow.streams import (
    AggregateFunction,
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    OutputTag,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    ReduceFunction,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    Trigger,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    Types,
)
from emberflow.streams.functions.window_functions import can_merge, shares_panes

ALIGNED, PANES = WindowStrategy.ALIGNED, WindowStrategy.PANES
SESSIONS, TRIGGERED = WindowStrategy.SESSIONS, WindowStrategy.TRIGGERED
TUMBLING, WIDE, SESSION = (
    TumblingEventTimeWindows(10),
    SlidingEventTimeWindows(60, 10),
    EventTimeSessionWindows(5),
)


def add(one: Any, other: Any) -> Any:
    return one + other


class Added(ReduceFunction[Any]):
    mergeable = True

    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1 + value2


def first(key: Any, context: Any, elements: Any) -> Any:
    return elements[:1]


@pytest.mark.parametrize(
    ("make", "strategy"),
    [
        (lambda keyed: keyed.window(TUMBLING).reduce(add), ALIGNED),
        (lambda keyed: keyed.window(TUMBLING).trigger(EventTimeTrigger.create()).reduce(add), ALIGNED),
        (lambda keyed: keyed.window(TUMBLING).side_output_late_data(OutputTag("late")).reduce(add), ALIGNED),
        (lambda keyed: keyed.window(TUMBLING).allowed_lateness(1).reduce(add), TRIGGERED),
        (lambda keyed: keyed.window(TUMBLING).trigger(CountTrigger.of(2)).reduce(add), TRIGGERED),
        (lambda keyed: keyed.window(TUMBLING).evictor(CountEvictor.of(2)).reduce(add), TRIGGERED),
        (lambda keyed: keyed.window(WIDE).sum(), PANES),
        (lambda keyed: keyed.window(WIDE).min(), PANES),
        (lambda keyed: keyed.window(WIDE).max_by(), ALIGNED),
        (lambda keyed: keyed.window(WIDE).reduce(Added()), PANES),
        (lambda keyed: keyed.window(WIDE).reduce(add), ALIGNED),
        (lambda keyed: keyed.window(WIDE).aggregate(Whole()), PANES),
        (lambda keyed: keyed.window(WIDE).aggregate(ReturnsOne()), ALIGNED),
        (lambda keyed: keyed.window(WIDE).process(first), ALIGNED),
        (lambda keyed: keyed.window(SlidingEventTimeWindows(30, 10)).sum(), ALIGNED),
        # Panes of one millisecond would be more than windows.
        (lambda keyed: keyed.window(SlidingEventTimeWindows(101, 10)).sum(), ALIGNED),
        (lambda keyed: keyed.window(SESSION).sum(), SESSIONS),
        (lambda keyed: keyed.window(SESSION).allowed_lateness(1).sum(), TRIGGERED),
        (lambda keyed: keyed.window(EventTimeSessionWindows.with_dynamic_gap(len)).process(first), SESSIONS),
        (lambda keyed: keyed.count_window(2).sum(), TRIGGERED),
        (lambda keyed: keyed.window(TumblingProcessingTimeWindows(10)).sum(), TRIGGERED),
    ],
)
def test_the_strategy_of_windows(make: Callable[[Any], Any], strategy: WindowStrategy) -> None:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    make(env.from_collection([1]).key_by(lambda value: value)).print()
    (spec,) = [spec for spec in env._program.specs() if isinstance(spec, WindowSpec)]
    assert spec.strategy is strategy
    assert ("strategy" in spec.describe()) == (strategy is not ALIGNED)


class Own(Trigger[Any, Any]):
    on_element = on_event_time = on_processing_time = None  # pyright: ignore[reportAssignmentType]


@pytest.mark.parametrize(
    ("assigner", "trigger", "needs_clock"),
    [
        (TUMBLING, None, False),
        (TUMBLING, PurgingTrigger.of(ContinuousEventTimeTrigger.of(5)), False),
        (TUMBLING, ProcessingTimeTrigger(), True),
        (TUMBLING, PurgingTrigger.of(ContinuousProcessingTimeTrigger.of(5)), True),
        (TUMBLING, Own(), True),
        (SESSION, None, False),
        (ProcessingTimeSessionWindows(5), CountTrigger.of(2), True),
        (GlobalWindows(), CountTrigger.of(2), False),
    ],
)
def test_which_windows_need_timers_of_the_clock(assigner: Any, trigger: Any, needs_clock: bool) -> None:
    spec = WindowSpec(assigner=assigner, trigger=trigger, reduce=add)
    assert spec.traits.sets_timers is needs_clock


def test_explain_shows_how_windows_fire() -> None:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    windowed = env.from_collection([1]).key_by(lambda value: value).window(WIDE)
    windowed.trigger(CountTrigger.of(2)).evictor(CountEvictor.of(5)).allowed_lateness(
        7
    ).side_output_late_data(OutputTag("late")).reduce(add).print()
    shown = env.explain()
    for text in (
        "assigner=SlidingEventTimeWindows(size_ms=60, slide_ms=10, offset_ms=0)",
        "trigger=CountTrigger(max_count=2)",
        "evictor=CountEvictor(max_count=5, do_evict_after=False)",
        "allowed_lateness_ms=7",
        "late_records_to=late",
        "strategy=triggered",
    ):
        assert text in shown


class Whole(AggregateFunction[Any, Any, Any]):
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a + acc_b


class Inherited(Whole):
    pass


class Nested(Whole):
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return [one + 1 for one in (lambda: acc_a)()]


class Passes(Whole):
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """Not needed here."""


class Raises(Whole):
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        raise NotImplementedError("merge")


class RaisesWithBoth(Whole):
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        raise NotImplementedError(f"merge {acc_a} {acc_b}")


class ReturnsOne(Whole):
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a


class Without(AggregateFunction[Any, Any, Any]):
    pass


@pytest.mark.parametrize(
    ("function", "merges"),
    [(Whole, True), (Inherited, True), (Nested, True), (Passes, False), (Raises, False), (Without, False)],
)
def test_aggregate_functions_that_merge(function: type[Any], merges: bool) -> None:
    assert can_merge(function()) is merges


@pytest.mark.parametrize(
    ("function", "shares"),
    [
        (Whole, True),
        (Inherited, True),
        *[(kind, False) for kind in (Passes, Raises, RaisesWithBoth, ReturnsOne, Without)],
    ],
)
def test_aggregate_functions_whose_windows_share_panes(function: type[Any], shares: bool) -> None:
    assert shares_panes(None, function()) is shares


def test_a_declared_type_does_not_hide_the_function() -> None:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    stream = env.from_collection([1], Types.LONG()).key_by(lambda value: value)
    stream.window(WIDE).reduce(Added()).print()
    (spec,) = [spec for spec in env._program.specs() if isinstance(spec, WindowSpec)]
    assert spec.strategy is PANES
