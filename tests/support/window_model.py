"""A slow, obvious model of Flink's window operator: triggers, evictors, merging windows, lateness, both kinds of time.

Everything is searched anew for each record and timer. Times are numbers, windows are (start, end).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from emberflow.events.batch import MIN_WATERMARK

Window = tuple[int, int]
Timer = tuple[str, int, str, Window]
"""("event" or "processing", time, key, window)"""
FIRE, PURGE = "fire", "purge"
NOTHING: frozenset[str] = frozenset()
FIRES = frozenset({FIRE})


class Surroundings:
    """What a trigger sees: the clocks, its state and its timers in one window of a key."""

    def __init__(self, model: WindowModel, key: str, window: Window, merged: tuple[Window, ...] = ()) -> None:
        self._model, self._key, self._window, self._merged = model, key, window, merged
        self.watermark, self.now = model.watermark, model.now

    def register(self, kind: str, time: int) -> None:
        timer = (kind, time, self._key, self._window)
        if timer not in self._model.timers:
            self._model.timers.append(timer)

    def delete(self, kind: str, time: int) -> None:
        timer = (kind, time, self._key, self._window)
        if timer in self._model.timers:
            self._model.timers.remove(timer)

    @property
    def state(self) -> int | None:
        return self._model.state.get((self._key, self._window))

    @state.setter
    def state(self, value: int | None) -> None:
        if value is None:
            self._model.state.pop((self._key, self._window), None)
        else:
            self._model.state[self._key, self._window] = value

    def merge(self, combine: Callable[[int, int], int]) -> None:
        found = [self._model.state.pop((self._key, window), None) for window in (*self._merged, self._window)]
        for value in (value for value in found if value is not None):
            self.state = value if self.state is None else combine(self.state, value)


class TriggerModel(Protocol):
    def on_element(self, stamp: int, window: Window, ctx: Surroundings) -> frozenset[str]: ...
    def on_timer(self, kind: str, time: int, window: Window, ctx: Surroundings) -> frozenset[str]: ...
    def on_merge(self, window: Window, ctx: Surroundings) -> None: ...
    def clear(self, window: Window, ctx: Surroundings) -> None: ...


class AtTheEnd:
    """EventTimeTrigger and ProcessingTimeTrigger."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def on_element(self, stamp: int, window: Window, ctx: Surroundings) -> frozenset[str]:
        if self._kind == "event" and window[1] - 1 <= ctx.watermark:
            return FIRES
        ctx.register(self._kind, window[1] - 1)
        return NOTHING

    def on_timer(self, kind: str, time: int, window: Window, ctx: Surroundings) -> frozenset[str]:
        ends = kind == self._kind and (kind == "processing" or time == window[1] - 1)
        return FIRES if ends else NOTHING

    def on_merge(self, window: Window, ctx: Surroundings) -> None:
        if window[1] - 1 > (ctx.watermark if self._kind == "event" else ctx.now):
            ctx.register(self._kind, window[1] - 1)

    def clear(self, window: Window, ctx: Surroundings) -> None:
        ctx.delete(self._kind, window[1] - 1)


class Counting:
    """CountTrigger."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def on_element(self, stamp: int, window: Window, ctx: Surroundings) -> frozenset[str]:
        count = (ctx.state or 0) + 1
        ctx.state = None if count >= self._limit else count
        return FIRES if count >= self._limit else NOTHING

    def on_timer(self, kind: str, time: int, window: Window, ctx: Surroundings) -> frozenset[str]:
        return NOTHING

    def on_merge(self, window: Window, ctx: Surroundings) -> None:
        ctx.merge(lambda one, other: one + other)

    def clear(self, window: Window, ctx: Surroundings) -> None:
        ctx.state = None


class Continuous:
    """ContinuousEventTimeTrigger and ContinuousProcessingTimeTrigger: the state is the next time."""

    def __init__(self, kind: str, interval: int) -> None:
        self._kind, self._interval = kind, interval

    def on_element(self, stamp: int, window: Window, ctx: Surroundings) -> frozenset[str]:
        if self._kind == "event":
            if window[1] - 1 <= ctx.watermark:
                return FIRES
            ctx.register("event", window[1] - 1)
        if ctx.state is None:
            now = stamp if self._kind == "event" else ctx.now
            self._next(now - now % self._interval, window, ctx)
        return NOTHING

    def _next(self, time: int, window: Window, ctx: Surroundings) -> None:
        ctx.state = min(time + self._interval, window[1] - 1)
        if ctx.state > time:
            ctx.register(self._kind, ctx.state)

    def on_timer(self, kind: str, time: int, window: Window, ctx: Surroundings) -> frozenset[str]:
        if kind != self._kind:
            return NOTHING
        if kind == "event" and time == window[1] - 1:
            return FIRES
        if ctx.state != time:
            return NOTHING
        self._next(time, window, ctx)
        return FIRES

    def on_merge(self, window: Window, ctx: Surroundings) -> None:
        ctx.merge(min)
        if ctx.state is not None:
            ctx.register(self._kind, ctx.state)

    def clear(self, window: Window, ctx: Surroundings) -> None:
        if ctx.state is not None:
            ctx.delete(self._kind, ctx.state)
            ctx.state = None
        if self._kind == "event":
            ctx.delete("event", window[1] - 1)


class Purging:
    """PurgingTrigger."""

    def __init__(self, inner: TriggerModel) -> None:
        self._inner = inner
        self.on_merge, self.clear = inner.on_merge, inner.clear

    def on_element(self, stamp: int, window: Window, ctx: Surroundings) -> frozenset[str]:
        return _purged(self._inner.on_element(stamp, window, ctx))

    def on_timer(self, kind: str, time: int, window: Window, ctx: Surroundings) -> frozenset[str]:
        return _purged(self._inner.on_timer(kind, time, window, ctx))


def _purged(result: frozenset[str]) -> frozenset[str]:
    return result | {PURGE} if FIRE in result else result


Element = tuple[int, int]
"""(value, timestamp)"""


@dataclass
class WindowModel:
    assign: Callable[[int, int], list[Window]]
    """(time, value) -> windows"""
    kind: str
    """Of the windows: "event" or "processing"."""
    merging: bool
    trigger: TriggerModel
    lateness: int = 0
    evict: Callable[[list[Element]], list[Element]] | None = None
    evicts_after: bool = False
    watermark: int = MIN_WATERMARK
    now: int = 0
    contents: dict[tuple[str, Window], list[Element]] = field(default_factory=dict[Any, Any])
    state: dict[tuple[str, Window], int] = field(default_factory=dict[Any, Any])
    timers: list[Timer] = field(default_factory=list[Timer])
    fired: list[tuple[str, Window, list[int]]] = field(default_factory=list[Any])
    late: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    def record(self, key: str, value: int, stamp: int) -> None:
        added = False
        for window in self.assign(stamp if self.kind == "event" else self.now, value):
            target = self._merged(key, window) if self.merging else window
            if self.kind == "event" and self._ends(target) <= self.watermark:
                self.contents.pop((key, target), None)
                continue
            added = True
            self.contents.setdefault((key, target), []).append((value, stamp))
            self._obey(self.trigger.on_element(stamp, target, Surroundings(self, key, target)), key, target)
            Surroundings(self, key, target).register(self.kind, self._ends(target))
        if not added and stamp + self.lateness <= self.watermark:
            self.late.append((key, value))

    def _merged(self, key: str, new: Window) -> Window:
        touching = tuple(w for k, w in self.contents if k == key and w[0] <= new[1] and new[0] <= w[1])
        if not touching:
            return new
        target = min(new[0], *(w[0] for w in touching)), max(new[1], *(w[1] for w in touching))
        if touching == (target,):
            return target
        others = tuple(window for window in touching if window != target)
        self.trigger.on_merge(target, Surroundings(self, key, target, others))
        for window in others:
            self.trigger.clear(window, Surroundings(self, key, window))
            Surroundings(self, key, window).delete(self.kind, self._ends(window))
        self.contents[key, target] = [item for w in touching for item in self.contents.pop((key, w))]
        return target

    def _ends(self, window: Window) -> int:
        return window[1] - 1 + (self.lateness if self.kind == "event" else 0)

    def _obey(self, result: frozenset[str], key: str, window: Window) -> None:
        elements = self.contents.get((key, window), [])
        if FIRE in result and elements:
            if self.evict is not None and not self.evicts_after:
                elements = self.evict(elements)
            self.fired.append((key, window, [value for value, _ in elements]))
            if self.evict is not None and self.evicts_after:
                elements = self.evict(elements)
            self.contents[key, window] = elements
        if PURGE in result:
            self.contents[key, window] = []

    def advance(self, watermark: int) -> None:
        if watermark > self.watermark:
            self.watermark = watermark
            self._fire("event", watermark)

    def pass_time(self, amount: int) -> None:
        self.now += amount
        self._fire("processing", self.now - 1)

    def _fire(self, kind: str, until: int) -> None:
        while due := [timer for timer in self.timers if timer[0] == kind and timer[1] <= until]:
            # The first of the earliest: they are in the order in which they were registered.
            timer = min(due, key=lambda timer: timer[1])
            self.timers.remove(timer)
            _, time, key, window = timer
            if (key, window) not in self.contents:
                continue
            ctx = Surroundings(self, key, window)
            self._obey(self.trigger.on_timer(kind, time, window, ctx), key, window)
            if kind == self.kind and time == self._ends(window):
                self.contents.pop((key, window), None)
                self.trigger.clear(window, Surroundings(self, key, window))
