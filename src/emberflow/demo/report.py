"""The demo's report: one HTML file that needs no network and no scripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from emberflow.demo.charts import Series, bar_chart, line_chart, stacked_bars
from emberflow.demo.graph_picture import draw
from emberflow.demo.observations import (
    Outcome,
    histogram,
    latency_over_time,
    per_second,
    revenue_by_product,
    revenue_by_window,
)
from emberflow.demo.page_style import STYLE
from emberflow.demo.run_facts import RunFacts
from emberflow.demo.shop import CALL_MS, CUSTOMERS, LATENESS, WINDOW
from emberflow.demo.summary import duration
from emberflow.plan.job import JobMetrics
from emberflow.plan.job_graph import JobGraph

_LINE_COLORS = {50: 4, 95: 2, 99: 3}


def write_report(
    path: Path, result: Outcome, facts: RunFacts, graph: JobGraph, metrics: JobMetrics, total_s: float
) -> Path:
    """Writes the file and returns its path."""
    cards = [
        _card("Throughput", "Orders placed and sales delivered, per second.", _throughput(result)),
        _card(
            "Latency over time",
            "From an order's placing to its sale's delivery, by second of placing.",
            _latency(result),
        ),
        _card("Latency", "How long the orders took once the start-up was over.", _histogram(result)),
        _card(
            "Revenue",
            "Per product and 5 seconds of event time; each window was closed by the watermark.",
            _revenue(result),
        ),
        _card(
            "The job",
            "Steps of one colour run chained in one task; a dashed line is a shuffle by key.",
            draw(graph),
        ),
        '<div class="column">',
        _card(
            "Alerts",
            "Orders far above the customer's usual one: a side output of the keyed step.",
            _alerts(result),
        ),
        _card("Settings and versions", "", _settings(facts, metrics, total_s)),
        "</div>",
    ]
    engine = "Spark" if facts.engine == "spark" else "the local engine"
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    path.write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>emberflow demo</title>'
        f"<style>{STYLE}</style></head><body><main><h1><b>emberflow</b> demo</h1>"
        f"<p>A small shop, live on {engine}: {facts.orders:,} orders of {CUSTOMERS} customers. {now}.</p>"
        f'<div class="figures">{_figures(result, metrics, total_s)}</div>'
        f'<div class="cards">{"".join(cards)}</div></main></body></html>\n',
        encoding="utf-8",
    )
    return path


def _figures(result: Outcome, metrics: JobMetrics, total_s: float) -> str:
    latencies = result.steady_latencies()
    figures = [
        (f"{metrics.records_in:,}", "orders"),
        (f"{len(result.deliveries) / result.duration_s:,.0f}/s" if result.duration_s else "-", "throughput"),
        *((duration(seconds), f"latency p{percent}") for percent, seconds in latencies.items()),
        (f"{len(result.alerts):,}", "alerts"),
        (f"{len({item.start_ms for item in result.revenue}):,}", "windows"),
        (f"{total_s:.0f} s", "start to end"),
    ]
    return "".join(f'<div class="figure"><b>{value}</b><span>{name}</span></div>' for value, name in figures)


def _card(title: str, text: str, content: str) -> str:
    explained = f"<p>{escape(text)}</p>" if text else ""
    return f'<section class="card"><h2>{escape(title)}</h2>{explained}{content}</section>'


def _throughput(result: Outcome) -> str:
    placed = per_second(item.created_s for item in result.deliveries)
    delivered = per_second(item.delivered_s for item in result.deliveries)
    series = [
        Series(label="sales delivered", color=1, points=delivered, filled=True),
        Series(label="orders placed", color=2, points=placed),
    ]
    return line_chart(series, title="Throughput", x_label="seconds", y_format=lambda value: f"{value:,.0f}")


def _latency(result: Outcome) -> str:
    lines = latency_over_time(result.deliveries)
    series = [
        Series(label=f"p{percent}", color=_LINE_COLORS[percent], points=points)
        for percent, points in reversed(lines.items())
    ]
    return line_chart(series, title="Latency over time", x_label="seconds", y_format=_seconds)


def _seconds(value: float) -> str:
    return f"{value:g} s" if value >= 1 or value == 0 else f"{value * 1000:.0f} ms"


def _histogram(result: Outcome) -> str:
    latencies = [item.latency_s for item in result.steady]
    marks = {f"p{percent} {duration(value)}": value for percent, value in result.steady_latencies().items()}
    return bar_chart(histogram(latencies, 30), title="Latency", x_label="seconds", marks=marks)


def _revenue(result: Outcome) -> str:
    products = revenue_by_product(result.revenue)
    windows = revenue_by_window(result.revenue)
    first = min(windows, default=0)
    columns = {f"{(start - first) // 1000} s": parts for start, parts in windows.items()}
    colors = {product: number % 6 + 1 for number, product in enumerate(products)}
    return stacked_bars(
        columns,
        colors,
        title="Revenue",
        x_label="start of the window",
        y_format=lambda value: f"{value:,.0f}",
    )


def _alerts(result: Outcome) -> str:
    rows = [
        (f"{(item.placed_ms - result.start_ms) / 1000:.1f} s", item.customer, item.product, f"{item.amount:,.2f}", f"{item.usual:,.2f}")
        for item in result.alerts
    ]  # fmt: skip
    return _table(("at", "customer", "product", "amount", "usual"), rows, numbers=(3, 4))


def _settings(facts: RunFacts, metrics: JobMetrics, total_s: float) -> str:
    rows = [
        ("engine", facts.engine),
        ("tasks side by side", str(facts.parallelism)),
        ("orders", f"{facts.orders:,} at {facts.orders_per_s:g} a second"),
        ("profile call", f"{CALL_MS[0]} to {CALL_MS[1]} ms each"),
        ("window", f"{WINDOW.total_seconds():g} s, up to {LATENESS.total_seconds():g} s out of order"),
        ("batches", f"{metrics.batches:,}"),
        ("start-up", f"{facts.start_up_s:.1f} s"),
        ("start to end", f"{total_s:.1f} s"),
        *facts.versions.items(),
    ]
    return _table(("", ""), rows, numbers=())


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int]) -> str:
    def cells(tag: str, row: Sequence[str]) -> str:
        kinds = [" class=n" if column in numbers else "" for column in range(len(row))]
        return "".join(f"<{tag}{kind}>{escape(cell)}</{tag}>" for kind, cell in zip(kinds, row, strict=True))

    head = f"<thead><tr>{cells('th', headings)}</tr></thead>" if any(headings) else ""
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f'<div class="scroll"><table>{head}<tbody>{body}</tbody></table></div>'
