"""Window joins and co-groups of any two streams against nested loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.streams import (
    CoGroupFunction,
    DataStream,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    WatermarkStrategy,
)
from emberflow.testing import LOCAL, LOCAL_2, LOCAL_BATCH, Host

Record = tuple[str, int, int]
"""(key, timestamp, number)"""
Windows = Callable[[list[int]], list[tuple[int, int]]]
TIMED = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[1])


def covering(size: int, slide: int) -> Windows:
    return lambda stamps: [
        (start, start + size)
        for start in range(-size, 60, slide)
        if any(start <= stamp < start + size for stamp in stamps)
    ]


def sessions(stamps: list[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for stamp in sorted(stamps):
        if found and stamp <= found[-1][1]:
            found[-1] = found[-1][0], stamp + 4
        else:
            found.append((stamp, stamp + 4))
    return found


KINDS: dict[str, tuple[Any, Windows]] = {
    "tumbling": (TumblingEventTimeWindows.of(10), covering(10, 10)),
    "sliding": (SlidingEventTimeWindows.of(15, 5), covering(15, 5)),
    "sessions": (EventTimeSessionWindows.with_gap(4), sessions),
}
records = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 40)), max_size=12).map(
    lambda found: [
        (key, stamp, number) for number, (key, stamp) in enumerate(sorted(found, key=lambda item: item[1]))
    ]
)


class Sides(CoGroupFunction[Record, Record, Any]):
    def co_group(self, first: Iterable[Record], second: Iterable[Record]) -> Iterable[Any]:
        yield "group", sorted(item[2] for item in first), sorted(item[2] for item in second)


@settings(max_examples=60)
@given(
    left=records,
    right=records,
    kind=st.sampled_from(sorted(KINDS)),
    host=st.sampled_from([LOCAL, LOCAL_2, LOCAL_BATCH]),
)
def test_joins_and_co_groups_are_nested_loops(
    left: list[Record], right: list[Record], kind: str, host: Host
) -> None:
    assigner, windows = KINDS[kind]

    def build(env: StreamExecutionEnvironment) -> DataStream[Any]:
        one, other = (
            env.from_collection(side).assign_timestamps_and_watermarks(TIMED) for side in (left, right)
        )
        joined = one.join(other).where(lambda value: value[0]).equal_to(lambda value: value[0])
        grouped = one.co_group(other).where(lambda value: value[0]).equal_to(lambda value: value[0])
        pairs = joined.window(assigner).apply(lambda first, second: ("pair", first[2], second[2]))
        return pairs.union(grouped.window(assigner).apply(Sides()))

    expected: list[Any] = []
    for key in "ab":
        ours, theirs = ([item for item in side if item[0] == key] for side in (left, right))
        for start, end in windows([stamp for _, stamp, _ in ours + theirs]):
            first, second = ([n for _, stamp, n in side if start <= stamp < end] for side in (ours, theirs))
            expected += [("pair", one, other) for one in first for other in second]
            expected.append(("group", first, second))
    assert sorted(host.run(build), key=repr) == sorted(expected, key=repr)
