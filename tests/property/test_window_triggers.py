"""Triggers, evictors and both kinds of time on windows of every kind against a model of Flink's window operator, with a
restart at any point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK
from emberflow.streams import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    OutputTag,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeEvictor,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from emberflow.testing import ManualClock, OperatorHarness
from tests.support.window_model import (
    AtTheEnd,
    Continuous,
    Counting,
    Element,
    Purging,
    TriggerModel,
    Window,
    WindowModel,
)

LATE: OutputTag[Any] = OutputTag("late")


@dataclass(frozen=True)
class Kind:
    assigner: Any
    assign: Callable[[int, int], list[Window]]
    time: str = "event"
    merging: bool = False


def covering(size: int, slide: int, offset: int) -> Callable[[int, int], list[Window]]:
    def windows(time: int, value: int) -> list[Window]:
        last = time - (time - offset) % slide
        return [(start, start + size) for start in range(last, time - size, -slide)]

    return windows


def session(gap: int) -> Callable[[int, int], list[Window]]:
    return lambda time, value: [(time, time + gap)]


KINDS = {
    "tumbling": Kind(TumblingEventTimeWindows.of(10, 2), covering(10, 10, 2)),
    "sliding": Kind(SlidingEventTimeWindows.of(12, 5, 1), covering(12, 5, 1)),
    "sessions": Kind(EventTimeSessionWindows.with_gap(4), session(4), merging=True),
    "by the clock": Kind(TumblingProcessingTimeWindows.of(10, 2), covering(10, 10, 2), "processing"),
    "sliding by the clock": Kind(SlidingProcessingTimeWindows.of(12, 5), covering(12, 5, 0), "processing"),
    "sessions by the clock": Kind(
        ProcessingTimeSessionWindows.with_gap(4), session(4), "processing", merging=True
    ),
}
TRIGGERS: dict[str, Callable[[int], tuple[Any, TriggerModel]]] = {
    "event time": lambda number: (EventTimeTrigger(), AtTheEnd("event")),
    "processing time": lambda number: (ProcessingTimeTrigger(), AtTheEnd("processing")),
    "count": lambda number: (CountTrigger.of(number), Counting(number)),
    "continuous": lambda number: (ContinuousEventTimeTrigger.of(number), Continuous("event", number)),
    "continuous by the clock": lambda number: (
        ContinuousProcessingTimeTrigger.of(number),
        Continuous("processing", number),
    ),
}


def latest(count: int) -> Callable[[list[Element]], list[Element]]:
    return lambda elements: elements[max(0, len(elements) - count) :]


def recent(span: int) -> Callable[[list[Element]], list[Element]]:
    def kept(elements: list[Element]) -> list[Element]:
        newest = max((stamp for _, stamp in elements), default=0)
        return [element for element in elements if element[1] > newest - span]

    return kept


EVICTORS = {
    "count": (CountEvictor, latest),
    "time": (TimeEvictor, recent),
}
step = st.one_of(
    st.tuples(st.just("record"), st.sampled_from("ab"), st.integers(0, 12), st.integers(0, 4)),
    st.tuples(st.just("clock"), st.integers(1, 6)),
    st.tuples(st.just("watermark"), st.integers(0, 8)),
    st.tuples(st.just("restart")),
)


@settings(max_examples=250)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    trigger=st.sampled_from(sorted(TRIGGERS)),
    number=st.sampled_from([1, 2, 3, 4, 7]),
    purges=st.booleans(),
    lateness=st.sampled_from([0, 0, 3, 8]),
    evictor=st.sampled_from([None, None, ("count", 2), ("count", 1), ("time", 4)]),
    after=st.booleans(),
    steps=st.lists(step, max_size=40),
)
def test_windows_fire_as_the_model(
    kind: str,
    trigger: str,
    number: int,
    purges: bool,
    lateness: int,
    evictor: tuple[str, int] | None,
    after: bool,
    steps: list[Any],
) -> None:
    windows = KINDS[kind]
    ours, model_trigger = TRIGGERS[trigger](number)
    if purges:
        ours, model_trigger = PurgingTrigger.of(ours), Purging(model_trigger)
    if windows.time == "processing":
        lateness = 0
    model = WindowModel(windows.assign, windows.time, windows.merging, model_trigger, lateness)

    def build(stream: Any) -> Any:
        windowed = stream.key_by(lambda record: record[0]).window(windows.assigner).trigger(ours)
        if lateness:
            windowed = windowed.allowed_lateness(lateness)
        if evictor is not None:
            windowed = windowed.evictor(EVICTORS[evictor[0]][0].of(evictor[1], after))
        fired = windowed.side_output_late_data(LATE).process(
            lambda key, context, elements: [(key, tuple(context.window()), [value for _, value in elements])]
        )
        return {"main": fired, "late": fired.get_side_output(LATE)}

    if evictor is not None:
        model.evict, model.evicts_after = EVICTORS[evictor[0]][1](evictor[1]), after
    fired, late = driven(build, model, steps)
    for key in "ab":
        assert of_key(fired, key) == of_key(model.fired, key)
    assert sorted(late) == sorted(model.late)


def driven(build: Callable[[Any], Any], model: WindowModel, steps: list[Any]) -> tuple[list[Any], list[Any]]:
    """What the operator emits for the steps, which the model follows."""
    clock = ManualClock(0)
    harness = OperatorHarness(build, clock=clock)
    fired, late = list[Any](), list[Any]()
    time, watermark = 0, MIN_WATERMARK
    for number, (what, *args) in enumerate(steps):
        if what == "record":
            key, back, ahead = args
            time += ahead
            stamp = max(0, time - back)
            model.advance(watermark)
            model.record(key, number, stamp)
            harness.send([(key, number)], [stamp], [watermark])
        elif what == "clock":
            harness.advance_clock(args[0])
            model.pass_time(args[0])
        elif what == "watermark":
            watermark = max(watermark, time - args[0])
        else:
            fired += harness.values
            late += harness.outlet("late").values
            harness = OperatorHarness(build, clock=clock, restore=harness.snapshot())
    for end in (watermark, MAX_WATERMARK - 1):
        harness.watermark(end)
        model.advance(end)
        harness.advance_clock(100)
        model.pass_time(100)
    return fired + harness.values, late + harness.outlet("late").values


def of_key(fired: list[Any], key: str) -> list[tuple[Window, list[int]]]:
    return [(window, sorted(values)) for item, window, values in fired if item == key]
