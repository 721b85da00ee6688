"""Steps of random programs with two inputs, each with its model, and the tables of all steps; see random_programs.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from emberflow.events.batch import MAX_WATERMARK
from tests.support import random_functions as functions
from tests.support.random_functions import FAR_MS, KEYS, LIMIT, digest
from tests.support.random_keyed_steps import (
    Alarm,
    Buckets,
    CountWindow,
    EndOfInput,
    Running,
    StateOfAllKinds,
    keyed,
    per_key,
    spread,
)
from tests.support.random_programs import Flow, Maker, Order, Program, Rec, Shape, Step, random_program
from tests.support.random_sources import Numbers
from tests.support.random_steps import Async, Partitioned, SideOutput, Stamps, Stateless, key_of, mapped
from tests.support.random_windows import Assigner, Windows
from tests.support.window_model import AtTheEnd


class Union:
    def __init__(self, rng: Random, shapes: list[Shape]) -> None:
        timed = all(shape.timed and not shape.late for shape in shapes)
        self.map = rng.random() < 0.3
        self.outs = [Shape(Order.NONE, timed)]

    def build(self, env: Any, streams: list[Any]) -> list[Any]:
        if self.map:
            return [streams[0].connect(streams[1]).map(functions.Both())]
        return [streams[0].union(streams[1])]

    def model(self, flows: list[Flow], batch: bool) -> list[Flow]:
        if self.map:
            first = mapped(flows[0], lambda value: [(value[0], value[1] * 2 % LIMIT)])
            flows = [first, mapped(flows[1], lambda value: [(value[0], (value[1] * 3 + 1) % LIMIT)])]
        return [Flow([rec for flow in flows for rec in flow.recs])]


class Broadcast:
    def __init__(self, rng: Random, shapes: list[Shape]) -> None:
        self.keyed, self.parallelism = rng.random() < 0.5, keyed(rng)
        timed = all(shape.timed and not shape.late for shape in shapes)
        self.outs = [Shape(Order.KEYED, True) if self.keyed else Shape(Order.NONE, timed)]

    def build(self, env: Any, streams: list[Any]) -> list[Any]:
        rules = streams[1].broadcast(functions.RULES)
        if self.keyed:
            made = streams[0].key_by(key_of).connect(rules).process(functions.Ruled())
            return [spread(made, self.parallelism)]
        return [streams[0].connect(rules).process(functions.Told())]

    def model(self, flows: list[Flow], batch: bool) -> list[Flow]:
        if not self.keyed:
            told = mapped(flows[1], lambda value: [(value[0], (value[1] + 1) % LIMIT)])
            return [Flow([*flows[0].recs, *told.recs])]
        sums = {key: sum(rec.number for rec in recs) for key, recs in sorted(per_key(flows[1]).items())}
        rules = [x for item in sums.items() for x in item]
        return [
            Flow(
                [
                    Rec(key, digest([sum(rec.number for rec in recs), *rules]), FAR_MS)
                    for key, recs in per_key(flows[0]).items()
                ]
            )
        ]


class Join:
    """Interval joins, window joins and co-groups."""

    def __init__(self, rng: Random, shapes: list[Shape]) -> None:
        self.kind, self.assigner = rng.choice(["interval", "join", "co_group"]), Assigner(rng)
        self.low, self.span, self.parallelism = rng.randint(-20, 20), rng.randint(0, 60), keyed(rng)
        self.outs = [Shape(Order.NONE, True)]

    def build(self, env: Any, streams: list[Any]) -> list[Any]:
        one, other = streams
        if self.kind == "interval":
            joined = one.key_by(key_of).interval_join(other.key_by(key_of))
            made = joined.between(self.low, self.low + self.span).process(functions.Joined())
            return [spread(made, self.parallelism)]
        both = getattr(one, self.kind)(other).where(key_of).equal_to(key_of).window(self.assigner.make())
        return [both.apply(functions.joined if self.kind == "join" else functions.Groups())]

    def model(self, flows: list[Flow], batch: bool) -> list[Flow]:
        made: list[Rec] = []
        if self.kind == "interval":
            for one in flows[0].recs:
                for other in flows[1].recs:
                    assert one.at is not None
                    assert other.at is not None
                    if one.key == other.key and 0 <= other.at - one.at - self.low <= self.span:
                        made.append(Rec(one.key, digest([one.number, other.number]), max(one.at, other.at)))
            return [Flow(made)]
        self.assigner.check(flows)
        for key in range(KEYS):
            model = self.assigner.model(AtTheEnd("event"))
            # Numbers of the second input are told apart by an offset that is a multiple of every size.
            for side, flow in enumerate(flows):
                for rec in flow.recs:
                    if rec.key == key:
                        assert rec.at is not None
                        model.record("", rec.number + side * 300_000, rec.at)
            model.advance(MAX_WATERMARK)
            for _, window, numbers in model.fired:
                left = sorted(number for number in numbers if number < 300_000)
                right = sorted(number - 300_000 for number in numbers if number >= 300_000)
                at = window[1] - 1
                if self.kind == "co_group":
                    made.append(Rec(key, digest([*left, 77, *right]), at))
                else:
                    made += [Rec(key, digest([a, b]), at) for a in left for b in right]
        return [Flow(made)]


def random_program_of(rng: Random, size: int, folder: Path) -> Program:
    """`folder` is for the files of sources."""
    return random_program(rng, size, [lambda rng: Numbers(rng, folder)], ONE_INPUT, TWO_INPUTS)


def needs(step: Any, *tests: Callable[[Shape], bool]) -> Maker:
    def make(rng: Random, shapes: list[Shape]) -> Step | None:
        return step(rng, shapes) if all(test(shape) for shape in shapes for test in tests) else None

    return make


def not_late(shape: Shape) -> bool:
    return not shape.late


def timed(shape: Shape) -> bool:
    return shape.timed


def with_order(shape: Shape) -> bool:
    return shape.order >= Order.KEYED


def exact(shape: Shape) -> bool:
    return shape.order is Order.TOTAL


ONE_INPUT = [
    needs(Stateless),
    needs(Stateless),
    needs(SideOutput),
    needs(Async),
    needs(Stamps),
    needs(Partitioned),
    needs(Running, with_order),
    needs(StateOfAllKinds, with_order),
    needs(Buckets, timed),
    needs(Alarm, timed, exact),
    needs(EndOfInput),
    needs(CountWindow, with_order),
    needs(Windows, timed),
    needs(Windows, timed),
]
TWO_INPUTS = [
    needs(Union),
    needs(Union),
    needs(Buckets, timed, not_late),
    needs(Broadcast),
    needs(Join, timed, not_late),
    needs(Join, timed, not_late),
]
