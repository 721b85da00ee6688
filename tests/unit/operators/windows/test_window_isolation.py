"""Windows do not see each other's records, and functions do not see the state of other keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from emberflow.streams import (
    AggregateFunction,
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    ProcessWindowFunction,
    ReduceFunction,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    Types,
    ValueStateDescriptor,
    Window,
    WindowAssigner,
)
from emberflow.testing import OperatorHarness
from emberflow.windowing.windows import window_name


def first(value: Any) -> Any:
    return value[0]


def run(build: Callable[[Any], Any], records: list[Any]) -> list[Any]:
    harness = OperatorHarness(build)
    harness.send(records, [record[-1] for record in records])
    harness.end()
    return harness.values


def extended(one: Any, other: Any) -> Any:
    """Changes its first argument."""
    one[1].extend(other[1])
    return one


class Seen(ProcessWindowFunction[Any, Any, Any, Any]):
    """Changes elements."""

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        for element in elements:
            element[1].append("seen")
            yield list(element[1])


@pytest.mark.parametrize("lateness_ms", [0, 1], ids=["aligned", "triggered"])
def test_overlapping_windows_have_their_own_records(lateness_ms: int) -> None:
    sliding = SlidingEventTimeWindows.of(10, 5)
    records = [("a", [1], 1), ("a", [2], 2), ("a", [3], 3)]
    found = run(
        lambda stream: stream.key_by(first).window(sliding).allowed_lateness(lateness_ms).reduce(extended),
        records,
    )
    assert [values for _, values, _ in found] == [[1, 2, 3], [1, 2, 3]]
    found = run(
        lambda stream: stream.key_by(first).window(sliding).allowed_lateness(lateness_ms).process(Seen()),
        [("a", [1], 1)],
    )
    assert found == [[1, "seen"], [1, "seen"]]


def test_a_function_does_not_change_what_a_window_with_an_evictor_keeps() -> None:
    def windowed(stream: Any) -> Any:
        windows = stream.key_by(first).window(TumblingEventTimeWindows.of(10))
        return windows.trigger(CountTrigger.of(1)).evictor(CountEvictor.of(10))

    records = [("a", [1], 1), ("a", [2], 2)]
    found = run(lambda stream: windowed(stream).reduce(extended), records)
    assert [values for _, values, _ in found] == [[1], [1, 2]]
    records = [("a", [1], 1), ("a", [2], 2)]
    assert run(lambda stream: windowed(stream).process(Seen()), records) == [[1, "seen"]] * 2 + [[2, "seen"]]


def test_results_of_panes_are_not_changed_by_later_steps() -> None:
    def times_ten(value: Any) -> Any:
        value[1] *= 10
        return list(value)

    windows = SlidingEventTimeWindows.of(20, 5)
    found = run(lambda stream: stream.key_by(first).window(windows).sum(1).map(times_ten), [["a", 1, 1]])
    assert found == [["a", 10, 1]] * 4


class Counting:
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def next(self) -> int:
        number = (self.count.value() or 0) + 1
        self.count.update(number)
        return number


class Numbered(Counting, AggregateFunction[Any, int, int]):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return self.next()

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return max(acc_a, acc_b)


class Reduced(Counting, ReduceFunction[Any]):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1[0], 1 + self.next(), value2[2]


class Gap(Counting, SessionWindowTimeGapExtractor):
    def extract(self, element: Any) -> int:
        return 10 * self.next()


RECORDS = [("a", 0, 1), ("b", 0, 2), ("a", 0, 3), ("b", 0, 4), ("a", 0, 5), ("b", 0, 6)]


@pytest.mark.parametrize("lateness_ms", [0, 1])
@pytest.mark.parametrize(
    ("assigner", "results"),
    [
        (TumblingEventTimeWindows.of(100), [3, 3]),
        (EventTimeSessionWindows.with_gap(100), [3, 3]),
        (SlidingEventTimeWindows.of(400, 100), [3, 3] * 4),
    ],
)
def test_state_of_window_functions_belongs_to_the_key(assigner: Any, results: Any, lateness_ms: int) -> None:
    def windowed(stream: Any) -> Any:
        return stream.key_by(first).window(assigner).allowed_lateness(lateness_ms)

    found = run(lambda stream: windowed(stream).aggregate(Numbered()), RECORDS)
    if len(results) == 2:
        assert found == results
        assert [
            total for _, total, _ in run(lambda stream: windowed(stream).reduce(Reduced()), RECORDS)
        ] == results
    else:
        assert found[0::2] == found[1::2], "both keys have the same number of records"


@pytest.mark.parametrize("lateness_ms", [0, 1])
def test_state_of_a_gap_belongs_to_the_key(lateness_ms: int) -> None:
    def build(stream: Any) -> Any:
        sessions = EventTimeSessionWindows.with_dynamic_gap(Gap())
        windowed = stream.key_by(first).window(sessions).allowed_lateness(lateness_ms)
        return windowed.process(lambda key, context, elements: [(key, context.window().end)])

    assert run(build, RECORDS) == [("a", 35), ("b", 36)]


def test_a_declared_type_does_not_keep_a_reduce_function_from_its_state() -> None:
    def build(stream: Any) -> Any:
        typed = stream.map(lambda value: value, Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()]))
        return typed.key_by(first).window(TumblingEventTimeWindows.of(100)).reduce(Reduced())

    assert run(build, RECORDS) == [("a", 3, 5), ("b", 3, 6)]


def starts(assigner: Any, lateness_ms: int) -> Callable[[Any], Any]:
    return lambda stream: (
        stream.key_by(first)
        .window(assigner)
        .allowed_lateness(lateness_ms)
        .process(lambda key, context, elements: [(key, context.window().start)])
    )


@pytest.mark.parametrize("lateness_ms", [1000, 2**63 - 1])
def test_a_window_that_is_kept_for_late_records_fires_once(lateness_ms: int) -> None:
    harness = OperatorHarness(starts(TumblingEventTimeWindows.of(10), lateness_ms))
    for stamp in (1, 26, 41):
        harness.send([("a", stamp)], [stamp], watermark=stamp + 14)
    harness.end()
    assert harness.values == [("a", 0), ("a", 20), ("a", 40)]


def test_sessions_that_lose_their_lateness_do_not_fire_again() -> None:
    sessions = EventTimeSessionWindows.with_gap(5)
    before = OperatorHarness(starts(sessions, 1000))
    before.send([("a", 1), ("a", 11), ("a", 25)], [1, 11, 25], watermark=25)
    assert before.values == [("a", 1), ("a", 11)]
    for more in ([], [("a", 27)]):
        harness = OperatorHarness(starts(sessions, 0), restore=before.snapshot())
        harness.send(more, [stamp for _, stamp in more])
        harness.end()
        assert harness.values == [("a", 25)]


class Slotted(Window):
    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def max_timestamp(self) -> int:
        return self.number * 10 + 9

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slotted) and other.number == self.number

    def __hash__(self) -> int:
        return self.number


class AllTheSame(Slotted):
    __slots__ = ()

    def __repr__(self) -> str:
        return "ten ms"


class Own(WindowAssigner[Any, Any]):
    def __init__(self, kind: Callable[[int], Any]) -> None:
        self.kind = kind

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> Any:
        return [self.kind(timestamp // 10)]

    def get_default_trigger(self, env: Any) -> Any:
        return EventTimeTrigger.create()

    def is_event_time(self) -> bool:
        return True


@pytest.mark.parametrize("kind", [Slotted, AllTheSame])
def test_windows_of_your_own_have_their_own_state(kind: Any) -> None:
    found = run(
        lambda stream: (
            stream.key_by(first)
            .window(Own(kind))
            .trigger(CountTrigger.of(2))
            .process(lambda key, context, elements: [[stamp for _, stamp in elements]])
        ),
        [("a", 1), ("a", 12), ("a", 13)],
    )
    assert found == [[12, 13]]
    assert window_name(kind(1)) == window_name(kind(1)) != window_name(kind(2))
    assert window_name(TimeWindow(0, 10)) == "0:10"
