"""State that one way to run windows has stored is continued by another: the program was changed, or emberflow was.

The first form of stored windows, `{"$windows": {window: contents}}` with a timer at each window's last millisecond, is
what jobs have stored that ran before windows had triggers and panes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from emberflow.events.codecs import encode
from emberflow.operators.scope import SavedScope
from emberflow.streams import (
    CountTrigger,
    DataStream,
    EventTimeSessionWindows,
    ReduceFunction,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
)
from emberflow.testing import OperatorHarness

Build = Callable[[DataStream[Any]], DataStream[Any]]


def first(value: Any) -> Any:
    return value[0]


def shown(key: Any, context: Any, elements: Any) -> Any:
    return [(context.window().start, context.window().end, value[1]) for value in elements]


class Sum(ReduceFunction[Any]):
    """Lets sliding windows share panes."""

    mergeable = True

    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1[0], value1[1] + value2[1]


def sums(assigner: Any, lateness_ms: int = 0, every: int = 0) -> Build:
    def build(stream: DataStream[Any]) -> DataStream[Any]:
        windowed = stream.key_by(first).window(assigner).allowed_lateness(lateness_ms)
        if every:
            windowed = windowed.trigger(CountTrigger.of(every))
        return windowed.reduce(Sum(), shown)

    return build


def stored(windows: dict[TimeWindow, int], watermark: int = 0) -> bytes:
    """As the first version stored it."""
    saved = SavedScope(
        watermark=watermark, event_timers=[(window.end - 1, ["a"]) for window in sorted(windows)]
    )
    return encode((saved, {"a": {"$windows": {window: [("a", value)] for window, value in windows.items()}}}))


def finished(harness: OperatorHarness) -> list[Any]:
    harness.end()
    assert harness.scope is not None
    assert {key: entry for key, entry in harness.scope.entries.items() if entry} == {}
    return harness.values


@pytest.mark.parametrize("lateness_ms", [0, 5], ids=["aligned", "triggered"])
def test_stored_tumbling_windows(lateness_ms: int) -> None:
    before = stored({TimeWindow(0, 10): 1, TimeWindow(10, 20): 2})
    harness = OperatorHarness(sums(TumblingEventTimeWindows.of(10), lateness_ms), restore=before)
    harness.send([("a", 100)], [15], watermark=12)
    assert harness.values == [(0, 10, 1)]
    assert finished(harness) == [(0, 10, 1), (10, 20, 102)]


@pytest.mark.parametrize("lateness_ms", [0, 5], ids=["sessions", "triggered"])
def test_stored_sessions(lateness_ms: int) -> None:
    before = stored({TimeWindow(0, 10): 1, TimeWindow(20, 30): 2})
    harness = OperatorHarness(sums(EventTimeSessionWindows.with_gap(10), lateness_ms), restore=before)
    harness.send([("a", 100)], [10], watermark=15)
    assert finished(harness) == [(0, 30, 103)]


def test_stored_sliding_windows_are_merged_with_panes() -> None:
    windows = {TimeWindow(start, start + 20): start + 100 for start in (-15, -10, -5, 0)}
    harness = OperatorHarness(sums(SlidingEventTimeWindows.of(20, 5)), restore=stored(windows))
    harness.send([("a", 1000)], [6])
    assert finished(harness) == [
        *[(-15, 5, 85), (-10, 10, 1090), (-5, 15, 1095), (0, 20, 1100), (5, 25, 1000)],
    ]


def test_stored_sliding_windows_of_another_size_fire_beside_panes() -> None:
    harness = OperatorHarness(sums(SlidingEventTimeWindows.of(20, 5)), restore=stored({TimeWindow(0, 15): 7}))
    harness.send([("a", 1000)], [6], watermark=14)
    assert harness.values == [(-10, 10, 1000), (0, 15, 7), (-5, 15, 1000)]
    assert finished(harness)[3:] == [(0, 20, 1000), (5, 25, 1000)]


@pytest.mark.parametrize(
    "after",
    [sums(SlidingEventTimeWindows.of(20, 5), 1), sums(SlidingEventTimeWindows.of(20, 5), 0, 99)],
    ids=["lateness", "trigger"],
)
def test_panes_become_windows_with_a_trigger(after: Build) -> None:
    before = OperatorHarness(sums(SlidingEventTimeWindows.of(20, 5)))
    before.send([("a", 1), ("a", 2)], [3, 8], watermark=6)
    assert before.values == [(-15, 5, 1)]
    harness = OperatorHarness(after, restore=before.snapshot())
    found = finished(harness)
    if found:
        assert found == [(-10, 10, 3), (-5, 15, 3), (0, 20, 3), (5, 25, 2)]


@pytest.mark.parametrize("size", [15, 10])
def test_panes_become_windows_of_another_size(size: int) -> None:
    before = OperatorHarness(sums(SlidingEventTimeWindows.of(20, 5)))
    before.send([("a", 1), ("a", 2)], [3, 8], watermark=6)
    harness = OperatorHarness(sums(SlidingEventTimeWindows.of(size, 5)), restore=before.snapshot())
    harness.send([("a", 4)], [11])
    found = {(start, end): total for start, end, total in finished(harness)}
    assert sum(found.values()) == sum({15: [3, 7, 6, 4], 10: [3, 6, 4]}[size]), (
        "1 is in [0, 5), 2 in [5, 10), 4 in [10, 15); windows that end by 6 have fired"
    )


def test_windows_lose_their_lateness() -> None:
    before = OperatorHarness(sums(TumblingEventTimeWindows.of(10), 100))
    before.send([("a", 1), ("a", 2)], [3, 18], watermark=12)
    harness = OperatorHarness(sums(TumblingEventTimeWindows.of(10)), restore=before.snapshot())
    harness.end()
    assert harness.values == [(10, 20, 2)]
