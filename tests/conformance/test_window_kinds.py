"""Sessions, count and global windows, windows over a whole stream, panes (B10, B11), triggers and evictors (B12).

Scenarios that do not depend on each other share a program: on Spark a program takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from emberflow.streams import (
    AggregateFunction,
    AllWindowFunction,
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    ProcessAllWindowFunction,
    ProcessingTimeSessionWindows,
    ProcessWindowFunction,
    PurgingTrigger,
    ReduceFunction,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeEvictor,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WatermarkStrategy,
    WindowContext,
)
from emberflow.testing import (
    LOCAL_HOSTS,
    SPARK,
    SPARK_BATCH,
    Crash,
    Cut,
    Host,
    TestSource,
    on_every_host,
    per_key,
)

IN_TIME = WatermarkStrategy.for_bounded_out_of_orderness(timedelta(milliseconds=10)).with_timestamp_assigner(
    lambda value, _: value[1]
)
RECORDS = [
    *[("a", 1), ("a", 4), ("b", 4), ("a", 3), ("a", 5), ("b", 12), ("a", 10), ("a", 21)],
    *[("c", 30), ("c", 38), ("c", 34), ("c", 44), ("d", 50), ("c", 41), ("a", 47), ("d", 55), ("d", 61)],
]


def first(value: Any) -> Any:
    return value[0]


def add(one: Any, other: Any) -> Any:
    return one[0], one[1] + other[1]


def counted(one: Any, other: Any) -> Any:
    """Does not look at the second argument, which must therefore be one record."""
    return one[0], one[1] + 1


class Added(ReduceFunction[Any]):
    mergeable = True

    def reduce(self, value1: Any, value2: Any) -> Any:
        return add(value1, value2)


class Mean(AggregateFunction[tuple[str, int], tuple[int, int], float]):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: tuple[str, int], accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Numbers(AggregateFunction[tuple[str, int], list[int], list[int]]):
    """Its accumulator is changed in place by all of its methods, which is allowed."""

    def create_accumulator(self) -> list[int]:
        return []

    def add(self, value: tuple[str, int], accumulator: list[int]) -> list[int]:
        accumulator.append(value[1])
        return accumulator

    def get_result(self, accumulator: list[int]) -> list[int]:
        return sorted(accumulator)

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        acc_a.extend(acc_b)
        return acc_a


class Bounds(ProcessWindowFunction[Any, Any, str, TimeWindow]):
    def process(self, key: str, context: WindowContext[TimeWindow], elements: Iterable[Any]) -> Iterable[Any]:
        window = context.window()
        yield (
            key,
            window.start,
            window.end,
            [item[1] if isinstance(item, tuple) else item for item in elements],
        )


class GapOfKey(SessionWindowTimeGapExtractor):
    def extract(self, element: Any) -> int:
        return 3 if element[0] == "c" else 9


def listed(key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
    yield key, [value for _, value in elements]


Scenario = Callable[[Any], Any]


def outcomes(
    host: Host, scenarios: dict[str, Scenario], records: list[Any] = RECORDS, batch: int | None = None
) -> dict[str, list[Any]]:
    """What each scenario makes of one stream with event time, in one program."""

    def build(env: Any) -> Any:
        stream = env.add_source(TestSource(records, batch)).assign_timestamps_and_watermarks(IN_TIME)
        made = [
            scenario(stream).map(lambda value, name=name: (name, value))
            for name, scenario in scenarios.items()
        ]
        return made[0].union(*made[1:])

    found = per_key(host.run(build))
    return {name: [value for _, value in found.get(name, [])] for name in scenarios}


SESSIONS = EventTimeSessionWindows.with_gap(timedelta(milliseconds=5))
EXPECTED_SESSIONS = {
    "a": [("a", 1, 15, [1, 3, 4, 5, 10]), ("a", 21, 26, [21]), ("a", 47, 52, [47])],
    "b": [("b", 4, 9, [4]), ("b", 12, 17, [12])],
    "c": [("c", 30, 49, [30, 34, 38, 41, 44])],
    "d": [("d", 50, 60, [50, 55]), ("d", 61, 66, [61])],
}


@on_every_host(nightly=[SPARK])
def test_session_windows(host: Host) -> None:
    found = outcomes(
        host,
        {
            "process": lambda stream: stream.key_by(first).window(SESSIONS).process(Bounds()),
            "reduce": lambda stream: stream.key_by(first).window(SESSIONS).reduce(add, Bounds()),
            "aggregate": lambda stream: stream.key_by(first).window(SESSIONS).aggregate(Mean()),
            "merged": lambda stream: stream.key_by(first).window(SESSIONS).aggregate(Numbers(), Bounds()),
            "triggered": lambda stream: (
                stream.key_by(first).window(SESSIONS).allowed_lateness(1).aggregate(Numbers(), Bounds())
            ),
            "dynamic": lambda stream: (
                stream.key_by(first)
                .window(EventTimeSessionWindows.with_dynamic_gap(GapOfKey()))
                .process(Bounds())
            ),
        },
    )
    in_order = {
        key: [(*window[:3], sorted(window[3])) for window in windows]
        for key, windows in per_key(found["process"]).items()
    }
    # Records exactly one gap apart are in one session.
    assert in_order == EXPECTED_SESSIONS
    assert per_key(found["reduce"]) == {
        key: [(*window[:3], [sum(window[3])]) for window in windows]
        for key, windows in EXPECTED_SESSIONS.items()
    }
    assert sorted(found["aggregate"]) == sorted(
        sum(window[3]) / len(window[3]) for windows in EXPECTED_SESSIONS.values() for window in windows
    )
    for name in ("merged", "triggered"):
        assert per_key(found[name]) == {
            key: [(*window[:3], [window[3]]) for window in windows]
            for key, windows in EXPECTED_SESSIONS.items()
        }
    dynamic = {key: [window[1:3] for window in windows] for key, windows in per_key(found["dynamic"]).items()}
    assert dynamic == {
        "a": [(1, 19), (21, 30), (47, 56)],
        "b": [(4, 21)],
        "c": [(30, 33), (34, 37), (38, 47)],
        "d": [(50, 70)],
    }


@on_every_host(nightly=[SPARK])
def test_sliding_windows_share_panes(host: Host) -> None:
    wide = SlidingEventTimeWindows.of(20, 5)
    uneven = SlidingEventTimeWindows.of(50, 10, 3)
    found = outcomes(
        host,
        {
            "elements": lambda stream: stream.key_by(first).window(wide).process(Bounds()),
            "reduce": lambda stream: stream.key_by(first).window(wide).reduce(Added(), Bounds()),
            "unshared": lambda stream: stream.key_by(first).window(wide).reduce(add, Bounds()),
            "counted": lambda stream: (
                stream.key_by(first).map(lambda v: (v[0], 1)).key_by(first).window(wide).reduce(counted)
            ),
            "aggregate": lambda stream: stream.key_by(first).window(wide).aggregate(Numbers(), Bounds()),
            "uneven elements": lambda stream: stream.key_by(first).window(uneven).process(Bounds()),
            "uneven": lambda stream: stream.key_by(first).window(uneven).aggregate(Numbers(), Bounds()),
            "sum": lambda stream: stream.key_by(first).window(wide).sum(1),
        },
    )
    elements = per_key(found["elements"])
    assert [(start, sorted(values)) for _, start, _, values in elements["b"]] == [
        (-15, [4]),
        (-10, [4]),
        (-5, [4, 12]),
        (0, [4, 12]),
        (5, [12]),
        (10, [12]),
    ]
    assert per_key(found["reduce"]) == {
        key: [(*window[:3], [sum(window[3])]) for window in windows] for key, windows in elements.items()
    }
    assert per_key(found["unshared"]) == per_key(found["reduce"])
    assert per_key(found["counted"]) == {
        key: [(key, len(window[3])) for window in windows] for key, windows in elements.items()
    }
    assert per_key(found["aggregate"]) == {
        key: [(*window[:3], [sorted(window[3])]) for window in windows] for key, windows in elements.items()
    }
    assert per_key(found["uneven"]) == {
        key: [(*window[:3], [sorted(window[3])]) for window in windows]
        for key, windows in per_key(found["uneven elements"]).items()
    }
    assert per_key(found["sum"]) == {
        key: [(key, sum(window[3])) for window in windows] for key, windows in elements.items()
    }


class Spread(ProcessAllWindowFunction[tuple[str, int], Any, TimeWindow]):
    def process(self, context: Any, elements: Iterable[tuple[str, int]]) -> Iterable[Any]:
        stamps = sorted(stamp for _, stamp in elements)
        yield context.window().start, stamps[0], stamps[-1], len(stamps)


class Size(AllWindowFunction[tuple[str, int], Any, TimeWindow]):
    def apply(self, window: TimeWindow, inputs: Iterable[tuple[str, int]]) -> Iterable[Any]:
        yield window.end, len(list(inputs))


@on_every_host(nightly=[SPARK])
def test_windows_over_the_whole_stream(host: Host) -> None:
    twenty = TumblingEventTimeWindows.of(20)
    found = outcomes(
        host,
        {
            "process": lambda stream: stream.window_all(twenty).process(Spread()),
            "apply": lambda stream: stream.window_all(twenty).apply(Size()),
            "reduce": lambda stream: stream.window_all(twenty).reduce(lambda a, b: ("all", a[1] + b[1])),
            "aggregate": lambda stream: stream.window_all(twenty).aggregate(Numbers(), Spread2()),
            "count": lambda stream: (
                stream.window_all(GlobalWindows.create())
                .trigger(PurgingTrigger.of(CountTrigger.of(5)))
                .process(lambda context, elements: [len(elements)])
            ),
        },
    )
    assert found["process"] == [(0, 1, 12, 7), (20, 21, 38, 4), (40, 41, 55, 5), (60, 61, 61, 1)]
    assert found["apply"] == [(20, 7), (40, 4), (60, 5), (80, 1)]
    assert found["reduce"] == [("all", 39), ("all", 123), ("all", 237), ("d", 61)]
    assert [values[0] for _, values in found["aggregate"]] == [1, 21, 41, 61]
    assert found["count"] == [5, 5, 5]


class Spread2(ProcessAllWindowFunction[list[int], Any, TimeWindow]):
    def process(self, context: Any, elements: Iterable[list[int]]) -> Iterable[Any]:
        return [(context.window().start, values) for values in elements]


@on_every_host(nightly=[SPARK_BATCH])
def test_count_windows_and_global_windows(host: Host) -> None:
    found = outcomes(
        host,
        {
            "tumbling": lambda stream: stream.key_by(first).count_window(2).process(listed),
            "sliding": lambda stream: stream.key_by(first).count_window(3, 2).process(listed),
            "sum": lambda stream: stream.key_by(first).count_window(2).sum(1),
            "purging": lambda stream: (
                stream.key_by(first)
                .window(GlobalWindows.create())
                .trigger(PurgingTrigger.of(CountTrigger.of(3)))
                .process(listed)
            ),
            "growing": lambda stream: (
                stream.key_by(first)
                .window(GlobalWindows.create())
                .trigger(CountTrigger.of(2))
                .process(listed)
            ),
            "last two": lambda stream: (
                stream.key_by(first)
                .window(GlobalWindows.create())
                .trigger(CountTrigger.of(2))
                .evictor(CountEvictor.of(2))
                .reduce(add)
            ),
            "by time": lambda stream: (
                stream.key_by(first)
                .window(GlobalWindows.create())
                .trigger(CountTrigger.of(1))
                .evictor(TimeEvictor.of(Time5))
                .process(listed)
            ),
            "never": lambda stream: stream.key_by(first).window(GlobalWindows.create()).process(listed),
        },
    )
    a = [1, 4, 3, 5, 10, 21, 47]
    assert [values for _, values in per_key(found["tumbling"])["a"]] == [a[0:2], a[2:4], a[4:6]]
    assert [values for _, values in per_key(found["sliding"])["a"]] == [a[0:3], a[2:5], a[4:7]]
    assert [value for _, value in per_key(found["sum"])["a"]] == [5, 8, 31]
    assert [values for _, values in per_key(found["purging"])["a"]] == [a[0:3], a[3:6]]
    assert [values for _, values in per_key(found["growing"])["a"]] == [a[:2], a[:4], a[:6]]
    assert [value for _, value in per_key(found["last two"])["a"]] == [5, 8, 31]
    assert [values for _, values in per_key(found["by time"])["a"]] == [
        [1],
        [1, 4],
        [1, 4, 3],
        [1, 4, 3, 5],
        [10],
        [21],
        [47],
    ]
    assert found["never"] == []


Time5 = timedelta(milliseconds=5)


@on_every_host(nightly=[SPARK, SPARK_BATCH])
def test_windows_of_processing_time(host: Host) -> None:
    """How records fall into windows depends on the clock; that all of them leave, once, does not."""
    day = timedelta(days=1)
    found = outcomes(
        host,
        {
            "tumbling": lambda stream: (
                stream.key_by(first).window(TumblingProcessingTimeWindows.of(day)).process(listed)
            ),
            "sliding": lambda stream: (
                stream.key_by(first).window(SlidingProcessingTimeWindows.of(day, day / 2)).process(listed)
            ),
            "session": lambda stream: (
                stream.key_by(first).window(ProcessingTimeSessionWindows.with_gap(1)).reduce(add)
            ),
        },
    )
    totals = {"a": 91, "b": 16, "c": 187, "d": 166}
    for name, times in (("tumbling", 1), ("sliding", 2)):
        assert {
            key: sum(sum(values) for _, values in found) for key, found in per_key(found[name]).items()
        } == {key: times * total for key, total in totals.items()}
    assert {
        key: sum(value for _, value in found) for key, found in per_key(found["session"]).items()
    } == totals


@on_every_host(nightly=[SPARK_BATCH])
def test_windows_survive_crashes(host: Host, tmp_path: Path) -> None:
    records = [*RECORDS[:5], Cut(), *RECORDS[5:9], Crash(), *RECORDS[9:12], Cut(), Crash(), *RECORDS[12:]]
    source = TestSource(records, 4)

    def build(env: Any) -> Any:
        keyed = env.add_source(source).assign_timestamps_and_watermarks(IN_TIME).key_by(first)
        made = {
            "session": keyed.window(SESSIONS).aggregate(Numbers(), Bounds()),
            "panes": keyed.window(SlidingEventTimeWindows.of(40, 10)).aggregate(Numbers(), Bounds()),
            "count": keyed.count_window(2).process(listed),
            "triggered": keyed.window(SESSIONS).trigger(CountTrigger.of(2)).process(Bounds()),
            "late": keyed.window(SESSIONS).allowed_lateness(5).aggregate(Numbers(), Bounds()),
        }
        labelled = [
            stream.map(lambda value, name=name: (name, value)).uid(name) for name, stream in made.items()
        ]
        return labelled[0].union(*labelled[1:])

    found = per_key(host.run_to_files(build, tmp_path).values)
    sessions = {
        key: [(*window[:3], [window[3]]) for window in windows] for key, windows in EXPECTED_SESSIONS.items()
    }
    for name in ("session", "late"):
        assert per_key(value for _, value in found[name]) == sessions
    a = [1, 4, 3, 5, 10, 21, 47]
    assert [values for _, (key, values) in found["count"] if key == "a"] == [a[0:2], a[2:4], a[4:6]]
    assert [values for _, (key, _, _, (values,)) in found["panes"] if key == "b"] == [
        *[[4], [4, 12], [4, 12], [4, 12], [12]]
    ]
    triggered = per_key(value for _, value in found["triggered"])
    # 30 and 38 begin a session each, and 34 closes the gap: the trigger has counted all three.
    assert [len(window[3]) for window in triggered["c"]] == [3, 5]


@on_every_host(hosts=LOCAL_HOSTS)
def test_what_windows_refuse(host: Host) -> None:
    from emberflow.errors import InvalidArgument
    from emberflow.streams import NeverTrigger

    class Sum(AggregateFunction):
        def create_accumulator(self) -> int:
            return 0

        def add(self, value: Any, accumulator: int) -> int:
            return accumulator + value

        def get_result(self, accumulator: int) -> int:
            return accumulator

        def merge(self, acc_a: int, acc_b: int) -> Any:
            pass

    keyed = host.environment().from_collection([1]).key_by(lambda value: value)
    for make, text in (
        (lambda: keyed.window(SESSIONS).aggregate(Sum()), "has no merge"),
        (lambda: keyed.window(SESSIONS).trigger(NeverTrigger()), "does not support merging"),
        (lambda: keyed.window(SESSIONS).trigger(5), "needs a Trigger"),  # pyright: ignore[reportArgumentType]
        (lambda: keyed.window(SESSIONS).evictor(5), "needs an Evictor"),  # pyright: ignore[reportArgumentType]
        (lambda: keyed.window(SESSIONS).allowed_lateness(-1), "negative"),
        (lambda: keyed.count_window(0), "positive"),
        (lambda: keyed.count_window(2, -1), "positive"),
        (lambda: EventTimeSessionWindows.with_gap(0), "positive"),
        (lambda: CountTrigger.of(0), "at least 1"),
    ):
        with pytest.raises(InvalidArgument, match=text):
            make()
