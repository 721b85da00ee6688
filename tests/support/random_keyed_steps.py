"""Steps of random programs with state of a key, each with its model; see random_programs.py."""

from __future__ import annotations

from functools import reduce
from random import Random
from typing import Any

from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK
from emberflow.streams import TumblingProcessingTimeWindows
from tests.support import random_functions as functions
from tests.support.random_functions import LIMIT, digest
from tests.support.random_programs import Flow, Order, Rec, Shape
from tests.support.random_steps import key_of

CLOCK_WINDOW_MS = 10**15
"""The only window of the clock."""


def keyed(rng: Random) -> int | None:
    """The parallelism of a keyed step."""
    return rng.choice([None, None, 1, 3])


def spread(stream: Any, parallelism: int | None) -> Any:
    return stream if parallelism is None else stream.set_parallelism(parallelism)


def per_key(flow: Flow) -> dict[int, list[Rec]]:
    found: dict[int, list[Rec]] = {}
    for rec in flow.recs:
        found.setdefault(rec.key, []).append(rec)
    return found


def within(value: Any) -> Any:
    return value[0], value[1] % LIMIT


class Running:
    """reduce, sum, min_by, …: a running value for each record, in batch mode the last one."""

    KINDS = ("reduce", "sum", "min", "max", "min_by", "max_by")

    def __init__(self, rng: Random, shapes: list[Shape]) -> None:
        self.kind, self.parallelism = rng.choice(self.KINDS), keyed(rng)
        self.outs = [Shape(Order.KEYED, False)]

    def combine(self, one: Any, other: Any) -> Any:
        if self.kind == "reduce":
            return one[0], digest([one[1], other[1]])
        if self.kind == "sum":
            return one[0], one[1] + other[1]
        smaller = self.kind.startswith("min")
        return one[0], min(one[1], other[1]) if smaller else max(one[1], other[1])

    def build(self, env: Any, streams: list[Any]) -> list[Any]:
        stream = streams[0].key_by(key_of)
        made = stream.reduce(self.combine) if self.kind == "reduce" else getattr(stream, self.kind)(1)
        return [spread(made, self.parallelism).map(within)]

    def model(self, flows: list[Flow], batch: bool) -> list[Flow]:
        made: list[Rec] = []
        for key, recs in per_key(flows[0]).items():
            values = [(key, rec.number) for rec in recs]
            running = [reduce(self.combine, values[: end + 1]) for end in range(len(values))]
            made += [Rec(key, value[1] % LIMIT, None) for value in (running[-1:] if batch else running)]
        return [Flow(made)]


class StateOfAllKinds:
    def __init__(self, rng: Random, shapes: list[Shape]) -> None:
        self.parallelism = keyed(rng)
        self.outs = [shapes[0].shuffled()]

    def build(self, env: Any, streams: list[Any]) -> list[Any]:
        return [spread(streams[0].key_by(key_of).process(functions.Zoo()), self.parallelism)]

    def model(self, flows: list[Flow], batch: bool) -> list[Flow]:
        made: list[Rec] = []
        for key, recs in per_key(flows[0]).items():
            last, some, counts, total = 0, list[int](), dict[int, int](), 0
            for rec in recs:
                parts, number = [last], rec.number
                last = number if number % 4 else 0
                some.append(number)
                some = some[-2:] if number % 5 == 0 else [] if number % 11 == 0 else some
                parts += some
                if number % 7 == 6 and number % 3 in counts:
                    del counts[number % 3]
                else:
                    counts[number % 3] = counts.get(number % 3, 0) + 1
                total += number
                parts += [x for item in sorted(counts.items()) for x in item]
                made.append(Rec(key, digest([*parts, total, total % LIMIT]), rec.at))
        return [Flow(made)]


class Buckets:
    """Timers at the ends of buckets."""

    def __init__(self, rng: Random, shapes: list[Shape]) -> None:
        self.size, self.parallelism = rng.choice([1, 7, 30, 500]), keyed(rng)
        self.outs = [Shape(Order.KEYED if len(shapes) == 1 else Order.NONE, True)]

    def build(self, env: Any, streams: list[Any]) -> list[Any]:
        if len(streams) == 1:
            made = streams[0].key_by(key_of).process(functions.Buckets(self.size))
        else:
            keys = [stream.key_by(key_of) for stream in streams]
            made = keys[0].connect(keys[1]).process(functions.CoBuckets(self.size))
        return [spread(made, self.parallelism)]

    def model(self, flows: list[Flow], batch: bool) -> list[Flow]:
        buckets: dict[tuple[int, int], list[int]] = {}
        for factor, flow in enumerate(flows, 1):
            for mark, rec in flow.steps():
                assert rec.at is not None
                if rec.at > mark:
                    at = rec.at // self.size * self.size + self.size - 1
                    buckets.setdefault((rec.key, at), []).append(rec.number * factor)
        return [Flow([Rec(k, digest(sorted(n)), at) for (k, at), n in sorted(buckets.items())])]


class Alarm:
    """Timers that are moved, and registered in the past; only where it is known when each fires."""

    def __init__(self, rng: Random, shapes: list[Shape]) -> None:
        self.gap, self.parallelism = rng.choice([0, 3, 20]), keyed(rng)
        self.outs = [Shape(Order.KEYED, False)]

    def build(self, env: Any, streams: list[Any]) -> list[Any]:
        return [spread(streams[0].key_by(key_of).process(functions.Alarm(self.gap)), self.parallelism)]

    def model(self, flows: list[Flow], batch: bool) -> list[Flow]:
        made: list[Rec] = []
        state: dict[int, tuple[int, int | None, int]] = {}
        timers: set[tuple[int, int]] = set()

        def advance(mark: int) -> None:
            while due := [timer for timer in timers if timer[0] <= mark]:
                at, key = min(due)
                timers.remove((at, key))
                count, moved, rounds = state[key]
                made.append(Rec(key, (5_000 + count * 10 + rounds) % LIMIT, at))
                if at == moved:
                    timers.update({(at - 3, key), (at + 2, key)} if rounds % 3 < 2 else set())
                    state[key] = 0, None, rounds + 1

        now = MIN_WATERMARK
        for mark, rec in flows[0].steps():
            if mark > now:
                advance(mark)
                now = mark
            count, moved, rounds = state.get(rec.key, (0, None, 0))
            if moved is not None:
                timers.discard((moved, rec.key))
            assert rec.at is not None
            timers.add((rec.at + self.gap, rec.key))
            state[rec.key] = count + 1, rec.at + self.gap, rounds
            made.append(Rec(rec.key, (count * 1_000 + rec.number) % LIMIT, rec.at))
        advance(MAX_WATERMARK)
        return [Flow(made)]


class EndOfInput:
    """A timer by the clock that is pending at the end, or a window of the clock."""

    def __init__(self, rng: Random, shapes: list[Shape]) -> None:
        self.window, self.parallelism = rng.random() < 0.5, keyed(rng)
        self.outs = [Shape(Order.KEYED, False)]

    def build(self, env: Any, streams: list[Any]) -> list[Any]:
        stream = streams[0].key_by(key_of)
        if self.window:
            windows = stream.window(TumblingProcessingTimeWindows.of(CLOCK_WINDOW_MS))
            made = windows.aggregate(functions.Sum(), functions.One())
        else:
            made = stream.process(functions.AtTheEnd())
        return [spread(made, self.parallelism)]

    def model(self, flows: list[Flow], batch: bool) -> list[Flow]:
        found = per_key(flows[0])
        return [Flow([Rec(k, sum(rec.number for rec in recs) % LIMIT, None) for k, recs in found.items()])]


class CountWindow:
    def __init__(self, rng: Random, shapes: list[Shape]) -> None:
        self.size, self.slide, self.parallelism = rng.randint(1, 4), rng.randint(1, 4), keyed(rng)
        self.outs = [Shape(Order.KEYED, False)]

    def build(self, env: Any, streams: list[Any]) -> list[Any]:
        windows = streams[0].key_by(key_of).count_window(self.size, self.slide)
        return [spread(windows.process(functions.Contents(ordered=True)), self.parallelism)]

    def model(self, flows: list[Flow], batch: bool) -> list[Flow]:
        made: list[Rec] = []
        for key, recs in per_key(flows[0]).items():
            numbers = [rec.number for rec in recs]
            for first in range(0, len(numbers) - self.size + 1, self.slide):
                made.append(Rec(key, digest(numbers[first : first + self.size]), None))
        return [Flow(made)]
