"""The demo on the local engine, from the command line to the report."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest

from emberflow.demo import main
from emberflow.demo.charts import Series, bar_chart, line_chart, nice_step, stacked_bars
from emberflow.demo.observations import (
    Delivery,
    Observer,
    histogram,
    latency_over_time,
    outcome,
    per_second,
    percentile,
    revenue_by_window,
)
from emberflow.demo.shop import Order, OrderGenerator, Revenue, Sale
from emberflow.events.batch import Batch


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
    assert "400 sales" in printed
    assert "p99" in printed
    assert (tmp_path / "report.html").as_uri() in printed
    page = outline(tmp_path / "report.html")
    assert page.headings == [
        "Throughput", "Latency over time", "Latency", "Revenue", "The job", "Alerts", "Settings and versions",
    ]  # fmt: skip
    assert page.tags.count("svg") == 5
    assert "script" not in page.tags
    assert page.addresses == []


def test_quiet_prints_the_place_of_the_report_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EMBERFLOW_QUIET", raising=False)
    # Set through monkeypatch first, so that what the demo sets is taken back.
    monkeypatch.setenv("EMBERFLOW_QUIET", "")
    assert (
        main(["--engine", "local", "--events", "50", "--rate", "1000", "--out", str(tmp_path), "--quiet"])
        == 0
    )
    assert capsys.readouterr().out.splitlines() == [f"report      {(tmp_path / 'report.html').as_uri()}"]


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(SystemExit):
        main(["--events", "0"])
    with pytest.raises(SystemExit):
        main(["--rate", "-3"])


def test_an_order_is_the_same_each_time() -> None:
    make = OrderGenerator(1_000, 250)
    assert make(7)[:-1] == make(7)[:-1]
    assert make(7)[:-1] != make(8)[:-1]


def sale(number: int, made_ms: int) -> Sale:
    return Sale(Order(number, "customer-001", "tea", 6.0, 0, made_ms), 6.0, "DE")


def test_latency_counts_from_the_moment_an_order_was_due() -> None:
    observer = Observer()
    # 10 orders a second; the source began at 5,000: order 1 was due at 5,100 and made 40 ms later.
    observer.sales = [(5_300.0, sale(0, 5_000)), (5_300.0, sale(1, 5_140))]
    result = outcome(observer, orders_per_s=10, start_ms=0)
    assert [round(item.latency_s, 3) for item in result.deliveries] == [0.3, 0.2]
    assert result.first_delivery_s == pytest.approx(0.3)


def test_a_run_without_results_can_be_shown(tmp_path: Path) -> None:
    result = outcome(Observer(), orders_per_s=10, start_ms=0)
    assert result.duration_s == 0
    assert result.steady_latencies() == {50: 0, 95: 0, 99: 0}


def test_the_observer_takes_batches() -> None:
    observer = Observer()
    observer.on_sales(Batch([sale(0, 0)]))
    observer.on_revenue(Batch([Revenue("tea", 5_000, 6.0, 1)]))
    observer.on_alerts(Batch([]))
    assert [item.product for item in observer.revenue] == ["tea"]
    assert revenue_by_window(observer.revenue) == {5_000: {"tea": 6.0}}


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
