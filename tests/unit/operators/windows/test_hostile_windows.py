"""Windows with keys, times and functions that are easy to get wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from emberflow.errors import StepFailed
from emberflow.event_time.timestamps import MAX_TIMESTAMP, NO_TIMESTAMP
from emberflow.streams import (
    AggregateFunction,
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    ListStateDescriptor,
    MapStateDescriptor,
    ProcessWindowFunction,
    PurgingTrigger,
    ReduceFunction,
    SlidingEventTimeWindows,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
    ValueStateDescriptor,
    Window,
    WindowAssigner,
)
from emberflow.testing import OperatorHarness

SESSIONS = EventTimeSessionWindows.with_gap(5)


def first(value: Any) -> Any:
    return value[0]


def listed(key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
    yield key, context.window().max_timestamp(), [value for _, value in elements]


def left(harness: OperatorHarness) -> dict[Any, Any]:
    assert harness.scope is not None
    assert len(harness.scope.event_timers) == 0
    return {key: dict(entry) for key, entry in harness.scope.entries.items() if entry}


ASSIGNERS = {
    "tumbling": TumblingEventTimeWindows.of(10),
    "panes": SlidingEventTimeWindows.of(40, 10),
    "sessions": SESSIONS,
}


class Sum(ReduceFunction[Any]):
    """Lets sliding windows share panes."""

    mergeable = True

    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1[0], value1[1] + value2[1]


@pytest.mark.parametrize("lateness", [0, 3])
@pytest.mark.parametrize("name", ASSIGNERS)
def test_keys_of_any_kind(name: str, lateness: int) -> None:
    keys = [None, 1, True, 1.0, 10**40, "", b"", (None, 1), frozenset({1}), False, 0, -0.0]

    def build(stream: Any) -> Any:
        windowed = stream.key_by(first).window(ASSIGNERS[name]).allowed_lateness(lateness)
        return windowed.reduce(Sum())

    harness = OperatorHarness(build)
    for stamp in (1, 2):
        harness.send([(key, 1) for key in keys], [stamp] * len(keys))
        harness = OperatorHarness(build, restore=harness.snapshot())
    harness.end()
    # Equal keys are one key: 1, True and 1.0; 0, False and -0.0.
    assert {value for key, value in harness.values if key == 1} == {6}
    assert {value for key, value in harness.values if key == 0} == {6}
    assert {value for key, value in harness.values if key is None} == {2}
    assert {value for key, value in harness.values if key == 10**40} == {2}
    assert left(harness) == {}


@pytest.mark.parametrize("lateness", [0, 3])
@pytest.mark.parametrize("name", ASSIGNERS)
def test_the_first_and_the_last_timestamps(name: str, lateness: int) -> None:
    def build(stream: Any) -> Any:
        windowed = stream.key_by(first).window(ASSIGNERS[name]).allowed_lateness(lateness)
        return windowed.reduce(Sum())

    harness = OperatorHarness(build)
    harness.send([("a", 1), ("a", 2)], [NO_TIMESTAMP + 1, MAX_TIMESTAMP - 100])
    harness.end()
    windows = 4 if name == "panes" else 1
    assert [value for _, value in harness.values] == [1] * windows + [2] * windows
    assert left(harness) == {}
    with pytest.raises(StepFailed, match="ends after the last timestamp"):
        OperatorHarness(build).send([("a", 1)], [MAX_TIMESTAMP])


def test_an_endless_lateness() -> None:
    harness = OperatorHarness(
        lambda stream: (
            stream.key_by(first)
            .window(TumblingEventTimeWindows.of(10))
            .allowed_lateness(2**63 - 1)
            .process(listed)
        )
    )
    harness.send([("a", 1)], [1], watermark=1_000_000)
    harness.send([("a", 2)], [2])
    assert [values for *_, values in harness.values] == [[1], [1, 2]]


def test_no_records() -> None:
    for assigner in (*ASSIGNERS.values(), GlobalWindows.create()):
        harness = OperatorHarness(lambda stream, a=assigner: stream.key_by(first).window(a).process(listed))
        harness.send([])
        harness.watermark(100)
        harness.end()
        assert harness.values == []


class Forgetful(Trigger[Any, Any]):
    """Removes neither its state nor its timers, and sets one long after the end of its windows."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        ctx.register_event_time_timer(window.max_timestamp())
        ctx.register_event_time_timer(window.max_timestamp() + 1_000)
        ctx.get_partitioned_state(ListStateDescriptor("seen")).add(element)
        ctx.get_partitioned_state(MapStateDescriptor("more")).put(timestamp, element)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.FIRE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Any) -> None:
        pass


@pytest.mark.parametrize(
    "assigner", [TumblingEventTimeWindows.of(10), SESSIONS], ids=["tumbling", "sessions"]
)
def test_nothing_is_left_of_a_trigger_that_does_not_clean_up(assigner: Any) -> None:
    harness = OperatorHarness(
        lambda stream: stream.key_by(first).window(assigner).trigger(Forgetful()).process(listed)
    )
    harness.send([("a", 1), ("a", 6), ("a", 4), ("b", 2)], [1, 6, 4, 2], watermark=50)
    assert sorted(values for *_, values in harness.values) == [[1, 6, 4], [2]]
    assert left(harness) == {}


class KeepsState(ProcessWindowFunction[Any, Any, Any, Any]):
    """Never clears the state of its windows."""

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        state = context.window_state()
        state.get_state(ValueStateDescriptor("one")).update(1)
        state.get_list_state(ListStateDescriptor("many")).add_all(range(10))
        state.get_map_state(MapStateDescriptor("by")).put("x", 1)
        yield key, context.window(), len(list(elements))


@pytest.mark.parametrize("lateness", [0, 3])
def test_nothing_is_left_of_the_state_of_windows(lateness: int) -> None:
    def build(stream: Any) -> Any:
        return (
            stream.key_by(first)
            .window(TumblingEventTimeWindows.of(10))
            .allowed_lateness(lateness)
            .process(KeepsState())
        )

    harness = OperatorHarness(build)
    harness.send([("a", 1), ("a", 11)], [1, 11], watermark=10)
    harness = OperatorHarness(build, restore=harness.snapshot())
    harness.end()
    assert left(harness) == {}


def test_nothing_is_left_of_the_state_of_count_windows_but_the_count() -> None:
    harness = OperatorHarness(lambda stream: stream.key_by(first).count_window(2).process(KeepsState()))
    harness.send([("a", number) for number in range(5)])
    assert [found[2] for found in harness.values] == [2, 2]
    state = left(harness)["a"]
    assert len(state["$windows"]) == 1
    assert not [name for name in state if name.startswith("$window/")]


def test_windows_that_merge_have_no_state() -> None:
    harness = OperatorHarness(lambda stream: stream.key_by(first).window(SESSIONS).process(KeepsState()))
    harness.send([("a", 1)], [1])
    with pytest.raises(Exception, match=r"merge have no state[\s\S]*global_state"):
        harness.end()


class Wrong(Trigger[Any, Any]):
    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> Any:
        return None

    on_event_time = on_processing_time = on_element  # pyright: ignore[reportAssignmentType]


def test_a_trigger_that_returns_nothing() -> None:
    harness = OperatorHarness(
        lambda stream: (
            stream.key_by(first).window(TumblingEventTimeWindows.of(10)).trigger(Wrong()).process(listed)
        )
    )
    with pytest.raises(
        StepFailed, match=r"'window'[\s\S]*trigger Wrong must return a TriggerResult, not None"
    ):
        harness.send([("a", 1)], [1])


def test_a_gap_that_is_not_a_number() -> None:
    assigner = EventTimeSessionWindows.with_dynamic_gap(lambda record: record[1])
    for gap in (0, -1, None, "5", 1.5, True):
        harness = OperatorHarness(lambda stream: stream.key_by(first).window(assigner).process(listed))
        with pytest.raises(
            StepFailed, match="the gap of a session must be a positive number of milliseconds"
        ):
            harness.send([("a", gap)], [1])


class Half(Window):
    """A window of a user's own."""

    def __init__(self, name: str) -> None:
        self.name = name

    def max_timestamp(self) -> int:
        return 49 if self.name == "early" else 99

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Half) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


class Halves(WindowAssigner[Any, Half]):
    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[Half]:
        return [Half("early" if timestamp < 50 else "late")]

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


def test_windows_of_a_class_of_the_user() -> None:
    def build(stream: Any) -> Any:
        return stream.key_by(first).window(Halves()).trigger(Counting()).process(listed)

    harness = OperatorHarness(build)
    harness.send([("a", 1), ("a", 2)], [1, 60])
    harness = OperatorHarness(build, restore=harness.snapshot())
    harness.send([("a", 3), ("a", 4)], [2, 61])
    assert harness.values == [("a", 49, [1, 3]), ("a", 99, [2, 4])]
    harness.end()
    assert left(harness) == {}


class Counting(CountTrigger):
    """Its state is told apart by window."""

    def __init__(self) -> None:
        super().__init__(2)


class Changing(AggregateFunction[Any, dict[str, int], dict[str, int]]):
    """Returns its accumulator as the result, and changes it afterwards."""

    def create_accumulator(self) -> dict[str, int]:
        return {}

    def add(self, value: Any, accumulator: dict[str, int]) -> dict[str, int]:
        accumulator["n"] = accumulator.get("n", 0) + 1
        return accumulator

    def get_result(self, accumulator: dict[str, int]) -> dict[str, int]:
        return accumulator

    def merge(self, acc_a: dict[str, int], acc_b: dict[str, int]) -> dict[str, int]:
        acc_a["n"] = acc_a.get("n", 0) + acc_b.get("n", 0)
        return acc_a


def test_results_do_not_change_when_the_window_goes_on() -> None:
    growing = OperatorHarness(
        lambda stream: (
            stream.key_by(first)
            .window(GlobalWindows.create())
            .trigger(CountTrigger.of(1))
            .aggregate(Changing())
        )
    )
    growing.send([("a", 1), ("a", 2), ("a", 3)])
    assert growing.values == [{"n": 1}, {"n": 2}, {"n": 3}]
    sliding = OperatorHarness(
        lambda stream: stream.key_by(first).window(SlidingEventTimeWindows.of(40, 10)).aggregate(Changing())
    )
    sliding.send([("a", 1), ("a", 2), ("a", 3)], [1, 11, 21])
    sliding.end()
    assert sliding.values == [{"n": 1}, {"n": 2}, {"n": 3}, {"n": 3}, {"n": 2}, {"n": 1}]


def test_an_evictor_that_leaves_nothing() -> None:
    harness = OperatorHarness(
        lambda stream: (
            stream.key_by(first)
            .window(GlobalWindows.create())
            .trigger(PurgingTrigger.of(CountTrigger.of(2)))
            .evictor(CountEvictor.of(0))
            .reduce(lambda one, other: one)
        )
    )
    harness.send([("a", 1), ("a", 2), ("a", 3)])
    assert harness.values == []
    assert list(left(harness)["a"]["$windows"].values()) == [[(("a", 3), None)]]


@pytest.mark.parametrize("lateness", [0, 3])
@pytest.mark.parametrize("name", ASSIGNERS)
@pytest.mark.parametrize("function", ["reduce", "aggregate"])
def test_an_incremental_window_holds_one_value(name: str, lateness: int, function: str) -> None:
    def build(stream: Any) -> Any:
        windowed = stream.key_by(first).window(ASSIGNERS[name]).allowed_lateness(lateness)
        if function == "reduce":
            return windowed.reduce(lambda one, other: (one[0], one[1] + other[1]))
        return windowed.aggregate(Changing())

    harness = OperatorHarness(build)
    harness.send([("a", 1)] * 1_000, [number % 3 for number in range(1_000)])
    assert harness.scope is not None
    state = harness.scope.entries["a"]
    held = [*state.get("$windows", {}).values(), *state.get("$panes", {}).values()]
    assert held
    assert all(len(item) == 1 for item in held)
    assert len(harness.snapshot()) < 1_000
