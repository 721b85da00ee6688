"""What the demo sees while it runs, and what follows from it: latencies, rates, percentiles.

An order's latency runs from the moment it was due at the source to the moment its sale was delivered to this process.
When the source began is not told by an engine; no order is made before it is due, so the order that was made soonest
after its due moment gives it away.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from emberflow.demo.shop import Alert, Revenue, Sale

PERCENTILES = (50, 95, 99)


class Observer:
    """Filled by the sinks, possibly from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.sales: list[tuple[float, Sale]] = []
        self.alerts: list[Alert] = []
        self.revenue: list[Revenue] = []

    def on_sales(self, batch: Any) -> None:
        now_ms = time.time() * 1000
        with self._lock:
            self.sales.extend((now_ms, sale) for sale in batch.values)

    def on_alerts(self, batch: Any) -> None:
        with self._lock:
            self.alerts.extend(batch.values)

    def on_revenue(self, batch: Any) -> None:
        with self._lock:
            self.revenue.extend(batch.values)


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
    alerts: list[Alert]
    revenue: list[Revenue]
    start_ms: int
    """Event time of the first order."""

    @cached_property
    def first_delivery_s(self) -> float:
        """How long the engine took to its first result: worker start-up, plans, a cold JVM."""
        return min((item.delivered_s for item in self.deliveries), default=0.0)

    @cached_property
    def duration_s(self) -> float:
        return max((item.delivered_s for item in self.deliveries), default=0.0)

    @cached_property
    def steady_from_s(self) -> float:
        """From when on orders found the backlog of the start-up gone: the first time the newest delivery was quick."""
        waited = sorted(self.deliveries, key=lambda item: item.created_s)
        usual = percentile([item.latency_s for item in waited[len(waited) // 2 :]], 95)
        behind = [item.created_s for item in waited if item.latency_s > 1.5 * usual]
        return min(max(behind, default=0.0), self.duration_s / 2)

    @cached_property
    def steady(self) -> list[Delivery]:
        return [item for item in self.deliveries if item.created_s >= self.steady_from_s]

    def latencies(self) -> dict[int, float]:
        """Percentile -> seconds, over the whole run."""
        return percentiles([item.latency_s for item in self.deliveries])

    def steady_latencies(self) -> dict[int, float]:
        return percentiles([item.latency_s for item in self.steady])


def outcome(observer: Observer, *, orders_per_s: float, start_ms: int) -> Outcome:
    due = [
        (sale.order.number * 1000 / orders_per_s, delivered_ms, sale.order.made_ms)
        for delivered_ms, sale in observer.sales
    ]
    began_ms = min((made_ms - due_ms for due_ms, _, made_ms in due), default=0.0)
    deliveries = [
        Delivery(due_ms / 1000, (delivered_ms - began_ms) / 1000) for due_ms, delivered_ms, _ in due
    ]
    return Outcome(
        sorted(deliveries, key=lambda item: item.delivered_s),
        sorted(observer.alerts, key=lambda item: item.number),
        sorted(observer.revenue, key=lambda item: (item.start_ms, item.product)),
        start_ms,
    )


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that so many percent do not exceed; 0 without values."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * int(percent) // 100) - 1)]


def percentiles(values: Sequence[float]) -> dict[int, float]:
    return {percent: percentile(values, percent) for percent in PERCENTILES}


def per_second(moments: Iterable[float]) -> list[tuple[float, float]]:
    """(second, how many), gaps included."""
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
    """(from, to, how many) over equal steps; the highest percent of values shares the last one."""
    if not values:
        return []
    top = max(percentile(values, 99), 1e-9)
    step = top / bins
    counts = [0] * bins
    for value in values:
        counts[min(int(value / step), bins - 1)] += 1
    return [(index * step, (index + 1) * step, count) for index, count in enumerate(counts)]


def revenue_by_window(revenue: Iterable[Revenue]) -> dict[int, dict[str, float]]:
    """Window start -> product -> amount."""
    found: dict[int, dict[str, float]] = {}
    for item in revenue:
        found.setdefault(item.start_ms, {})[item.product] = item.amount
    return dict(sorted(found.items()))


def revenue_by_product(revenue: Iterable[Revenue]) -> dict[str, float]:
    """Product -> amount, the largest first."""
    found: dict[str, float] = {}
    for item in revenue:
        found[item.product] = found.get(item.product, 0.0) + item.amount
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))
