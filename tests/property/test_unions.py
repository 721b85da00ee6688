"""Any way to split a stream and join it again leaves every record in its window, and the program ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.streams import (
    DataStream,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
    TumblingEventTimeWindows,
    WatermarkStrategy,
)
from emberflow.testing import LOCAL, LOCAL_2, LOCAL_BATCH

Stream = DataStream[Any]
TAG = OutputTag("aside")
TIMED = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: 5 * value)


class Same(MapFunction[Any, Any]):
    def map(self, value: Any) -> Any:
        return value


class Aside(ProcessFunction[Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield (TAG, value) if value % 3 else value


class Sizes(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield context.window().start, Counter(elements)


def halves(stream: Stream) -> Stream:
    return stream.filter(lambda value: value % 2 == 0).union(stream.filter(lambda value: value % 2 == 1))


def side_output(stream: Stream) -> Stream:
    split = stream.process(Aside())
    return split.union(split.get_side_output(TAG))


def twice(stream: Stream) -> Stream:
    return stream.union(stream)


def through_an_exchange(stream: Stream) -> Stream:
    return (
        stream.filter(lambda value: value % 5 == 0)
        .rebalance()
        .union(stream.filter(lambda value: value % 5 > 0))
    )


def through_keys(stream: Stream) -> Stream:
    keyed = stream.key_by(lambda value: value % 3)
    return keyed.map(lambda value: value).union(keyed.filter(lambda value: False))


SHAPES: dict[str, tuple[Callable[[Stream], Stream], int]] = {
    "halves": (halves, 1),
    "side output": (side_output, 1),
    "twice": (twice, 2),
    "exchange": (through_an_exchange, 1),
    "keys": (through_keys, 1),
    "map": (lambda stream: stream.map(lambda value: value), 1),
    "object": (lambda stream: stream.map(Same()), 1),
    "rebalance": (lambda stream: stream.rebalance(), 1),
}


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(sorted(SHAPES)), min_size=1, max_size=5),
    st.integers(0, 30),
    st.sampled_from([LOCAL, LOCAL_2, LOCAL_BATCH]),
)
def test_every_record_is_in_its_window(shapes: list[str], count: int, host: Any) -> None:
    def build(env: Any) -> Stream:
        stream = env.from_collection(list(range(count))).assign_timestamps_and_watermarks(TIMED)
        for shape in shapes:
            stream = SHAPES[shape][0](stream)
        window = TumblingEventTimeWindows.of(timedelta(milliseconds=20))
        return stream.key_by(lambda value: 0).window(window).process(Sizes())

    copies = 1
    for shape in shapes:
        copies *= SHAPES[shape][1]
    expected: dict[int, Counter[int]] = {}
    for number in range(count):
        expected.setdefault(number // 4 * 20, Counter())[number] = copies
    found = host.run(build)
    assert len(found) == len(expected)
    assert dict(found) == expected
