"""Any split into batches and any crash point give the same output: every stateful operator of the pure core."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.events.batch import MIN_WATERMARK
from emberflow.streams import (
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ListStateDescriptor,
    MapStateDescriptor,
    OutputTag,
    ProcessWindowFunction,
    RuntimeContext,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    ValueStateDescriptor,
    WatermarkGenerator,
    WatermarkStrategy,
)
from emberflow.testing import Emitted, OperatorHarness

DELAY = 4
SIDE = OutputTag("side")


@dataclass(frozen=True)
class Sent:
    """One record in flight: its input and channel, its time, and the channel's watermark before and after it."""

    value: Any
    into: int
    channel: int
    timestamp: int
    before: int
    after: int


@st.composite
def sequences(draw: st.DrawFn, inputs: int = 1, channels: int = 2) -> list[Sent]:
    """Records of several channels in the order in which they arrive, each channel with its own watermark."""
    raw = draw(
        st.lists(
            st.tuples(
                st.sampled_from("abc"),
                st.integers(0, 30),
                st.integers(0, inputs - 1),
                st.integers(0, channels - 1),
            ),
            max_size=25,
        )
    )
    highest: dict[tuple[int, int], int] = {}
    sent: list[Sent] = []
    for number, (key, stamp, into, channel) in enumerate(raw):
        seen = highest.get((into, channel))
        before = MIN_WATERMARK if seen is None else seen - DELAY - 1
        top = stamp if seen is None else max(seen, stamp)
        highest[(into, channel)] = top
        sent.append(Sent((key, number, stamp), into, channel, stamp, before, top - DELAY - 1))
    return sent


def groups(sent: list[Sent], cuts: Iterable[int]) -> list[list[Sent]]:
    """Batches: a new one at every cut and wherever the channel changes."""
    marks, found = set(cuts), list[list[Sent]]()
    for index, item in enumerate(sent):
        last = found[-1][-1] if found else None
        same = last is not None and (last.into, last.channel) == (item.into, item.channel)
        if same and index not in marks:
            found[-1].append(item)
        else:
            found.append([item])
    return found


def run(
    make: Callable[[bytes | None], OperatorHarness],
    batches: list[list[Sent]],
    crashes: set[int],
    *,
    own_watermarks: bool,
) -> list[Any]:
    """What the stage emits; before each batch numbered in `crashes` it is stored, discarded and restored."""
    harness, out = make(None), list[Any]()
    for number, batch in enumerate(batches):
        if number in crashes:
            stored = harness.snapshot()
            out += harness.log
            harness = make(stored)
        harness.send(
            [item.value for item in batch],
            [item.timestamp for item in batch],
            [item.before for item in batch] if own_watermarks else None,
            watermark=batch[-1].after if own_watermarks else None,
            into=batch[0].into,
            channel=batch[0].channel,
        )
    harness.end()
    out += harness.log
    return out


def first(value: Any) -> Any:
    return value[0]


class Alarm(KeyedProcessFunction):
    """Uses value, list and map state, sets and deletes timers of both kinds, and side outputs."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count"))
        self._seen = runtime_context.get_list_state(ListStateDescriptor("seen"))
        self._by_time = runtime_context.get_map_state(MapStateDescriptor("by_time"))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        _, number, stamp = value
        service = ctx.timer_service()
        self._count.update((self._count.value() or 0) + 1)
        self._seen.add(number)
        self._by_time.put(stamp % 3, number)
        if stamp % 4 == 3:
            service.delete_event_time_timer(stamp + 1)
        else:
            service.register_event_time_timer(stamp + stamp % 4)
        if stamp % 5 == 0:
            service.register_processing_time_timer(1_000_000)
        yield value[0], self._count.value(), service.current_watermark()
        if stamp % 7 == 0:
            yield SIDE, "not here"

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield ctx.get_current_key(), "timer", timestamp, list(self._seen.get()), sorted(self._by_time.items())
        self._seen.clear()
        if timestamp % 2:
            self._count.clear()
            self._by_time.remove(timestamp % 3)


class Elements(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield key, context.window().start, context.window().end, list(elements)


class Both(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._left = runtime_context.get_list_state(ListStateDescriptor("left"))
        self._right = runtime_context.get_state(ValueStateDescriptor("right"))

    def process_element1(self, value: Any, ctx: Any) -> Iterable[Any]:
        self._left.add(value[1])
        ctx.timer_service().register_event_time_timer(value[2] + 2)
        yield value[0], "left", self._right.value()

    def process_element2(self, value: Any, ctx: Any) -> Iterable[Any]:
        self._right.update(value[1])
        yield value[0], "right", list(self._left.get())

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield ctx.get_current_key(), timestamp, list(self._left.get()), self._right.value()
        self._left.clear()


class EverySecond(WatermarkGenerator):
    def __init__(self) -> None:
        self._count = 0
        self._highest = -1

    def on_event(self, value: Any, timestamp: int, output: Any) -> None:
        self._count += 1
        self._highest = max(self._highest, timestamp)
        if self._count % 2 == 0:
            output.emit_watermark(self._highest - 1)


GENERATOR = WatermarkStrategy.for_generator(EverySecond).with_timestamp_assigner(lambda value, _: value[2])
TUMBLING, SLIDING = TumblingEventTimeWindows.of(5), SlidingEventTimeWindows.of(6, 4, 1)

STEPS: dict[str, tuple[Callable[..., Any], int]] = {
    "reduce": (lambda stream: stream.key_by(first).reduce(lambda a, b: (a[0], a[1] + b[1], b[2])), 1),
    "process": (lambda stream: stream.key_by(first).process(Alarm()), 1),
    "tumbling": (lambda stream: stream.key_by(first).window(TUMBLING).process(Elements()), 1),
    "sliding": (
        lambda stream: (
            stream.key_by(first).window(SLIDING).reduce(lambda a, b: (a[0], a[1] + b[1]), Elements())
        ),
        1,
    ),
    "co-process": (lambda one, two: one.key_by(first).connect(two.key_by(first)).process(Both()), 2),
    "generator": (lambda stream: stream.assign_timestamps_and_watermarks(GENERATOR), 1),
}


@pytest.mark.parametrize("name", STEPS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_splits_and_crashes_change_nothing(name: str, data: st.DataObject) -> None:
    build, inputs = STEPS[name]
    sent = data.draw(sequences(inputs=inputs), label="records")
    cuts = data.draw(st.sets(st.integers(0, len(sent))), label="cuts")
    batches = groups(sent, cuts)
    crashes = data.draw(st.sets(st.integers(0, max(len(batches) - 1, 0)), max_size=4), label="crashes")

    def make(stored: bytes | None) -> OperatorHarness:
        return OperatorHarness(build, inputs=inputs, channels=2, restore=stored)

    own = name != "generator"
    one_by_one = run(make, groups(sent, range(len(sent))), set(), own_watermarks=own)
    assert records(run(make, batches, set(), own_watermarks=own)) == records(one_by_one)
    assert records(run(make, batches, crashes, own_watermarks=own)) == records(one_by_one)
    if own:
        never_late(one_by_one)


def records(log: list[Any]) -> list[tuple[Any, int | None, int]]:
    # No watermark and one at the beginning of time are equivalent.
    return [(item.value, item.timestamp, _mark(item)) for item in log if isinstance(item, Emitted)]


def _mark(item: Emitted) -> int:
    return MIN_WATERMARK if item.watermark is None else item.watermark


def never_late(log: list[Any]) -> None:
    """Watermarks never regress, and the watermark before a record is no higher than what was sent."""
    current = MIN_WATERMARK
    for item in log:
        mark = item if isinstance(item, int) else item.watermark
        if mark is not None:
            assert mark >= current
            current = mark
