from __future__ import annotations

import json

import pytest

from emberflow.errors import InvalidArgument
from emberflow.observability.metric_group import Histogram, Meter, MetricGroup


def test_the_same_name_is_the_same_metric() -> None:
    group = MetricGroup("agent")
    counter = group.get_counter("calls")
    counter.inc()
    counter.inc(5)
    counter.dec()
    counter.dec(2)
    assert group.get_counter("calls").get_count() == 3
    assert group.get_sub_group("score") is group.get_sub_group("score")
    assert group.get_sub_group("model", "small") is not group.get_sub_group("model", "large")
    assert group.get_sub_group("score").get_counter("calls").get_count() == 0


def test_a_snapshot_names_metrics_by_their_groups() -> None:
    group = MetricGroup("agent")
    group.get_counter("runs").inc(2)
    group.get_sub_group("score").get_gauge("queue").update("long")
    small = group.get_sub_group("score").get_sub_group("model", "small")
    small.get_meter("calls").mark(3)
    small.get_histogram("ms").update(4)
    snapshot = group.snapshot()
    assert list(snapshot) == ["runs", "score.queue", "score.model.small.calls", "score.model.small.ms"]
    assert snapshot["runs"] == 2
    assert snapshot["score.queue"] == "long"
    assert snapshot["score.model.small.calls"] == {"count": 3, "rate": 3.0}
    assert snapshot["score.model.small.ms"]["p99"] == 4
    assert json.loads(json.dumps(snapshot)) == snapshot


def test_one_name_is_one_kind() -> None:
    group = MetricGroup("agent")
    group.get_counter("x")
    with pytest.raises(InvalidArgument, match="metric 'x' of group 'agent' is a Counter, not a Gauge"):
        group.get_gauge("x")


def test_a_meter_measures_the_last_minute() -> None:
    now = 1_000.0
    meter = Meter(clock=lambda: now)
    meter.mark(10)
    assert meter.get_rate() == 10
    now += 10
    meter.mark(10)
    assert meter.get_rate() == 2
    for _ in range(300):
        now += 1
        meter.mark(5)
    assert meter.get_rate() == pytest.approx(5, rel=0.05)
    assert len(meter._seconds) <= 61
    now += 61
    assert meter.get_rate() == 0
    assert meter.get_count() == 1_520


def test_a_histogram_keeps_a_bounded_sample() -> None:
    histogram = Histogram(window_size=100)
    assert histogram.snapshot() == {"count": 0, "min": 0, "max": 0, "mean": 0, "p50": 0, "p95": 0, "p99": 0}
    for value in range(1, 1_001):
        histogram.update(value)
    assert histogram.snapshot() == {
        "count": 1_000,
        "min": 1,
        "max": 1_000,
        "mean": 500.5,
        "p50": 950,
        "p95": 995,
        "p99": 999,
    }
    assert (histogram.get_percentile(0), histogram.get_percentile(100)) == (901, 1_000)
    with pytest.raises(InvalidArgument):
        histogram.get_percentile(101)
    with pytest.raises(InvalidArgument):
        Histogram(window_size=0)
