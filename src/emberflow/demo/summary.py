"""The demo's words on the terminal."""

from __future__ import annotations

from emberflow.demo.observations import Outcome, revenue_by_product
from emberflow.demo.run_facts import RunFacts
from emberflow.demo.shop import CALL_MS, CUSTOMERS
from emberflow.plan.job import JobMetrics

_BAR_WIDTH = 28
_LAST_ALERTS = 3


def heading(facts: RunFacts) -> str:
    where = (
        f"Spark {facts.versions.get('pyspark', '')}".rstrip()
        if facts.engine == "spark"
        else "the local engine"
    )
    return (
        f"emberflow demo: a small shop on {where}, {facts.parallelism} tasks\n"
        f"{facts.orders:,} orders of {CUSTOMERS} customers, {facts.orders_per_s:g} a second; totals and alerts per customer,\n"
        f"a profile call of {CALL_MS[0]}-{CALL_MS[1]} ms per order, revenue per product and 5 seconds of event time\n"
    )


def summary(result: Outcome, facts: RunFacts, metrics: JobMetrics, total_s: float, *, color: bool) -> str:
    windows = len({item.start_ms for item in result.revenue})
    waiting_s = len(result.deliveries) * sum(CALL_MS) / 2 / 1000
    lines = [
        ("orders", f"{metrics.records_in:,} in {result.duration_s:.1f} s, {_rate(result):,.0f} a second"),
        (
            "results",
            f"{len(result.deliveries):,} sales, {len(result.alerts):,} alerts, "
            f"{len(result.revenue):,} revenue figures of {windows} windows",
        ),
        ("latency", f"{_latencies(result.steady_latencies())}   order placed to sale delivered"),
        (
            "calls",
            f"{len(result.deliveries):,} profiles looked up: {waiting_s:,.0f} s of waiting, overlapped",
        ),
        (
            "in all",
            f"{total_s:.1f} s, {facts.start_up_s:.1f} s of it to start and warm up; {metrics.batches:,} batches",
        ),
    ]
    text = [_line(name, value, color) for name, value in lines]
    return "\n".join([*text, "", *_revenue(result, color), "", *_alerts(result, color), ""])


def _line(name: str, value: str, color: bool) -> str:
    label = f"{name:<12}"
    return (f"\x1b[2m{label}\x1b[0m" if color else label) + value


def _rate(result: Outcome) -> float:
    return len(result.deliveries) / result.duration_s if result.duration_s else 0.0


def _latencies(latencies: dict[int, float]) -> str:
    return " · ".join(f"p{percent} {duration(seconds)}" for percent, seconds in latencies.items())


def duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _revenue(result: Outcome, color: bool) -> list[str]:
    products = revenue_by_product(result.revenue)
    largest = max(products.values(), default=1.0)
    lines: list[str] = []
    for product, amount in products.items():
        bar = "█" * max(1, round(_BAR_WIDTH * amount / largest))
        shown = f"\x1b[36m{bar}\x1b[0m" if color else bar
        padding = " " * (_BAR_WIDTH - len(bar))
        lines.append(
            _line("" if lines else "revenue", f"{product:<8} {shown}{padding} {amount:>12,.2f}", color)
        )
    return lines


def _alerts(result: Outcome, color: bool) -> list[str]:
    return [
        _line(
            "" if number else "last alerts",
            f"{item.customer} ordered {item.product} for {item.amount:,.2f}, usually {item.usual:,.2f}",
            color,
        )
        for number, item in enumerate(result.alerts[-_LAST_ALERTS:])
    ]
