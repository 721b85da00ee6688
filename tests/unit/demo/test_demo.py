"""The demo on the local engine, from the command line to the report."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest

from emberflow.agents import ChatMessage
from emberflow.demo import main
from emberflow.demo.charts import Series, bar_chart, line_chart, nice_step, stacked_bars
from emberflow.demo.observations import (
    Delivery,
    Observer,
    histogram,
    latency_over_time,
    moods_by_window,
    most_per_step,
    outcome,
    per_second,
    percentile,
    reviews_by_mood,
)
from emberflow.demo.reviews import CALL_MS, Review, ReviewGenerator, answer
from emberflow.demo.triage import Escalation, Judged, Moods, ReviewTriage, Verdict
from emberflow.events.batch import Batch
from emberflow.testing import run_agent


class Outline(HTMLParser):
    """Whether every tag is closed, what is fetched, and which headings there are."""

    VOID = frozenset({"meta", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.headings: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


def outline(path: Path) -> Outline:
    parser = Outline()
    parser.feed(path.read_text(encoding="utf-8"))
    assert parser.open == []
    return parser


def test_the_demo_runs_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--engine", "local", "--events", "400", "--rate", "800", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "400 verdicts" in printed
    assert "400 calls" in printed
    assert "p99" in printed
    beside = re.search(r"up to (\d+) ran concurrently", printed)
    # 800 calls a second of 200 ms each.
    assert beside is not None
    assert 40 < int(beside[1]) <= 400
    assert "emberflow run" in printed.splitlines()[-1]
    assert (tmp_path / "report.html").as_uri() in printed
    page = outline(tmp_path / "report.html")
    assert page.headings == [
        "Concurrent model calls", "Throughput", "Latency over time", "Latency", "Customers", "Escalations", "The job",
        "Settings and versions",
    ]  # fmt: skip
    assert page.tags.count("svg") == 6
    assert "script" not in page.tags
    assert page.addresses == []


def test_quiet_prints_the_place_of_the_report_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EMBERFLOW_QUIET", raising=False)
    # Set through monkeypatch first, so that what the demo sets is reverted.
    monkeypatch.setenv("EMBERFLOW_QUIET", "")
    assert (
        main(["--engine", "local", "--events", "50", "--rate", "1000", "--out", str(tmp_path), "--quiet"])
        == 0
    )
    assert capsys.readouterr().out.splitlines() == [f"report      {(tmp_path / 'report.html').as_uri()}"]


def test_bad_numbers_are_rejected() -> None:
    with pytest.raises(SystemExit):
        main(["--events", "0"])
    with pytest.raises(SystemExit):
        main(["--rate", "-3"])


def test_a_review_is_the_same_each_time() -> None:
    make = ReviewGenerator(1_000, 250)
    assert make(7)[:-1] == make(7)[:-1]
    assert make(7)[:-1] != make(8)[:-1]


def test_the_model_reads_every_review() -> None:
    make = ReviewGenerator(0, 250)
    replies = {text: answer([ChatMessage(content=text)]) for text in {make(n).text for n in range(2_000)}}
    assert all(CALL_MS[0] <= reply.delay_s * 1000 <= CALL_MS[1] for reply in replies.values())
    assert answer([ChatMessage(content="The kettle arrived broken, the box was crushed.")]).content == (
        '{"satisfaction": 1, "complaint": "damage"}'
    )
    assert '"satisfaction": 3' in answer([ChatMessage(content="Hm.")]).content


def review(number: int, text: str, made_ms: int = 0) -> Review:
    return Review(number, "kettle 001", text, 0, made_ms)


def test_the_agent_remembers_and_escalates() -> None:
    texts = [
        "I use the kettle every day and love it.",
        "My kettle stopped working after nine days.",
        "The kettle arrived broken, the box was crushed.",
    ]
    done = run_agent(ReviewTriage(), [review(number, text) for number, text in enumerate(texts)])
    verdicts = [item for item in done.outputs if isinstance(item, Verdict)]
    escalations = [item for item in done.outputs if isinstance(item, Escalation)]
    assert [(item.stars, round(item.average, 2)) for item in verdicts] == [(5, 5.0), (2, 3.5), (1, 2.67)]
    assert all(item.answered_ms - item.asked_ms >= CALL_MS[0] - 5 for item in verdicts)
    assert [(item.team, item.complaints) for item in escalations] == [
        ("support", ["quality"]),
        ("shipping", ["quality", "damage"]),
    ]
    assert len(done.sent(Judged)) == 3


def verdict(number: int, made_ms: int, asked_ms: float = 0, answered_ms: float = 0) -> Verdict:
    return Verdict(review(number, "", made_ms), 5, 5.0, asked_ms, answered_ms)


def test_latency_counts_from_the_moment_a_review_was_due() -> None:
    observer = Observer()
    # 10 reviews a second; the source started at 5,000: review 1 was due at 5,100 and created 40 ms later.
    observer.verdicts = [(5_300.0, verdict(0, 5_000)), (5_300.0, verdict(1, 5_140))]
    result = outcome(observer, reviews_per_s=10, start_ms=0)
    assert [round(item.latency_s, 3) for item in result.deliveries] == [0.3, 0.2]
    assert result.first_delivery_s == pytest.approx(0.3)


def test_calls_side_by_side_are_counted() -> None:
    observer = Observer()
    calls = [(0, 2_000), (500, 1_000), (1_000, 3_000), (1_200, 1_400)]
    observer.verdicts = [(9_000.0, verdict(0, 0, *call)) for call in calls]
    result = outcome(observer, reviews_per_s=10, start_ms=0)
    # The third call starts as the second one ends.
    assert result.side_by_side == 3
    assert result.waiting_s == pytest.approx(4.7)
    assert most_per_step(result.in_flight, 1.0) == [(0, 2), (1, 3), (2, 2), (3, 1)]


def test_a_run_without_results_can_be_shown() -> None:
    result = outcome(Observer(), reviews_per_s=10, start_ms=0)
    assert result.duration_s == 0
    assert result.side_by_side == 0
    assert result.steady_latencies() == {50: 0, 95: 0, 99: 0}


def test_the_observer_takes_batches() -> None:
    observer = Observer()
    observer.on_verdicts(Batch([verdict(0, 0)]))
    observer.on_moods(Batch([Moods("happy", 5_000, 6), Moods("happy", 10_000, 1)]))
    observer.on_escalations(Batch([]))
    assert moods_by_window(observer.moods) == {5_000: {"happy": 6}, 10_000: {"happy": 1}}
    assert reviews_by_mood(observer.moods) == {"happy": 7, "neutral": 0, "unhappy": 0}


@pytest.mark.parametrize(("percent", "expected"), [(50, 5), (95, 10), (99, 10), (10, 1)])
def test_percentiles(percent: int, expected: float) -> None:
    assert percentile(list(range(10, 0, -1)), percent) == expected


def test_counts_and_percentiles_per_second() -> None:
    assert per_second([0.1, 0.9, 2.5]) == [(0, 2), (1, 0), (2, 1)]
    assert latency_over_time([Delivery(0.5, 1.0), Delivery(2.0, 2.25)])[50] == [(0, 0.5), (2, 0.25)]


def test_a_histogram_keeps_every_value() -> None:
    bars = histogram([0.1] * 98 + [0.5, 9.0], 10)
    assert sum(count for _, _, count in bars) == 100
    assert histogram([], 10) == []


@pytest.mark.parametrize(("span", "step"), [(10, 5), (7, 2), (0.3, 0.1), (60_000, 20_000)])
def test_ticks_are_round(span: float, step: float) -> None:
    assert nice_step(span, 4) == pytest.approx(step)


def test_charts_are_well_formed() -> None:
    series = [Series(label="a < b", color=1, points=[(0, 1), (1, 3)], filled=True)]
    line = line_chart(series, title="t & u", x_label="s", y_format=str)
    bars = bar_chart([(0, 1, 5), (1, 2, 0)], title="t", x_label="s", marks={"p50": 1.5})
    stacked = stacked_bars({"0 s": {"tea": 2.0}}, {"tea": 1}, title="t", x_label="s", y_format=str)
    for chart in (line, bars, stacked):
        ElementTree.fromstring(f"<div>{chart}</div>")
    assert "nothing to show" in line_chart([], title="t", x_label="s", y_format=str)
