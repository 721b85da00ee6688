"""Random stream programs with an obvious model of each step, to compare engines with.

A program is a list of nodes, each a step on outputs of earlier nodes. Records are pairs `(key, number)`. What a program
computes must not depend on how its input is split and scheduled, so a `Shape` says what is defined of a stream, and a step is
added only where its own result is then defined too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from random import Random
from typing import Any, NamedTuple, Protocol

from emberflow.events.batch import MIN_WATERMARK
from tests.support.random_functions import Leaf


class Order(IntEnum):
    """What is defined of a stream's order."""

    NONE = 0
    KEYED = 1
    """The records of a key."""
    TOTAL = 2
    """All records, and the watermark before each: the stream of one channel, before any shuffle."""


@dataclass(frozen=True)
class Shape:
    order: Order
    timed: bool
    """Whether records have timestamps of which windows can be made, and a watermark that they are not behind."""
    late: bool = False
    """Whether records may be behind the watermark; only with a total order, where it is defined which ones."""

    def shuffled(self, order: Order = Order.KEYED) -> Shape:
        """What is left behind a step with keys, which may have tasks of its own."""
        return Shape(min(self.order, order), self.timed and not self.late)


class Rec(NamedTuple):
    key: int
    number: int
    at: int | None


@dataclass
class Flow:
    """The records of a stream; of a total order, with the watermark before each."""

    recs: list[Rec]
    marks: list[int] | None = None

    def steps(self) -> list[tuple[int, Rec]]:
        """Without defined watermarks no record may be late: as if there were none until the end."""
        return list(zip(self.marks or [MIN_WATERMARK] * len(self.recs), self.recs, strict=True))


class Undefined(Exception):
    """What a step computes depends on how its input is scheduled."""


class Step(Protocol):
    """Chosen at random for inputs of certain shapes; builds itself and knows what comes out."""

    outs: list[Shape]

    def build(self, env: Any, streams: list[Any]) -> list[Any]: ...
    def model(self, flows: list[Flow], batch: bool) -> list[Flow]: ...


@dataclass
class Node:
    step: Step
    inputs: list[tuple[int, int]]
    """(node, which of its outputs)"""

    def __repr__(self) -> str:
        settings = ", ".join(
            f"{k}={v}" for k, v in vars(self.step).items() if k not in ("outs", "items", "_files")
        )
        shapes = [
            f"{shape.order.name}{' timed' * shape.timed}{' late' * shape.late}" for shape in self.step.outs
        ]
        return f"{type(self.step).__name__}({settings}) of {self.inputs} -> {shapes}"


@dataclass
class Program:
    nodes: list[Node] = field(default_factory=list[Node])

    def leaves(self) -> list[tuple[int, int]]:
        used = {outlet for node in self.nodes for outlet in node.inputs}
        every = [(index, out) for index, node in enumerate(self.nodes) for out in range(len(node.step.outs))]
        return [outlet for outlet in every if outlet not in used]

    def shape(self, outlet: tuple[int, int]) -> Shape:
        return self.nodes[outlet[0]].step.outs[outlet[1]]

    def build(self, env: Any) -> Any:
        """The records of all leaves as (leaf, key, number, timestamp)."""
        streams: list[list[Any]] = []
        for node in self.nodes:
            streams.append(node.step.build(env, [streams[at][out] for at, out in node.inputs]))
        ends = [streams[at][out].process(Leaf(f"{at}.{out}")) for at, out in self.leaves()]
        return ends[0].union(*ends[1:]) if ends[1:] else ends[0]

    def expected(self, *, batch: bool) -> list[Any]:
        flows: list[list[Flow]] = []
        for node in self.nodes:
            flows.append(node.step.model([flows[at][out] for at, out in node.inputs], batch))
        return [
            (f"{at}.{out}", rec.key, rec.number, rec.at if self.shape((at, out)).timed else None)
            for at, out in self.leaves()
            for rec in flows[at][out].recs
        ]

    def differences(self, found: list[Any], *, batch: bool) -> list[str]:
        """What is wrong with the output of a run, leaf by leaf, below the program."""
        wrong: list[str] = []
        expected = self.expected(batch=batch)
        for at, out in self.leaves():
            name, shape = f"{at}.{out}", self.shape((at, out))
            have = [item if shape.timed else (*item[:3], None) for item in found if item[0] == name]
            want = [item for item in expected if item[0] == name]
            if shape.order is Order.NONE:
                same = sorted(have, key=repr) == sorted(want, key=repr)
            else:
                same = by_key(have) == by_key(want)
            if not same:
                wrong.append(f"{self.nodes[at]} as {name}:\n  got  {by_key(have)}\n  want {by_key(want)}")
        return wrong

    def __repr__(self) -> str:
        return "\n".join(f"{index}: {node}" for index, node in enumerate(self.nodes))


def by_key(items: list[Any]) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for item in items:
        found.setdefault(item[1], []).append(item[2:])
    return {key: found[key] for key in sorted(found)}


Maker = Callable[[Random, list[Shape]], Step | None]
"""A step for these inputs, None if it cannot have them."""


def random_program(
    rng: Random,
    size: int,
    sources: list[Callable[[Random], Step]],
    one_input: list[Maker],
    two_inputs: list[Maker],
) -> Program:
    program = Program([Node(rng.choice(sources)(rng), []) for _ in range(rng.randint(1, 2))])
    while len(program.nodes) < size:
        outlets = [(i, out) for i, node in enumerate(program.nodes) for out in range(len(node.step.outs))]
        # Mostly the newest, so that programs get deep.
        inputs = [outlets[max(rng.randrange(len(outlets)), rng.randrange(len(outlets)))]]
        makers = one_input
        if rng.random() < 0.25:
            inputs.append(rng.choice(outlets))
            makers = two_inputs
        step = rng.choice(makers)(rng, [program.shape(outlet) for outlet in inputs])
        if step is not None:
            program.nodes.append(Node(step, inputs))
            try:
                program.expected(batch=False)
            except Undefined:
                program.nodes.pop()
    return program
