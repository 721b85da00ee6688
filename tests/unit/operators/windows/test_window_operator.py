"""Windows of one key: many at a time, and of a size that the program no longer has."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

from emberflow.streams import DataStream, TumblingEventTimeWindows
from emberflow.testing import OperatorHarness


def counts(size_ms: int) -> Callable[[DataStream], DataStream]:
    return lambda stream: (
        stream.key_by(lambda pair: "all")
        .window(TumblingEventTimeWindows.of(size_ms))
        .reduce(lambda one, other: (one[0], one[1] + other[1]))
    )


def test_many_open_windows_of_a_key_fire_in_order() -> None:
    harness = OperatorHarness(counts(10))
    harness.send([(i, 1) for i in range(100)], [i * 10 for i in range(100)])
    harness.watermark(500)
    assert [value[0] for value in harness.values] == list(range(50))
    harness.send([(500, 1)], [995])
    harness.end()
    assert harness.values[50:] == [*((i, 1) for i in range(50, 99)), (99, 2)]


def test_windows_of_the_size_before_fire_beside_those_of_the_new_size() -> None:
    before = OperatorHarness(counts(10))
    before.send([(i, 1) for i in range(40)], [i * 10 for i in range(40)])
    after = OperatorHarness(counts(20), restore=before.snapshot())
    after.send([(i, 1) for i in range(40)], [i * 10 for i in range(40)])
    after.end()
    assert len(after.values) == 60
    assert sum(count for _, count in after.values) == 80


def test_the_time_for_a_window_does_not_grow_with_the_number_of_open_ones() -> None:
    def seconds(count: int) -> float:
        harness = OperatorHarness(counts(10))
        harness.send([(i, 1) for i in range(count)], [i * 10 for i in range(count)])
        before = process_time()
        harness.end()
        assert len(harness.values) == count
        return process_time() - before

    # Sixteen times as many windows; 256 times as long where each is searched for among all.
    assert min(seconds(16_000) / seconds(1_000) for _ in range(3)) < 80
