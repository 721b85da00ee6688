"""Tumbling and sliding event-time windows (B10, B11) and what is late for them (B14)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest

from emberflow.errors import InvalidArgument, StepFailed
from emberflow.streams import (
    AggregateFunction,
    ProcessWindowFunction,
    SlidingEventTimeWindows,
    Time,
    TumblingEventTimeWindows,
    WatermarkStrategy,
    WindowFunction,
)
from emberflow.testing import SPARK, Cut, Host, TestSource, on_every_host, per_key

BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(timedelta(milliseconds=3)).with_timestamp_assigner(
    lambda value, _: value[1]
)
RECORDS = [("a", 1), ("a", 4), ("b", 4), ("a", 3), ("a", 5), ("b", 12), ("a", 9), ("a", 21)]


def first(value: Any) -> Any:
    return value[0]


def add(a: Any, b: Any) -> Any:
    return a[0], a[1] + b[1]


class Mean(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: Any, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]


class Bounds(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        window = context.window()
        assert window.max_timestamp() == window.end - 1
        assert context.current_watermark() >= window.max_timestamp()
        yield key, window.start, window.end, list(elements)


class Applied(WindowFunction):
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        return [(key, window.start, len(list(inputs)))]


def windowed(
    host: Host, assigner: Any, finish: Any, records: list[Any] = RECORDS, batch: int | None = None
) -> Any:
    source = TestSource(records, batch)
    return host.run(
        lambda env: finish(
            env.add_source(source).assign_timestamps_and_watermarks(BOUNDED).key_by(first).window(assigner)
        )
    )


FIVE = TumblingEventTimeWindows.of(Time.milliseconds(5))


@on_every_host(nightly=[SPARK])
def test_tumbling_with_reduce(host: Host) -> None:
    out = windowed(host, FIVE, lambda stream: stream.reduce(add))
    assert per_key(out) == {"a": [("a", 8), ("a", 14), ("a", 21)], "b": [("b", 4), ("b", 12)]}


@on_every_host(nightly=[SPARK])
def test_tumbling_with_aggregate(host: Host) -> None:
    out = windowed(host, FIVE, lambda stream: stream.aggregate(Mean()))
    assert sorted(out) == [8 / 3, 4.0, 7.0, 12.0, 21.0]


@on_every_host
def test_tumbling_with_process(host: Host) -> None:
    out = windowed(host, FIVE, lambda stream: stream.process(Bounds()))
    assert per_key(out) == {
        "a": [
            ("a", 0, 5, [("a", 1), ("a", 4), ("a", 3)]),
            ("a", 5, 10, [("a", 5), ("a", 9)]),
            ("a", 20, 25, [("a", 21)]),
        ],
        "b": [("b", 0, 5, [("b", 4)]), ("b", 10, 15, [("b", 12)])],
    }


@on_every_host(nightly=[SPARK])
def test_incremental_aggregation_passes_one_element_to_process(host: Host) -> None:
    out = windowed(host, FIVE, lambda stream: stream.reduce(add, Bounds()))
    assert per_key(out)["a"] == [
        ("a", 0, 5, [("a", 8)]),
        ("a", 5, 10, [("a", 14)]),
        ("a", 20, 25, [("a", 21)]),
    ]
    out = windowed(host, FIVE, lambda stream: stream.aggregate(Mean(), Bounds()))
    assert per_key(out)["b"] == [("b", 0, 5, [4.0]), ("b", 10, 15, [12.0])]


@on_every_host(nightly=[SPARK])
def test_window_functions_and_plain_functions(host: Host) -> None:
    out = windowed(host, FIVE, lambda stream: stream.apply(Applied()))
    assert per_key(out) == {"a": [("a", 0, 3), ("a", 5, 2), ("a", 20, 1)], "b": [("b", 0, 1), ("b", 10, 1)]}
    out = windowed(
        host, FIVE, lambda stream: stream.process(lambda key, context, elements: [key] * len(elements))
    )
    assert sorted(out) == ["a"] * 6 + ["b"] * 2


@on_every_host(nightly=[SPARK])
def test_window_aggregates(host: Host) -> None:
    for name, expected in {
        "sum": [8, 14, 21],
        "min": [1, 5, 21],
        "max": [4, 9, 21],
        "min_by": [1, 5, 21],
    }.items():
        out = windowed(host, FIVE, lambda stream, name=name: getattr(stream, name)(1))
        assert [value for _, value in per_key(out)["a"]] == expected


@on_every_host(nightly=[SPARK])
def test_tumbling_with_an_offset(host: Host) -> None:
    assigner = TumblingEventTimeWindows.of(timedelta(milliseconds=5), timedelta(milliseconds=2))
    out = windowed(host, assigner, lambda stream: stream.process(Bounds()))
    assert [(start, [stamp for _, stamp in found]) for _, start, _, found in per_key(out)["a"]] == [
        (-3, [1]),
        (2, [4, 3, 5]),
        (7, [9]),
        (17, [21]),
    ]


@on_every_host(nightly=[SPARK])
def test_sliding_windows(host: Host) -> None:
    out = windowed(host, SlidingEventTimeWindows.of(10, 5), lambda stream: stream.process(Bounds()))
    assert [(start, [stamp for _, stamp in found]) for _, start, _, found in per_key(out)["a"]] == [
        (-5, [1, 4, 3]),
        (0, [1, 4, 3, 5, 9]),
        (5, [5, 9]),
        (15, [21]),
        (20, [21]),
    ]


@on_every_host(nightly=[SPARK])
def test_sliding_windows_with_an_offset(host: Host) -> None:
    assigner = SlidingEventTimeWindows.of(10, 5, 1)
    out = windowed(host, assigner, lambda stream: stream.reduce(add, Bounds()))
    assert [(start, found[0][1]) for _, start, _, found in per_key(out)["b"]] == [
        (-4, 4),
        (1, 4),
        (6, 12),
        (11, 12),
    ]


@on_every_host
def test_batches_do_not_change_windows(host: Host) -> None:
    whole = per_key(windowed(host, FIVE, lambda stream: stream.process(Bounds())))
    assert per_key(windowed(host, FIVE, lambda stream: stream.process(Bounds()), batch=3)) == whole


@on_every_host
def test_late_records_are_dropped_in_streaming_and_kept_in_batch(host: Host) -> None:
    # 20 moves the watermark to 16: 4 is too late for [0, 5), 18 is not for [15, 20).
    records = [("a", 1), ("a", 20), Cut(), ("a", 4), ("a", 18), ("a", 30)]
    out = windowed(host, FIVE, lambda stream: stream.process(Bounds()), records)
    found = {start: [stamp for _, stamp in elements] for _, start, _, elements in out}
    assert found == {0: [1] if host.streaming else [1, 4], 15: [18], 20: [20], 30: [30]}


@on_every_host
def test_windows_after_windows(host: Host) -> None:
    # The timestamp of a window's result is the window's last millisecond: five of them are in one of 25.
    records = [("a", stamp) for stamp in range(50)]
    out = windowed(
        host,
        FIVE,
        lambda stream: (
            stream.reduce(lambda a, b: (a[0], a[1] + 1))
            .map(lambda value: (value[0], 1))
            .key_by(first)
            .window(TumblingEventTimeWindows.of(25))
            .reduce(add)
        ),
        records,
    )
    assert out == [("a", 5), ("a", 5)]


@on_every_host(nightly=[SPARK])
def test_windows_need_event_time(host: Host) -> None:
    with pytest.raises(StepFailed, match=r"'window'[\s\S]*assign_timestamps_and_watermarks"):
        host.run(lambda env: env.from_collection([("a", 1)]).key_by(first).window(FIVE).reduce(add))


@on_every_host
def test_impossible_windows_are_rejected(host: Host) -> None:
    env = host.environment()
    for make in (
        lambda: TumblingEventTimeWindows.of(0),
        lambda: TumblingEventTimeWindows.of(5, 5),
        lambda: SlidingEventTimeWindows.of(10, 0),
        lambda: env.from_collection([1]).key_by(first).window("5 s"),  # pyright: ignore[reportArgumentType]
    ):
        with pytest.raises(InvalidArgument):
            make()
