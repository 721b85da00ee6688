"""Windows of every kind against a slow, obvious model: any records, any split into batches, any crash points."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK
from emberflow.streams import (
    AggregateFunction,
    CountTrigger,
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    OutputTag,
    PurgingTrigger,
    ReduceFunction,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
)
from emberflow.testing import OperatorHarness

LATE: OutputTag[Any] = OutputTag("late")


@dataclass(frozen=True)
class Setup:
    """Windows, and how the model computes those of a record."""

    name: str
    assigner: Any
    windows: Callable[[int, int], list[tuple[int, int]]]
    """timestamp and value -> windows, latest first"""
    merging: bool = False


def covering(size: int, slide: int, offset: int) -> Callable[[int, int], list[tuple[int, int]]]:
    def windows(stamp: int, value: int) -> list[tuple[int, int]]:
        starts = [offset + number * slide for number in range(100, -100, -1)]
        return [(start, start + size) for start in starts if start <= stamp < start + size]

    return windows


def gap_of(value: int) -> int:
    return 2 + value % 5


SETUPS = [
    Setup("tumbling", TumblingEventTimeWindows.of(5, 2), covering(5, 5, 2)),
    Setup("sliding", SlidingEventTimeWindows.of(7, 3, -1), covering(7, 3, -1)),
    Setup("with gaps", SlidingEventTimeWindows.of(2, 5), covering(2, 5, 0)),
    Setup("panes", SlidingEventTimeWindows.of(12, 3, 1), covering(12, 3, 1)),
    Setup("uneven panes", SlidingEventTimeWindows.of(18, 4, 3), covering(18, 4, 3)),
    Setup(
        "sessions",
        EventTimeSessionWindows.with_gap(4),
        lambda stamp, value: [(stamp, stamp + 4)],
        merging=True,
    ),
    Setup(
        "dynamic sessions",
        DynamicEventTimeSessionWindows.with_dynamic_gap(lambda record: gap_of(record[1])),
        lambda stamp, value: [(stamp, stamp + gap_of(value))],
        merging=True,
    ),
]


@dataclass
class Pane:
    """A window of a key in the model."""

    elements: list[int] = field(default_factory=list[int])
    count: int = 0


@dataclass
class Model:
    """Everything that is known, searched anew for every record and watermark."""

    setup: Setup
    lateness: int
    every: int | None
    """Fires for so many records, instead of at the end."""
    purges: bool
    watermark: int = MIN_WATERMARK
    keys: dict[str, dict[tuple[int, int], Pane]] = field(
        default_factory=dict[str, dict[tuple[int, int], Pane]]
    )
    fired: list[tuple[str, int, int, Any]] = field(default_factory=list[Any])
    late: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    def advance(self, watermark: int) -> None:
        if watermark <= self.watermark:
            return
        due = [
            (window[1] - 1, key, window)
            for key, windows in self.keys.items()
            for window in windows
            if self.watermark < window[1] - 1 <= watermark
        ]
        self.watermark = watermark
        for _, key, window in sorted(due):
            if self.every is None:
                self.fire(key, window)
        for windows in self.keys.values():
            for window in [item for item in windows if item[1] - 1 + self.lateness <= watermark]:
                del windows[window]

    def record(self, key: str, value: int, stamp: int) -> None:
        windows = self.keys.setdefault(key, {})
        added = False
        for window in self.setup.windows(stamp, value):
            target = self.merged(windows, window) if self.setup.merging else window
            if target[1] - 1 + self.lateness <= self.watermark:
                windows.pop(target, None)
                continue
            added = True
            pane = windows.setdefault(target, Pane())
            pane.elements.append(value)
            pane.count += 1
            if self.every is not None and pane.count >= self.every:
                pane.count = 0
                self.fire(key, target)
            elif self.every is None and target[1] - 1 <= self.watermark:
                self.fire(key, target)
        if not added and stamp + self.lateness <= self.watermark:
            self.late.append((key, value))

    def merged(self, windows: dict[tuple[int, int], Pane], new: tuple[int, int]) -> tuple[int, int]:
        touching = [window for window in windows if window[0] <= new[1] and new[0] <= window[1]]
        target = (
            (min(new[0], *(w[0] for w in touching)), max(new[1], *(w[1] for w in touching)))
            if touching
            else new
        )
        merged = Pane()
        for window in touching:
            pane = windows.pop(window)
            merged.elements += pane.elements
            merged.count += pane.count
        windows[target] = merged
        return target

    def fire(self, key: str, window: tuple[int, int]) -> None:
        pane = self.keys[key][window]
        if pane.elements:
            self.fired.append((key, *window, tuple(sorted(pane.elements))))
        if self.purges:
            pane.elements = []


class Values(AggregateFunction[tuple[str, int], list[int], tuple[int, ...]]):
    """Its accumulator is changed in place."""

    def create_accumulator(self) -> list[int]:
        return []

    def add(self, value: tuple[str, int], accumulator: list[int]) -> list[int]:
        accumulator.append(value[1])
        return accumulator

    def get_result(self, accumulator: list[int]) -> tuple[int, ...]:
        return tuple(sorted(accumulator))

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        acc_b.extend(acc_a)
        return acc_b


class Unmergeable(Values):
    def merge(self, acc_a: list[int], acc_b: list[int]) -> Any:
        raise NotImplementedError


class Sum(ReduceFunction[Any]):
    mergeable = True

    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1[0], value1[1] + value2[1]


def of_elements(key: str, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
    window: TimeWindow = context.window()
    yield key, window.start, window.end, tuple(sorted(value for _, value in elements))


def of_result(key: str, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
    (found,) = elements
    yield key, context.window().start, context.window().end, found


def of_total(key: str, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
    ((_, found),) = elements
    yield key, context.window().start, context.window().end, found


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "process": lambda windowed: windowed.process(of_elements),
    "aggregate": lambda windowed: windowed.aggregate(Values(), of_result),
    "sum": lambda windowed: windowed.reduce(lambda one, other: (one[0], one[1] + other[1]), of_total),
    "mergeable sum": lambda windowed: windowed.reduce(Sum(), of_total),
    "unmergeable": lambda windowed: windowed.aggregate(Unmergeable(), of_result),
}


@st.composite
def cases(draw: st.DrawFn) -> tuple[Setup, str, int, int | None, bool, list[tuple[str, int, int, int]]]:
    setup = draw(st.sampled_from(SETUPS))
    function = draw(
        st.sampled_from([name for name in FUNCTIONS if not (setup.merging and name == "unmergeable")])
    )
    lateness = draw(st.sampled_from([0, 0, 3]))
    every = draw(st.sampled_from([None, None, 1, 2, 3]))
    purges = every is not None and draw(st.booleans())
    raw = draw(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 40), st.integers(0, 6)), max_size=25))
    records: list[tuple[str, int, int, int]] = []
    watermark = MIN_WATERMARK
    for number, (key, stamp, delay) in enumerate(raw):
        records.append((key, number, stamp, watermark))
        watermark = max(watermark, stamp - delay)
    return setup, function, lateness, every, purges, records


@settings(max_examples=150, deadline=None)
@given(case=cases(), data=st.data())
def test_windows_behave_as_the_model(case: Any, data: st.DataObject) -> None:
    setup, function, lateness, every, purges, records = case

    def build(stream: Any) -> Any:
        windowed = stream.key_by(lambda record: record[0]).window(setup.assigner)
        if lateness:
            windowed = windowed.allowed_lateness(lateness)
        if every is not None:
            trigger = CountTrigger.of(every)
            windowed = windowed.trigger(PurgingTrigger.of(trigger) if purges else trigger)
        made = FUNCTIONS[function](windowed.side_output_late_data(LATE))
        return {"main": made, "late": made.get_side_output(LATE)}

    cuts = data.draw(st.sets(st.integers(1, max(len(records) - 1, 1))), label="cuts")
    crashes = data.draw(st.sets(st.sampled_from(sorted(cuts)) if cuts else st.nothing()), label="crashes")
    fired, late = run(build, records, cuts, crashes)
    model = Model(setup, lateness, every, purges)
    for key, value, stamp, watermark in records:
        model.advance(watermark)
        model.record(key, value, stamp)
    model.advance(MAX_WATERMARK)
    assert late == model.late
    if function.endswith("sum"):
        model.fired = [(key, start, end, sum(values)) for key, start, end, values in model.fired]
    for key in "ab":
        assert [item for item in fired if item[0] == key] == [item for item in model.fired if item[0] == key]


def run(
    build: Callable[[Any], Any],
    records: list[tuple[str, int, int, int]],
    cuts: set[int],
    crashes: set[int],
) -> tuple[list[Any], list[Any]]:
    harness, fired, late = OperatorHarness(build), list[Any](), list[Any]()
    edges = [0, *sorted(cut for cut in cuts if cut < len(records)), len(records)]
    for begin, end in pairwise(edges):
        if begin in crashes:
            fired += harness.values
            late += harness.outlet("late").values
            harness = OperatorHarness(build, restore=harness.snapshot())
        part = records[begin:end]
        if part:
            harness.send(
                [(key, value) for key, value, _, _ in part],
                [stamp for _, _, stamp, _ in part],
                [watermark for _, _, _, watermark in part],
            )
    harness.end()
    assert harness.scope is not None
    left = {key: entry for key, entry in harness.scope.entries.items() if entry}
    assert left == {}, "nothing is left of windows that have ended"
    return fired + harness.values, late + harness.outlet("late").values
