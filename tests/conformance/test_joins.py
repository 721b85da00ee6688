"""B16: interval joins, window joins, co-groups. Lateness and every order of arrival are in `tests/property/test_interval_join.py`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from emberflow.errors import InvalidArgument, NotKeyed, NotSupported, StepFailed
from emberflow.streams import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    KeySelector,
    OutputTag,
    ProcessJoinFunction,
    RuntimeContext,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    ValueStateDescriptor,
    WatermarkStrategy,
)
from emberflow.testing import (
    LOCAL,
    SPARK,
    SPARK_BATCH,
    STREAMING_HOSTS,
    Cut,
    Host,
    TestSource,
    on_every_host,
    per_key,
    unordered,
)

IN_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[2])
ORDERS = [("a", "o1", 0), ("a", "o2", 10), ("b", "o3", 10), ("a", "o4", 20), ("c", "o5", 30)]
PAYMENTS = [("a", "p1", 10), ("b", "p2", 15), ("b", "p3", 21), ("d", "p4", 22), ("a", "p5", 25)]
LATE, ALONE_LEFT, ALONE_RIGHT = OutputTag("late"), OutputTag("alone left"), OutputTag("alone right")


def first(value: Any) -> Any:
    return value[0]


def timed(env: Any, records: list[Any]) -> Any:
    return env.from_collection(records).assign_timestamps_and_watermarks(IN_TIME)


def pairs(left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterable[Any]:
    yield left[1] + right[1], ctx.get_left_timestamp(), ctx.get_right_timestamp(), ctx.get_timestamp()


def by_hand(lower: int, upper: int) -> list[Any]:
    return [
        (left[1] + right[1], left[2], right[2], max(left[2], right[2]))
        for left in ORDERS
        for right in PAYMENTS
        if left[0] == right[0] and lower <= right[2] - left[2] <= upper
    ]


@on_every_host
def test_pairs_within_the_interval(host: Host) -> None:
    """Several joins of the same streams in one program."""

    def build(env: Any) -> Any:
        left, right = timed(env, ORDERS).key_by(first), timed(env, PAYMENTS).key_by(first)
        found = [
            left.interval_join(right).between(lower, upper).process(pairs).map(lambda pair, n=name: (n, pair))
            for name, lower, upper in (("wide", -100, 100), ("same time", 0, 0), ("before", -20, -5))
        ]
        inner = left.interval_join(right).between(0, 15).lower_bound_exclusive().upper_bound_exclusive()
        found.append(inner.process(pairs).map(lambda pair: ("exclusive", pair)))
        itself = left.interval_join(left).between(1, 10).process(pairs)
        found.append(itself.map(lambda pair: ("with itself", pair)))
        return found[0].union(*found[1:])

    out = {name: unordered([pair for _, pair in found]) for name, found in per_key(host.run(build)).items()}
    wanted = {
        "wide": by_hand(-100, 100),
        "same time": by_hand(0, 0),
        "before": by_hand(-20, -5),
        "exclusive": by_hand(1, 14),
        "with itself": [("o1o2", 0, 10, 10), ("o2o4", 10, 20, 20)],
    }
    assert all(wanted.values())
    assert out == {name: unordered(found) for name, found in wanted.items()}


class Numbered(ProcessJoinFunction):
    """Numbers the pairs of each key with keyed state, and reports every second one aside."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterable[Any]:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield left[0], count
        if count % 2 == 0:
            yield LATE, (left[0], count)


@on_every_host(nightly=[SPARK])
def test_unmatched_records_side_outputs_and_state(host: Host) -> None:
    def build(env: Any) -> Any:
        joined = (
            timed(env, ORDERS)
            .key_by(first)
            .interval_join(timed(env, PAYMENTS).key_by(first))
            .between(0, 5)
            .side_output_left_unmatched(ALONE_LEFT)
            .side_output_right_unmatched(ALONE_RIGHT)
            .process(Numbered())
        )
        named = [
            joined.get_side_output(tag).map(lambda value, name=tag.tag_id: (name, value))
            for tag in (ALONE_LEFT, ALONE_RIGHT, LATE)
        ]
        return joined.map(lambda value: ("pairs", value)).union(*named)

    out = {name: unordered([value for _, value in found]) for name, found in per_key(host.run(build)).items()}
    assert out == {
        "pairs": [("a", 1), ("a", 2), ("b", 1)],
        "late": [("a", 2)],
        "alone left": [("a", "o1", 0), ("c", "o5", 30)],
        "alone right": [("b", "p3", 21), ("d", "p4", 22)],
    }


@on_every_host(hosts=STREAMING_HOSTS)
def test_late_records_go_to_their_side_output(host: Host) -> None:
    """One source for both sides: after its first chunk, event time of both is at 99."""
    source = TestSource(
        [("l", "l1", 100), ("r", "r1", 100), Cut(), ("l", "l2", 98), ("r", "r2", 98), ("r", "r3", 99)]
    )

    def build(env: Any) -> Any:
        stream = env.set_parallelism(1).add_source(source).assign_timestamps_and_watermarks(IN_TIME)
        left, right = (
            stream.filter(lambda value, s=side: value[0] == s).key_by(lambda _: 0) for side in "lr"
        )
        joined = left.interval_join(right).between(-50, 50).side_output_left_late_data(LATE).process(pairs)
        late = joined.get_side_output(LATE).map(lambda value: ("late", value[1]))
        return joined.map(lambda pair: ("pair", pair[0])).union(late)

    # The late right record has no side output and is dropped.
    assert unordered(host.run(build)) == [("late", "l2"), ("pair", "l1r1"), ("pair", "l1r3")]


@on_every_host(hosts=[LOCAL], nightly=[SPARK])
def test_what_cannot_be_joined_is_refused(host: Host) -> None:
    env = host.environment()
    left, right = timed(env, ORDERS).key_by(first), timed(env, PAYMENTS)
    with pytest.raises(NotKeyed, match="key_by"):
        left.interval_join(right)
    other = timed(host.environment(), PAYMENTS).key_by(first)
    with pytest.raises(InvalidArgument, match="one environment"):
        left.interval_join(other)
    joined = left.interval_join(right.key_by(first))
    with pytest.raises(NotSupported, match="in processing time"):
        joined.in_processing_time()
    with pytest.raises(InvalidArgument, match="lower bound"):
        joined.in_event_time().between(5, 4)
    with pytest.raises(InvalidArgument, match="no time lies between"):
        joined.between(5, 5).lower_bound_exclusive().process(pairs)
    with pytest.raises(InvalidArgument, match="process_element"):
        joined.between(5, 5).process(7)


@on_every_host(nightly=[SPARK, SPARK_BATCH])
def test_records_without_event_time_cannot_be_joined(host: Host) -> None:
    with pytest.raises(StepFailed, match=r"has no event time[\s\S]*assign_timestamps_and_watermarks"):
        host.run(
            lambda env: (
                env.from_collection([("a", 1)])
                .key_by(first)
                .interval_join(env.from_collection([("a", 2)]).key_by(first))
                .between(0, 5)
                .process(pairs)
            )
        )


class Named(FlatJoinFunction):
    """Reads its prefix in `open()`; no result for a pair of one time."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._prefix = runtime_context.get_job_parameter("prefix")

    def join(self, first: Any, second: Any) -> Iterable[str] | None:
        if first[2] == second[2]:
            return None
        return [f"{self._prefix}{first[1]}{second[1]}"]


class Concatenated(JoinFunction):
    def join(self, first: Any, second: Any) -> str:
        return first[1] + second[1]


class ByFirst(KeySelector):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._position = 0

    def get_key(self, value: Any) -> Any:
        return value[self._position]


class Sides(CoGroupFunction):
    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterable[Any]:
        yield sorted(value[1] for value in first), sorted(value[1] for value in second)


@on_every_host(nightly=[SPARK])
def test_window_joins_and_co_groups(host: Host) -> None:
    """Windows of 20 ms: a has o1, o2, p1 in the first and o4, p5 in the second; b has o3, p2 and then p3."""

    def build(env: Any) -> Any:
        env.set_job_parameters({"prefix": "+"})
        left, right, windows = timed(env, ORDERS), timed(env, PAYMENTS), TumblingEventTimeWindows.of(20)
        joined = left.join(right).where(ByFirst()).equal_to(first)
        grouped = left.co_group(right).where(first).equal_to(ByFirst()).window(windows)
        in_slides = joined.window(SlidingEventTimeWindows.of(40, 20))
        named = {
            "join": joined.window(windows).apply(Concatenated()),
            "plain": joined.window(windows).apply(lambda left, right: (left[1], right[1])),
            "flat": joined.window(windows).apply(Named()),
            "sliding": in_slides.apply(Concatenated()),
            "groups": grouped.apply(Sides()),
            "plain groups": grouped.apply(lambda left, right: [len(list(left)) - len(list(right))]),
        }
        streams = [stream.map(lambda value, n=name: (n, value)) for name, stream in named.items()]
        return streams[0].union(*streams[1:])

    out = {name: sorted(value for _, value in found) for name, found in per_key(host.run(build)).items()}
    assert out == {
        "join": ["o1p1", "o2p1", "o3p2", "o4p5"],
        "plain": [("o1", "p1"), ("o2", "p1"), ("o3", "p2"), ("o4", "p5")],
        "flat": ["+o1p1", "+o3p2", "+o4p5"],
        "sliding": [
            "o1p1",
            "o1p1",
            "o1p5",
            "o2p1",
            "o2p1",
            "o2p5",
            "o3p2",
            "o3p2",
            "o3p3",
            "o4p1",
            "o4p5",
            "o4p5",
        ],
        "groups": [
            ([], ["p3"]),
            ([], ["p4"]),
            (["o1", "o2"], ["p1"]),
            (["o3"], ["p2"]),
            (["o4"], ["p5"]),
            (["o5"], []),
        ],
        "plain groups": [-1, -1, 0, 0, 1, 1],
    }
