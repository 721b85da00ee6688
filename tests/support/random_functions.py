"""The user functions of random programs; see random_programs.py. They are objects with few settings, so that programs can
be printed, and do not depend on the order of records unless they say so."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from emberflow.streams import (
    AggregateFunction,
    AggregatingStateDescriptor,
    BroadcastProcessFunction,
    CoGroupFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    ListStateDescriptor,
    MapStateDescriptor,
    OutputTag,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    ReduceFunction,
    ReducingStateDescriptor,
    RuntimeContext,
    ValueStateDescriptor,
    Watermark,
    WatermarkGenerator,
)

KEYS = 5
LIMIT = 9_973
"""Numbers are below it."""
Pair = tuple[int, int]
SIDE: OutputTag[Pair] = OutputTag("side")
FAR_MS = 10**9
"""Later than any record."""
RULES = MapStateDescriptor[int, int]("rules")


def digest(numbers: Iterable[int]) -> int:
    """Depends on the order."""
    found = 7
    for number in numbers:
        found = (found * 31 + number) % LIMIT
    return found


class Leaf(ProcessFunction[Pair, Any]):
    def __init__(self, name: str) -> None:
        self.name = name

    def process_element(self, value: Pair, ctx: Any) -> Iterable[Any]:
        yield self.name, value[0], value[1], ctx.timestamp()


class Aside(ProcessFunction[Pair, Any]):
    def __init__(self, parts: int) -> None:
        self.parts = parts

    def process_element(self, value: Pair, ctx: Any) -> Iterable[Any]:
        yield (SIDE, value) if value[1] % self.parts == 0 else value


async def slowly(value: Pair) -> Pair:
    await asyncio.sleep(value[1] % 3 * 0.0005)
    return value[0], (value[1] * 3 + 1) % LIMIT


class EveryThird(WatermarkGenerator):
    """A watermark only after some of the records."""

    def on_event(self, value: Pair, timestamp: int, output: Any) -> None:
        if value[1] % 3 == 0:
            output.emit_watermark(Watermark(timestamp - 5))

    def on_periodic_emit(self, output: Any) -> None:
        pass


class Zoo(KeyedProcessFunction[int, Pair, Pair]):
    """Every kind of state; depends on the order."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last"))
        self.some = runtime_context.get_list_state(ListStateDescriptor("some"))
        self.counts = runtime_context.get_map_state(MapStateDescriptor("counts"))
        self.sum = runtime_context.get_reducing_state(ReducingStateDescriptor("sum", lambda a, b: a + b))
        self.mean = runtime_context.get_aggregating_state(AggregatingStateDescriptor("mean", Sum()))

    def process_element(self, value: Pair, ctx: Any) -> Iterable[Pair]:
        number = value[1]
        parts = [self.last.value() or 0]
        self.last.update(number if number % 4 else None)
        self.some.add(number)
        if number % 5 == 0:
            self.some.update(list(self.some.get())[-2:])
        elif number % 11 == 0:
            self.some.clear()
        parts += list(self.some.get())
        if number % 7 == 6 and self.counts.contains(number % 3):
            self.counts.remove(number % 3)
        else:
            self.counts.put(number % 3, (self.counts.get(number % 3) or 0) + 1)
        parts += [x for item in sorted(self.counts.items()) for x in item]
        self.sum.add(number)
        self.mean.add(value)
        parts += [self.sum.get(), self.mean.get() or 0]
        yield ctx.get_current_key(), digest(parts)


class Buckets(KeyedProcessFunction[int, Pair, Pair]):
    """What a tumbling window does, by hand. Also a function of two inputs."""

    def __init__(self, size: int) -> None:
        self.size = size

    def open(self, runtime_context: RuntimeContext) -> None:
        self.buckets = runtime_context.get_map_state(MapStateDescriptor("buckets"))

    def process_element(self, value: Pair, ctx: Any) -> Iterable[Pair]:
        return self.add(value, ctx, 1)

    def add(self, value: Pair, ctx: Any, factor: int) -> Iterable[Pair]:
        timers = ctx.timer_service()
        if ctx.timestamp() <= timers.current_watermark():
            return
        ends = ctx.timestamp() // self.size * self.size + self.size - 1
        self.buckets.put(ends, [*(self.buckets.get(ends) or []), value[1] * factor])
        timers.register_event_time_timer(ends)
        yield from ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Pair]:
        yield ctx.get_current_key(), digest(sorted(self.buckets.get(timestamp) or []))
        self.buckets.remove(timestamp)


class CoBuckets(CoProcessFunction[Pair, Pair, Pair]):
    def __init__(self, size: int) -> None:
        self.inner = Buckets(size)

    def open(self, runtime_context: RuntimeContext) -> None:
        self.inner.open(runtime_context)

    def process_element1(self, value: Pair, ctx: Any) -> Iterable[Pair]:
        return self.inner.add(value, ctx, 1)

    def process_element2(self, value: Pair, ctx: Any) -> Iterable[Pair]:
        return self.inner.add(value, ctx, 2)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Pair]:
        return self.inner.on_timer(timestamp, ctx)


class Alarm(KeyedProcessFunction[int, Pair, Pair]):
    """A timer that every record moves; when it fires, it registers two more, the second of them in the past."""

    def __init__(self, gap: int) -> None:
        self.gap = gap

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("state"))

    def process_element(self, value: Pair, ctx: Any) -> Iterable[Pair]:
        count, at, rounds = self.state.value() or (0, None, 0)
        timers = ctx.timer_service()
        if at is not None:
            timers.delete_event_time_timer(at)
        at = ctx.timestamp() + self.gap
        timers.register_event_time_timer(at)
        self.state.update((count + 1, at, rounds))
        yield ctx.get_current_key(), (count * 1_000 + value[1]) % LIMIT

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Pair]:
        count, at, rounds = self.state.value() or (0, None, 0)
        yield ctx.get_current_key(), (5_000 + count * 10 + rounds) % LIMIT
        if timestamp == at:
            if rounds % 3 < 2:
                ctx.timer_service().register_event_time_timer(timestamp - 3)
                ctx.timer_service().register_event_time_timer(timestamp + 2)
            self.state.update((0, None, rounds + 1))


class AtTheEnd(KeyedProcessFunction[int, Pair, Pair]):
    """One timer by the clock, which is due when the input ends."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum"))

    def process_element(self, value: Pair, ctx: Any) -> Iterable[Pair]:
        self.sum.update((self.sum.value() or 0) + value[1])
        ctx.timer_service().register_processing_time_timer(4_102_444_800_000)
        yield from ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Pair]:
        yield ctx.get_current_key(), (self.sum.value() or 0) % LIMIT


class Ruled(KeyedBroadcastProcessFunction[int, Pair, Pair, Pair]):
    """Records and rules meet when both have ended."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum"))

    def process_element(self, value: Pair, ctx: Any) -> Iterable[Pair]:
        self.sum.update((self.sum.value() or 0) + value[1])
        ctx.timer_service().register_event_time_timer(FAR_MS)
        yield from ()

    def process_broadcast_element(self, value: Pair, ctx: Any) -> Iterable[Pair]:
        rules = ctx.get_broadcast_state(RULES)
        rules.put(value[0], (rules.get(value[0]) or 0) + value[1])
        yield from ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Pair]:
        rules = [x for item in sorted(ctx.get_broadcast_state(RULES).items()) for x in item]
        yield ctx.get_current_key(), digest([self.sum.value() or 0, *rules])


class Told(BroadcastProcessFunction[Pair, Pair, Pair]):
    """Passes records on, and rules in one of the tasks."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.tells = runtime_context.get_index_of_this_subtask() == 0

    def process_element(self, value: Pair, ctx: Any) -> Iterable[Pair]:
        yield value

    def process_broadcast_element(self, value: Pair, ctx: Any) -> Iterable[Pair]:
        rules = ctx.get_broadcast_state(RULES)
        rules.put(value[0], (rules.get(value[0]) or 0) + value[1])
        if self.tells:
            yield value[0], (value[1] + 1) % LIMIT


class Both(CoMapFunction[Pair, Pair, Pair]):
    def map1(self, value: Pair) -> Pair:
        return value[0], (value[1] * 2) % LIMIT

    def map2(self, value: Pair) -> Pair:
        return value[0], (value[1] * 3 + 1) % LIMIT


class Sum(AggregateFunction[Pair, int, int]):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Pair, accumulator: int) -> int:
        return accumulator + value[1]

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b

    def get_result(self, accumulator: int) -> int:
        return accumulator % LIMIT


class Added(ReduceFunction[Pair]):
    mergeable = True

    def reduce(self, value1: Pair, value2: Pair) -> Pair:
        return value1[0], value1[1] + value2[1]


class Contents(ProcessWindowFunction[Any, Pair, int, Any]):
    """The digest of a window; depends on the order if it is `ordered`."""

    def __init__(self, *, ordered: bool) -> None:
        self.ordered = ordered

    def process(self, key: int, context: Any, elements: Iterable[Any]) -> Iterable[Pair]:
        numbers = [element[1] for element in elements]
        yield key, digest(numbers if self.ordered else sorted(numbers))


class One(ProcessWindowFunction[int, Pair, int, Any]):
    """Of an aggregate: its only element."""

    def process(self, key: int, context: Any, elements: Iterable[int]) -> Iterable[Pair]:
        (number,) = elements
        yield key, number % LIMIT


class Groups(CoGroupFunction[Pair, Pair, Pair]):
    def co_group(self, first: Iterable[Pair], second: Iterable[Pair]) -> Iterable[Pair]:
        left, right = sorted(first), sorted(second)
        key = (left or right)[0][0]
        yield key, digest([*(number for _, number in left), 77, *(number for _, number in right)])


class Joined(ProcessJoinFunction[Pair, Pair, Pair]):
    def process_element(self, left: Pair, right: Pair, ctx: Any) -> Iterable[Pair]:
        yield joined(left, right)


def joined(left: Pair, right: Pair) -> Pair:
    return left[0], digest([left[1], right[1]])


class AllContents(ProcessAllWindowFunction[Pair, Pair, Any]):
    def process(self, context: Any, elements: Iterable[Pair]) -> Iterable[Pair]:
        yield 0, digest(sorted(element[1] for element in elements))


class AllOne(ProcessAllWindowFunction[int, Pair, Any]):
    def process(self, context: Any, elements: Iterable[int]) -> Iterable[Pair]:
        for number in elements:
            yield 0, number
