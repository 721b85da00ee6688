"""Windows of event time in random programs, each with its model; see random_programs.py."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from emberflow.events.batch import MAX_WATERMARK
from emberflow.streams import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TimeEvictor,
    TumblingEventTimeWindows,
)
from tests.support import random_functions as functions
from tests.support.random_functions import LIMIT, SIDE, digest
from tests.support.random_keyed_steps import keyed, spread, within
from tests.support.random_programs import Flow, Order, Rec, Shape, Undefined
from tests.support.random_steps import key_of
from tests.support.window_model import (
    AtTheEnd,
    Continuous,
    Counting,
    Element,
    Purging,
    TriggerModel,
    Window,
    WindowModel,
)


def covering(size: int, slide: int, offset: int) -> Callable[[int, int], list[Window]]:
    def windows(time: int, value: int) -> list[Window]:
        last = time - (time - offset) % slide
        return [(start, start + size) for start in range(last, time - size, -slide)]

    return windows


class Assigner:
    """Windows of event time, as an assigner and as a function of the model."""

    def __init__(self, rng: Random) -> None:
        self.kind = rng.choice(["tumbling", "sliding", "session", "dynamic"])
        self.size, self.offset = rng.choice([5, 20, 300]), rng.randint(0, 4)
        self.slide = rng.choice([self.size, self.size // 5, 2 * self.size, self.size // 2])

    def __repr__(self) -> str:
        return repr(vars(self))

    def gap(self, value: Any) -> int:
        # Of a join: (side, value).
        number = value[1] if isinstance(value[1], int) else value[1][1]
        return number % self.size + 1

    def make(self) -> Any:
        if self.kind == "tumbling":
            return TumblingEventTimeWindows.of(self.size, self.offset)
        if self.kind == "sliding":
            return SlidingEventTimeWindows.of(self.size, self.slide, min(self.offset, self.slide - 1))
        if self.kind == "session":
            return EventTimeSessionWindows.with_gap(self.size)
        return EventTimeSessionWindows.with_dynamic_gap(self.gap)

    def check(self, flows: list[Flow]) -> None:
        """Sessions that touch are one if the first has not ended when the second one begins, which only exact watermarks tell."""
        if self.kind in ("tumbling", "sliding") or (len(flows) == 1 and flows[0].marks is not None):
            return
        spans = [
            (rec.key, *window)
            for flow in flows
            for rec in flow.recs
            for window in self.windows(rec.at or 0, rec.number)
        ]
        starts = {(key, start) for key, start, _ in spans}
        if any((key, end) in starts for key, _, end in spans):
            raise Undefined

    def windows(self, time: int, value: int) -> list[Window]:
        if self.kind == "session":
            return [(time, time + self.size)]
        if self.kind == "dynamic":
            return [(time, time + value % self.size + 1)]
        slide = self.size if self.kind == "tumbling" else self.slide
        return covering(self.size, slide, min(self.offset, slide - 1))(time, value)

    def model(self, trigger: TriggerModel, **settings: Any) -> WindowModel:
        return WindowModel(
            self.windows, "event", self.kind in ("session", "dynamic"), trigger=trigger, **settings
        )


TRIGGERS: dict[str, tuple[Callable[[int], Any], Callable[[int], TriggerModel]]] = {
    "end": (lambda number: None, lambda number: AtTheEnd("event")),
    "count": (CountTrigger.of, Counting),
    "purging": (lambda n: PurgingTrigger.of(CountTrigger.of(n)), lambda n: Purging(Counting(n))),
    "continuous": (ContinuousEventTimeTrigger.of, lambda number: Continuous("event", number)),
}
FUNCTIONS = ("process", "reduce", "aggregate", "sum")


class Windows:
    """Keyed windows, or of all keys. Triggers, lateness and evictors that depend on the order only where it is defined."""

    def __init__(self, rng: Random, shapes: list[Shape]) -> None:
        (shape,) = shapes
        exact = shape.order is Order.TOTAL
        self.assigner, self.parallelism, self.all = Assigner(rng), keyed(rng), rng.random() < 0.15
        self.trigger = rng.choice(list(TRIGGERS)) if exact else "end"
        self.number = rng.randint(1, 6)
        self.lateness = rng.choice([0, 0, 10, 100])
        self.function = rng.choice(FUNCTIONS[:3] if self.all else FUNCTIONS)
        self.evictor = rng.choice([None, "time", "count" if exact else None])
        self.after = rng.random() < 0.3
        if self.evictor and rng.random() < 0.5:
            self.function = "process"
        timed = not shape.late and self.trigger == "end"
        self.outs = [Shape(Order.KEYED, timed), Shape(Order.KEYED, False)]

    @property
    def ordered(self) -> bool:
        return self.assigner.kind in ("tumbling", "sliding") and self.outs[0].order is not Order.NONE

    def build(self, env: Any, streams: list[Any]) -> list[Any]:
        made = self.assigner.make()
        windows = streams[0].window_all(made) if self.all else streams[0].key_by(key_of).window(made)
        windows = windows.allowed_lateness(self.lateness).side_output_late_data(SIDE)
        trigger = TRIGGERS[self.trigger][0](self.number)
        windows = windows if trigger is None else windows.trigger(trigger)
        if self.evictor is not None:
            kind = CountEvictor if self.evictor == "count" else TimeEvictor
            windows = windows.evictor(kind.of(self.number, self.after))
        if self.function == "process":
            made = windows.process(functions.AllContents() if self.all else functions.Contents(ordered=False))
        elif self.function == "reduce":
            made = windows.reduce(functions.Added())
        elif self.function == "sum":
            made = windows.sum(1)
        else:
            made = windows.aggregate(functions.Sum(), functions.AllOne() if self.all else functions.One())
        made = made if self.all else spread(made, self.parallelism)
        named = made.map(zeroed if self.all else within)
        return [named, made.get_side_output(SIDE)]

    def evict(self, elements: list[Element]) -> list[Element]:
        if self.evictor == "count":
            return elements[-self.number :]
        newest = max(at for _, at in elements)
        return [item for item in elements if item[1] > newest - self.number]

    def model(self, flows: list[Flow], batch: bool) -> list[Flow]:
        self.assigner.check(
            [Flow([rec._replace(key=0) for rec in flows[0].recs], flows[0].marks)] if self.all else flows
        )
        model = self.assigner.model(
            TRIGGERS[self.trigger][1](self.number),
            lateness=self.lateness,
            evict=self.evict if self.evictor else None,
            evicts_after=self.after,
        )
        late: list[Rec] = []
        for mark, rec in flows[0].steps():
            model.advance(mark)
            assert rec.at is not None
            before = len(model.late)
            model.record(0 if self.all else rec.key, rec.number, rec.at)  # pyright: ignore[reportArgumentType]
            late += [rec] * (len(model.late) - before)
        model.advance(MAX_WATERMARK)
        made: list[Rec] = []
        for key, window, numbers in model.fired:
            if numbers or self.function in ("process", "aggregate"):
                value = digest(sorted(numbers)) if self.function == "process" else sum(numbers) % LIMIT
                made.append(Rec(int(key), value, window[1] - 1))
        return [Flow(made), Flow(late)]


def zeroed(value: Any) -> Any:
    return 0, value[1] % LIMIT
