"""What the demo observes while it runs, and what it derives from it: latencies, rates, concurrent calls.

A review's latency is the time from when it was due at the source until its verdict was delivered to this process.
Engines do not report when a source started; no review is created before it is due, so the start is derived from the
review that was created soonest after it was due.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from emberflow.demo.triage import Escalation, Moods, Verdict

PERCENTILES = (50, 95, 99)
MOODS = ("happy", "neutral", "unhappy")


class Observer:
    """Filled by the sinks, possibly from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.verdicts: list[tuple[float, Verdict]] = []
        self.escalations: list[Escalation] = []
        self.moods: list[Moods] = []

    def on_verdicts(self, batch: Any) -> None:
        now_ms = time.time() * 1000
        with self._lock:
            self.verdicts.extend((now_ms, verdict) for verdict in batch.values)

    def on_escalations(self, batch: Any) -> None:
        with self._lock:
            self.escalations.extend(batch.values)

    def on_moods(self, batch: Any) -> None:
        with self._lock:
            self.moods.extend(batch.values)


@dataclass(frozen=True, slots=True)
class Delivery:
    """Seconds after the source's start."""

    created_s: float
    delivered_s: float

    @property
    def latency_s(self) -> float:
        return self.delivered_s - self.created_s


@dataclass(frozen=True)
class Outcome:
    """A finished run."""

    deliveries: list[Delivery]
    escalations: list[Escalation]
    moods: list[Moods]
    calls: list[tuple[float, float]]
    """When each model call started and ended, in seconds after the source's start."""
    start_ms: int
    """Event time of the first review."""

    @cached_property
    def first_delivery_s(self) -> float:
        """The time until the engine's first result: worker start-up, plans, a cold JVM."""
        return min((item.delivered_s for item in self.deliveries), default=0.0)

    @cached_property
    def duration_s(self) -> float:
        return max((item.delivered_s for item in self.deliveries), default=0.0)

    @cached_property
    def steady_from_s(self) -> float:
        """When the backlog of the start-up was gone: the first time the newest delivery was fast."""
        waited = sorted(self.deliveries, key=lambda item: item.created_s)
        usual = percentile([item.latency_s for item in waited[len(waited) // 2 :]], 95)
        behind = [item.created_s for item in waited if item.latency_s > 1.5 * usual]
        return min(max(behind, default=0.0), self.duration_s / 2)

    @cached_property
    def steady(self) -> list[Delivery]:
        return [item for item in self.deliveries if item.created_s >= self.steady_from_s]

    @cached_property
    def in_flight(self) -> list[tuple[float, int]]:
        """(time, number of calls waiting from then on), at every start and end of a call."""
        # An end before a start at the same time: calls that only touch each other do not overlap.
        changes = sorted([(end, -1) for _, end in self.calls] + [(start, 1) for start, _ in self.calls])
        waiting = 0
        found: list[tuple[float, int]] = []
        for moment, change in changes:
            waiting += change
            found.append((moment, waiting))
        return found

    @cached_property
    def side_by_side(self) -> int:
        """The maximum number of calls that waited at the same time."""
        return max((waiting for _, waiting in self.in_flight), default=0)

    @cached_property
    def waiting_s(self) -> float:
        """How long all calls would have taken one after another."""
        return sum(end - start for start, end in self.calls)

    def latencies(self) -> dict[int, float]:
        """Percentile -> seconds, over the whole run."""
        return percentiles([item.latency_s for item in self.deliveries])

    def steady_latencies(self) -> dict[int, float]:
        return percentiles([item.latency_s for item in self.steady])


def outcome(observer: Observer, *, reviews_per_s: float, start_ms: int) -> Outcome:
    due = [
        (verdict.review.number * 1000 / reviews_per_s, delivered_ms, verdict.review.made_ms)
        for delivered_ms, verdict in observer.verdicts
    ]
    began_ms = min((made_ms - due_ms for due_ms, _, made_ms in due), default=0.0)
    deliveries = [
        Delivery(due_ms / 1000, (delivered_ms - began_ms) / 1000) for due_ms, delivered_ms, _ in due
    ]
    calls = [
        ((verdict.asked_ms - began_ms) / 1000, (verdict.answered_ms - began_ms) / 1000)
        for _, verdict in observer.verdicts
    ]
    return Outcome(
        sorted(deliveries, key=lambda item: item.delivered_s),
        sorted(observer.escalations, key=lambda item: item.number),
        sorted(observer.moods, key=lambda item: (item.start_ms, item.mood)),
        sorted(calls),
        start_ms,
    )


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that this many percent do not exceed; 0 without values."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * int(percent) // 100) - 1)]


def percentiles(values: Sequence[float]) -> dict[int, float]:
    return {percent: percentile(values, percent) for percent in PERCENTILES}


def per_second(moments: Iterable[float]) -> list[tuple[float, float]]:
    """(second, count), gaps included."""
    counts: dict[int, int] = {}
    for moment in moments:
        counts[int(moment)] = counts.get(int(moment), 0) + 1
    return [(float(second), float(counts.get(second, 0))) for second in range(max(counts, default=-1) + 1)]


def latency_over_time(deliveries: Iterable[Delivery]) -> dict[int, list[tuple[float, float]]]:
    """Percentile -> (second of creation, seconds of latency)."""
    seconds: dict[int, list[float]] = {}
    for item in deliveries:
        seconds.setdefault(int(item.created_s), []).append(item.latency_s)
    ordered = sorted(seconds.items())
    return {
        percent: [(float(second), percentile(values, percent)) for second, values in ordered]
        for percent in PERCENTILES
    }


def histogram(values: Sequence[float], bins: int) -> list[tuple[float, float, int]]:
    """(from, to, count) over equal steps; the highest percent of values shares the last one."""
    if not values:
        return []
    top = max(percentile(values, 99), 1e-9)
    step = top / bins
    counts = [0] * bins
    for value in values:
        counts[min(int(value / step), bins - 1)] += 1
    return [(index * step, (index + 1) * step, count) for index, count in enumerate(counts)]


def most_per_step(in_flight: Iterable[tuple[float, int]], step_s: float) -> list[tuple[float, float]]:
    """(start of a step, maximum number of calls that waited in it), gaps included."""
    most: dict[int, int] = {}
    last, waiting = 0, 0
    for moment, now_waiting in in_flight:
        step = int(moment / step_s)
        for passed in range(last, step + 1):
            most[passed] = max(most.get(passed, 0), waiting)
        most[step] = max(most[step], now_waiting)
        last, waiting = step, now_waiting
    return [(step * step_s, float(count)) for step, count in sorted(most.items())]


def moods_by_window(moods: Iterable[Moods]) -> dict[int, dict[str, float]]:
    """Window start -> mood -> reviews."""
    found: dict[int, dict[str, float]] = {}
    for item in moods:
        found.setdefault(item.start_ms, {})[item.mood] = float(item.reviews)
    return dict(sorted(found.items()))


def reviews_by_mood(moods: Iterable[Moods]) -> dict[str, int]:
    found: dict[str, int] = dict.fromkeys(MOODS, 0)
    for item in moods:
        found[item.mood] += item.reviews
    return found
