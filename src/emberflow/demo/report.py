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
    moods_by_window,
    most_per_step,
    per_second,
)
from emberflow.demo.page_style import STYLE
from emberflow.demo.reviews import CALL_MS, PRODUCTS
from emberflow.demo.run_facts import RunFacts
from emberflow.demo.summary import duration
from emberflow.demo.triage import LATENESS, WINDOW
from emberflow.plan.graphs.job_graph import JobGraph
from emberflow.plan.job_contract import JobMetrics

_LINE_COLORS = {50: 4, 95: 2, 99: 3}
_MOOD_COLORS = {"happy": 4, "neutral": 1, "unhappy": 3}
_STEP_S = 0.5


def write_report(
    path: Path, result: Outcome, facts: RunFacts, graph: JobGraph, metrics: JobMetrics, total_s: float
) -> Path:
    """Writes the file and returns its path."""
    cards = [
        _card(
            "Concurrent model calls",
            f"How many calls waited for the model at the same time, maximum per half second; {result.side_by_side:,} at the peak.",
            _calls(result),
        ),
        _card("Throughput", "Reviews written and verdicts delivered, per second.", _throughput(result)),
        _card(
            "Latency over time",
            "From the writing of a review to the delivery of its verdict, by second of writing.",
            _latency(result),
        ),
        _card("Latency", "How long reviews took after the start-up.", _histogram(result)),
        '<div class="column">',
        _card(
            "Customers",
            "Reviews per mood and 5 seconds of event time; the watermark waits for the agent's calls.",
            _moods(result),
        ),
        _card(
            "Escalations",
            "Unhappy customers, with the last complaints about their product that the agent remembers.",
            _escalations(result),
        ),
        '</div><div class="column">',
        _card(
            "The job",
            "The agent is a step like any other. Steps of one colour run in one task; a dashed line is a shuffle by key.",
            draw(graph),
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
        f"<p>An agent reads product reviews, live on {engine}: {facts.reviews:,} reviews of {PRODUCTS:,} products. {now}.</p>"
        f'<div class="figures">{_figures(result, metrics, total_s)}</div>'
        f'<div class="cards">{"".join(cards)}</div></main></body></html>\n',
        encoding="utf-8",
    )
    return path


def _figures(result: Outcome, metrics: JobMetrics, total_s: float) -> str:
    latencies = result.steady_latencies()
    figures = [
        (f"{metrics.records_in:,}", "reviews"),
        (f"{len(result.deliveries) / result.duration_s:,.0f}/s" if result.duration_s else "-", "throughput"),
        *((duration(seconds), f"latency p{percent}") for percent, seconds in latencies.items()),
        (f"{result.side_by_side:,}", "concurrent calls"),
        (f"{len(result.escalations):,}", "escalations"),
        (f"{total_s:.0f} s", "start to end"),
    ]
    return "".join(f'<div class="figure"><b>{value}</b><span>{name}</span></div>' for value, name in figures)


def _card(title: str, text: str, content: str) -> str:
    explained = f"<p>{escape(text)}</p>" if text else ""
    return f'<section class="card"><h2>{escape(title)}</h2>{explained}{content}</section>'


def _throughput(result: Outcome) -> str:
    written = per_second(item.created_s for item in result.deliveries)
    delivered = per_second(item.delivered_s for item in result.deliveries)
    series = [
        Series(label="verdicts delivered", color=1, points=delivered, filled=True),
        Series(label="reviews written", color=2, points=written),
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


def _calls(result: Outcome) -> str:
    series = [
        Series(label="waiting calls", color=5, points=most_per_step(result.in_flight, _STEP_S), filled=True)
    ]
    return line_chart(
        series, title="Concurrent model calls", x_label="seconds", y_format=lambda value: f"{value:,.0f}"
    )


def _moods(result: Outcome) -> str:
    windows = moods_by_window(result.moods)
    first = min(windows, default=0)
    columns = {f"{(start - first) // 1000} s": parts for start, parts in windows.items()}
    return stacked_bars(
        columns,
        _MOOD_COLORS,
        title="Customers",
        x_label="start of the window",
        y_format=lambda value: f"{value:,.0f}",
    )


def _escalations(result: Outcome) -> str:
    rows = [
        (elapsed((item.written_ms - result.start_ms) / 1000), item.team, item.product, ", ".join(item.complaints), item.text)
        for item in result.escalations
    ]  # fmt: skip
    return _table(("at", "team", "product", "last complaints", "review"), rows, numbers=())


def elapsed(value_s: float) -> str:
    """Clocks of two processes may differ slightly: nothing happens before the start."""
    return f"{max(value_s, 0.0) + 0.0:.1f} s"


def _settings(facts: RunFacts, metrics: JobMetrics, total_s: float) -> str:
    rows = [
        ("engine", facts.engine),
        ("parallel tasks", str(facts.parallelism)),
        ("reviews", f"{facts.reviews:,} at {facts.reviews_per_s:g} per second"),
        ("model call", f"{CALL_MS[0]} to {CALL_MS[1]} ms each"),
        ("window", f"{WINDOW.total_seconds():g} s, up to {LATENESS.total_seconds():g} s out of order"),
        ("batches", f"{metrics.batches:,}"),
        ("start-up", elapsed(facts.start_up_s)),
        ("start to end", elapsed(total_s)),
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
