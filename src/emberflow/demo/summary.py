"""The demo's output on the terminal."""

from __future__ import annotations

from pathlib import Path

from emberflow.demo import triage
from emberflow.demo.observations import Outcome, reviews_by_mood
from emberflow.demo.reviews import CALL_MS, PRODUCTS
from emberflow.demo.run_facts import RunFacts
from emberflow.plan.job_contract import JobMetrics

_BAR_WIDTH = 28
_LAST_ESCALATIONS = 3
_COLORS = {"happy": 32, "neutral": 36, "unhappy": 31}


def heading(facts: RunFacts) -> str:
    where = (
        f"Spark {facts.versions.get('pyspark', '')}".rstrip()
        if facts.engine == "spark"
        else "the local engine"
    )
    return (
        f"emberflow demo: an agent reads product reviews on {where}, {facts.parallelism} tasks\n"
        f"{facts.reviews:,} reviews of {PRODUCTS:,} products, {facts.reviews_per_s:g} per second. A chat model (scripted, no account needed)\n"
        f"judges each in {CALL_MS[0]}-{CALL_MS[1]} ms; the agent remembers how every product is doing and escalates unhappy customers\n"
    )


def summary(result: Outcome, facts: RunFacts, metrics: JobMetrics, total_s: float, *, color: bool) -> str:
    windows = len({item.start_ms for item in result.moods})
    lines = [
        ("reviews", f"{metrics.records_in:,} in {result.duration_s:.1f} s, {_rate(result):,.0f} per second"),
        (
            "model",
            f"{len(result.calls):,} calls, {result.waiting_s:,.0f} s one by one; "
            f"up to {result.side_by_side:,} ran concurrently",
        ),
        ("latency", f"{_latencies(result.steady_latencies())}   review written to verdict delivered"),
        (
            "results",
            f"{len(result.deliveries):,} verdicts, {len(result.escalations):,} escalations, "
            f"moods of {windows} windows of 5 s",
        ),
        (
            "in all",
            f"{total_s:.1f} s, {facts.start_up_s:.1f} s of it to start and warm up; {metrics.batches:,} batches",
        ),
    ]
    text = [_line(name, value, color) for name, value in lines]
    return "\n".join([*text, "", *_moods(result, color), "", *_escalations(result, color), ""])


def next_steps(engine: str) -> str:
    other, where = ("local", "in one process") if engine == "spark" else ("spark", "on Spark")
    return (
        f"its code    {Path(triage.__file__).resolve()}\n"
        f"next        emberflow demo --engine {other:<8} the same {where}\n"
        "            emberflow run program.py     your own, on Spark or with --engine local"
    )


def _line(name: str, value: str, color: bool) -> str:
    label = f"{name:<12}"
    return (f"\x1b[2m{label}\x1b[0m" if color else label) + value


def _rate(result: Outcome) -> float:
    return len(result.deliveries) / result.duration_s if result.duration_s else 0.0


def _latencies(latencies: dict[int, float]) -> str:
    return " · ".join(f"p{percent} {duration(seconds)}" for percent, seconds in latencies.items())


def duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _moods(result: Outcome, color: bool) -> list[str]:
    moods = reviews_by_mood(result.moods)
    largest = max(moods.values(), default=0) or 1
    lines: list[str] = []
    for mood, reviews in moods.items():
        bar = "█" * round(_BAR_WIDTH * reviews / largest)
        shown = f"\x1b[{_COLORS[mood]}m{bar}\x1b[0m" if color else bar
        padding = " " * (_BAR_WIDTH - len(bar))
        lines.append(_line("" if lines else "customers", f"{mood:<8} {shown}{padding} {reviews:>7,}", color))
    return lines


def _escalations(result: Outcome, color: bool) -> list[str]:
    return [
        _line("" if number else "escalated", f"to {item.team:<8} {item.product}: {item.text}", color)
        for number, item in enumerate(result.escalations[-_LAST_ESCALATIONS:])
    ]
