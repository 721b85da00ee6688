"""Steps of random programs without keys, each with its model; see random_programs.py."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from emberflow.events.batch import MIN_WATERMARK
from emberflow.streams import AsyncDataStream, WatermarkStrategy
from tests.support import random_functions as functions
from tests.support.random_functions import KEYS, LIMIT, SIDE
from tests.support.random_programs import Flow, Order, Rec, Shape


def key_of(value: Any) -> Any:
    return value[0]


def number_of(value: Any, _: Any = None) -> Any:
    return value[1]


def same(value: Any) -> Any:
    return value


def modulo(key: int, tasks: int) -> int:
    return key % tasks


class Stateless:
    """map, flat_map, filter."""

    def __init__(self, rng: Random, shapes: list[Shape]) -> None:
        (shape,) = shapes
        self.kind = rng.choice(["number", "key", "filter", "flat"])
        self.factor = rng.randint(1, 50)
        loses = self.kind == "key" and shape.order is Order.KEYED
        self.outs = [Shape(Order.NONE, shape.timed, shape.late) if loses else shape]

    def call(self, value: Any) -> list[Any]:
        key, number = value
        if self.kind == "number":
            return [(key, (number * self.factor + 7) % LIMIT)]
        if self.kind == "key":
            return [((key + number + self.factor) % KEYS, number)]
        if self.kind == "filter":
            return [value] if (number + self.factor) % 3 else []
        return [(key, (number + copy) % LIMIT) for copy in range(number % 3)]

    def first(self, value: Any) -> Any:
        return self.call(value)[0]

    def keeps(self, value: Any) -> bool:
        return bool(self.call(value))

    def build(self, env: Any, streams: list[Any]) -> list[Any]:
        (stream,) = streams
        if self.kind == "filter":
            return [stream.filter(self.keeps)]
        return [stream.flat_map(self.call) if self.kind == "flat" else stream.map(self.first)]

    def model(self, flows: list[Flow], batch: bool) -> list[Flow]:
        return [mapped(flows[0], self.call)]


def mapped(flow: Flow, call: Callable[[Any], list[Any]]) -> Flow:
    made = [
        (mark, Rec(new[0], new[1], rec.at))
        for mark, rec in flow.steps()
        for new in call((rec.key, rec.number))
    ]
    return Flow([rec for _, rec in made], None if flow.marks is None else [mark for mark, _ in made])


class SideOutput:
    def __init__(self, rng: Random, shapes: list[Shape]) -> None:
        self.parts = rng.randint(2, 4)
        self.outs = [shapes[0], shapes[0]]

    def build(self, env: Any, streams: list[Any]) -> list[Any]:
        split = streams[0].process(functions.Aside(self.parts))
        return [split, split.get_side_output(SIDE)]

    def model(self, flows: list[Flow], batch: bool) -> list[Flow]:
        return [
            mapped(flows[0], lambda value: [value] if value[1] % self.parts else []),
            mapped(flows[0], lambda value: [] if value[1] % self.parts else [value]),
        ]


class Async:
    def __init__(self, rng: Random, shapes: list[Shape]) -> None:
        (shape,) = shapes
        self.ordered, self.capacity = rng.random() < 0.5, rng.choice([1, 3, 100])
        # A result may overtake records, but not a watermark.
        self.outs = [shape if self.ordered else Shape(Order.NONE, shape.timed and not shape.late)]

    def build(self, env: Any, streams: list[Any]) -> list[Any]:
        wait = AsyncDataStream.ordered_wait if self.ordered else AsyncDataStream.unordered_wait
        return [wait(streams[0], functions.slowly, 60_000, capacity=self.capacity)]

    def model(self, flows: list[Flow], batch: bool) -> list[Flow]:
        flow = mapped(flows[0], lambda value: [(value[0], (value[1] * 3 + 1) % LIMIT)])
        return [flow if self.ordered else Flow(flow.recs)]


class Stamps:
    """New timestamps: the numbers of the records, which are in no order, so that many are late unless all are waited for."""

    def __init__(self, rng: Random, shapes: list[Shape]) -> None:
        (shape,) = shapes
        self.waits = LIMIT if shape.order is not Order.TOTAL else rng.choice([LIMIT, 20, 0, None])
        self.outs = [Shape(shape.order, True, self.waits != LIMIT)]

    def build(self, env: Any, streams: list[Any]) -> list[Any]:
        if self.waits is None:
            strategy = WatermarkStrategy.for_generator(functions.EveryThird)
        else:
            strategy = WatermarkStrategy.for_bounded_out_of_orderness(self.waits)
        return [streams[0].assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(number_of))]

    def model(self, flows: list[Flow], batch: bool) -> list[Flow]:
        recs = [rec._replace(at=rec.number) for rec in flows[0].recs]
        if self.outs[0].order is not Order.TOTAL:
            return [Flow(recs)]
        marks, mark = list[int](), MIN_WATERMARK
        for rec in recs:
            marks.append(MIN_WATERMARK if batch else mark)
            if self.waits is not None:
                mark = max(mark, rec.number - self.waits - 1)
            elif rec.number % 3 == 0:
                mark = max(mark, rec.number - 5)
        return [Flow(recs, marks)]


class Partitioned:
    def __init__(self, rng: Random, shapes: list[Shape]) -> None:
        (shape,) = shapes
        self.kind = rng.choice(
            ["rebalance", "shuffle", "rescale", "broadcast", "global_", "custom", "forward"]
        )
        self.tasks = 1 if self.kind == "global_" else rng.randint(1, 3)
        if self.kind == "forward":
            self.outs = [shape]
        else:
            self.outs = [shape.shuffled(Order.KEYED if self.kind == "custom" else Order.NONE)]

    def build(self, env: Any, streams: list[Any]) -> list[Any]:
        (stream,) = streams
        if self.kind == "forward":
            return [stream.forward().map(same)]
        if self.kind == "custom":
            there = stream.partition_custom(modulo, key_of)
        else:
            there = getattr(stream, self.kind)()
        return [there.map(same).set_parallelism(self.tasks)]

    def model(self, flows: list[Flow], batch: bool) -> list[Flow]:
        copies = self.tasks if self.kind == "broadcast" else 1
        if self.kind == "forward":
            return flows
        return [Flow([rec for rec in flows[0].recs for _ in range(copies)])]
