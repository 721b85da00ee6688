"""The benchmark harness itself: bars, JSON, table, and one tiny local benchmark end to end."""

from __future__ import annotations

import importlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import keyed_state_local, machine, results, table
from benchmarks.__main__ import main
from benchmarks.child import measure
from benchmarks.counting import record
from benchmarks.measurement import Measure, Options, Skipped, at_least, at_most
from benchmarks.processes import slope_per_minute, usage
from benchmarks.registry import BENCHMARKS
from benchmarks.steered_source import Bursts, FillThenTouch


def entry(*measures: Measure) -> dict[str, Any]:
    return {"measures": [item.to_dict() for item in measures]}


def test_a_bar_shows_how_far_a_figure_is_from_it() -> None:
    assert Measure(name="m", value=300, unit="records/s", bar=at_least(150)).to_dict() == {
        "name": "m",
        "value": 300,
        "unit": "records/s",
        "bar": {"at_least": 150},
        "ratio": 2.0,
        "met": True,
    }
    slow = Measure(name="m", value=300, unit="ms", bar=at_most(150)).to_dict()
    assert (slow["ratio"], slow["met"]) == (0.5, False)
    assert Measure(name="m", value=0, unit="", bar=at_most(0)).to_dict()["met"] is True


def test_the_table_shows_the_run_before() -> None:
    now = {"fast": entry(Measure(name="rate", value=200_000, unit="records/s", bar=at_least(150_000)))}
    before = {"fast": entry(Measure(name="rate", value=100_000, unit="records/s"))}
    heading, _, row = table.render(now, before).splitlines()
    assert heading.split() == ["benchmark", "measure", "measured", "bar", "ratio", "met", "previous"]
    assert (
        " ".join(row.split()) == "fast rate 200,000 records/s ≥ 150,000 records/s 1.33 yes 100,000 records/s"
    )


def test_the_table_names_what_failed_and_what_was_missed() -> None:
    text = table.render(
        {
            "broken": {"failed": "Traceback …\nValueError: no"},
            "absent": {"skipped": "not installed"},
            "slow": entry(Measure(name="time", value=2.5, unit="×", bar=at_most(1.5))),
        },
        {},
    )
    assert "ValueError: no" in text
    assert "not installed" in text
    assert "NO" in text


def test_results_keep_the_run_before_and_other_benchmarks(tmp_path: Path) -> None:
    first = results.merged(None, {"cpu": "x"}, {"a": {"measures": []}, "b": {"measures": []}})
    results.save(first, tmp_path)
    second = results.merged(results.load(tmp_path / "latest.json"), {"cpu": "x"}, {"a": {"failed": "no"}})
    results.save(second, tmp_path)
    assert results.load(tmp_path / "previous.json") == first
    assert second["benchmarks"] == {"a": {"failed": "no"}, "b": {"measures": []}}


def test_results_of_another_version_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "latest.json").write_text(json.dumps({"version": 0}))
    assert results.load(tmp_path / "latest.json") is None
    assert results.load(tmp_path / "missing.json") is None


def test_the_machine_is_described() -> None:
    facts = machine.facts()
    assert facts["cores"] >= 1
    assert facts["memory_gib"] > 0
    assert facts["python"]


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda item: item.name)
def test_every_benchmark_has_its_module(benchmark: Any) -> None:
    assert callable(importlib.import_module(benchmark.module).run)


def test_an_unknown_name_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no_such"]) == 2
    assert "keyed_state_spark" in capsys.readouterr().err


def test_a_failing_benchmark_is_an_entry_not_a_crash() -> None:
    assert "ModuleNotFoundError" in measure("benchmarks.no_such", quick=True)["failed"]


def test_a_tiny_local_benchmark_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [record(index) for index in range(2_000)]
    assert keyed_state_local.emberflow_seconds(records) > 0
    monkeypatch.setattr(keyed_state_local, "record", lambda index: ("k", index))
    monkeypatch.setattr(Options, "pick", lambda self, quick, full: min(quick, 500))
    if importlib.util.find_spec("bytewax") is None:
        with pytest.raises(Skipped, match="bytewax is not installed"):
            keyed_state_local.run(Options(quick=True))
    else:
        first, *_ = keyed_state_local.run(Options(quick=True))
        assert first.bar is not None


def test_a_slope_is_per_minute() -> None:
    assert slope_per_minute([(0, 10), (30, 11), (60, 12)]) == pytest.approx(2)
    assert slope_per_minute([(5, 1)]) == 0


def test_usage_sees_this_process() -> None:
    seen = usage()
    assert seen.cpu_s > 0
    assert seen.python_mb > 1


def test_the_growth_source_fills_then_touches_the_same_keys() -> None:
    source = FillThenTouch(keys=10, touched=4, batches=2)
    chunks = list(source.read(1, source.start(2)[1], 3))
    assert [[key for key, _ in chunk.values] for chunk in chunks] == [[1, 3, 5], [7, 9], [1, 3], [1, 3]]
    assert [chunk.end for chunk in chunks] == [False, False, False, True]
    assert source.plan(1, 0, 3) == (chunks[0].position, False)


def test_the_burst_source_waits_between_bursts() -> None:
    source = Bursts(records=4, period_ms=100, bursts=2)
    assert [source.available(0, 0, 0), source.available(0, 2, 99), source.available(0, 2, 100)] == [2, 0, 2]
    assert source.due_ms(0, 2) == 100
    assert [len(chunk.values) for chunk in source.read(0, 0, 100)] == [2, 2]
