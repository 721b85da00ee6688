"""Triggers, evictors and lateness of window joins and co-groups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from emberflow.errors import InvalidArgument
from emberflow.streams import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    PurgingTrigger,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    WatermarkStrategy,
)
from emberflow.testing import LOCAL, Cut, TestSource

IN_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[1])


def two_streams(env: StreamExecutionEnvironment, items: list[Any]) -> Any:
    """Both from one source, so that the order in which their records meet is known."""
    stream = env.add_source(TestSource(items)).assign_timestamps_and_watermarks(IN_TIME)
    return (stream.filter(lambda value, s=side: value[0][0] == s) for side in "lr")


def names(left: Iterable[Any], right: Iterable[Any]) -> list[Any]:
    return [("".join(value[0] for value in (*left, *right)))]


def constant(value: Any) -> int:
    return 0


ITEMS = [
    ("l1", 1),
    ("r1", 2),
    Cut(),
    ("l2", 3),
    Cut(),
    ("r2", 4),
    Cut(),
    ("l3", 15),
    ("r3", 15),
    Cut(),
    ("l4", 5),
    Cut(),
    ("r9", 40),
]


def test_a_trigger_decides_when_groups_are_complete() -> None:
    def build(env: Any) -> Any:
        left, right = two_streams(env, ITEMS)
        grouped = left.co_group(right).where(constant).equal_to(constant)
        return (
            grouped.window(TumblingEventTimeWindows.of(10))
            .trigger(PurgingTrigger.of(CountTrigger.of(2)))
            .apply(names)
        )

    assert LOCAL.run(build) == ["l1r1", "l2r2", "l3r3"]


def test_an_evictor_sees_records_of_both_streams() -> None:
    def build(env: Any) -> Any:
        left, right = two_streams(env, ITEMS)
        joined = left.join(right).where(constant).equal_to(constant).window(TumblingEventTimeWindows.of(10))
        return joined.evictor(CountEvictor.of(2)).apply(lambda left, right: left[0] + right[0])

    assert LOCAL.run(build) == ["l2r2", "l3r3"]


def test_a_late_record_is_joined_again_while_lateness_allows_it() -> None:
    def build(lateness_ms: int) -> Any:
        def made(env: Any) -> Any:
            left, right = two_streams(env, ITEMS)
            joined = (
                left.join(right).where(constant).equal_to(constant).window(TumblingEventTimeWindows.of(10))
            )
            return joined.allowed_lateness(lateness_ms).apply(lambda left, right: left[0] + right[0])

        return made

    in_time = ["l1r1", "l1r2", "l2r1", "l2r2"]
    assert LOCAL.run(build(0)) == [*in_time, "l3r3"]
    assert LOCAL.run(build(10)) == [*in_time, *in_time, "l4r1", "l4r2", "l3r3"]


def test_sessions_of_both_streams_merge() -> None:
    def build(env: Any) -> Any:
        left, right = two_streams(env, ITEMS)
        grouped = left.co_group(right).where(constant).equal_to(constant)
        return grouped.window(EventTimeSessionWindows.with_gap(12)).apply(names)

    assert LOCAL.run(build) == ["l1l2l3l4r1r2r3", "r9"]


def test_what_does_not_fit_is_refused() -> None:
    env, other = LOCAL.environment(), LOCAL.environment()
    stream = env.from_collection([1])
    for method in (stream.join, stream.co_group):
        with pytest.raises(InvalidArgument, match="one environment"):
            method(other.from_collection([1]))
    with pytest.raises(InvalidArgument, match=r"where\(\) needs a function"):
        stream.join(stream).where(1).equal_to(constant)  # pyright: ignore[reportArgumentType]
    windowed = stream.join(stream).where(constant).equal_to(constant).window(TumblingEventTimeWindows.of(10))
    with pytest.raises(InvalidArgument, match=r"apply\(\) needs a function"):
        windowed.apply(7)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidArgument, match=r"trigger\(\) needs a Trigger"):
        windowed.trigger(5)  # pyright: ignore[reportArgumentType]
