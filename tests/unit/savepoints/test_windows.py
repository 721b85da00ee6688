"""Open windows of every strategy in a savepoint, continued by a job with another parallelism."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from emberflow.streams import (
    CollectSink,
    CountTrigger,
    EventTimeSessionWindows,
    JobClient,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    WatermarkStrategy,
)
from emberflow.testing import LOCAL, LOCAL_2, LOCAL_SQLITE, Host, TestSource
from tests.support.waiting import until

IN_TIME = WatermarkStrategy.for_bounded_out_of_orderness(timedelta(milliseconds=15)).with_timestamp_assigner(
    lambda item, _: item[1]
)
ITEMS = [("abcdefg"[number % 7], number * 7 % 11 + number * 3) for number in range(60)]


def shown(key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
    yield key, context.window().max_timestamp(), [value for _, value in elements]


def program(env: StreamExecutionEnvironment, count: int, out: list[Any], *, ends: bool) -> JobClient:
    source = env.from_source(TestSource(ITEMS[:count], bounded=ends), source_name="items").uid("items")
    timed = source.assign_timestamps_and_watermarks(IN_TIME)
    keyed, twice = timed.key_by(itemgetter(0)), timed.union(timed).key_by(itemgetter(0))
    sessions = EventTimeSessionWindows.with_gap(22)
    made = {
        "aligned": keyed.window(TumblingEventTimeWindows.of(20)).process(shown),
        "of a stream twice": twice.window(TumblingEventTimeWindows.of(20)).sum(1),
        "panes": keyed.window(SlidingEventTimeWindows.of(80, 20)).reduce(
            lambda one, other: (one[0], one[1] + other[1]), shown
        ),
        "sessions": keyed.window(sessions).process(shown),
        "late": keyed.window(sessions).allowed_lateness(10).process(shown),
        "triggered": keyed.window(sessions).trigger(CountTrigger.of(2)).process(shown),
        "count": keyed.count_window(3).process(shown),
    }
    for name, stream in made.items():
        named = stream.uid(name).map(lambda value, name=name: (name, value))
        named.sink_to(CollectSink(lambda batch: out.extend(batch.values))).uid(f"{name} sink")
    return env.execute_async("windows")


def environment(host: Host, folder: Path) -> StreamExecutionEnvironment:
    return host.environment(checkpoint_dir=folder).enable_checkpointing(20)


@pytest.mark.parametrize(("before", "after"), [(LOCAL, LOCAL_2), (LOCAL_2, LOCAL_SQLITE)], ids=["up", "down"])
def test_windows_continue_with_another_parallelism(before: Host, after: Host, tmp_path: Path) -> None:
    expected: list[Any] = []
    program(LOCAL.environment(), 60, expected, ends=True).get_job_execution_result().result()
    kinds = {"aligned", "of a stream twice", "panes", "sessions", "late", "triggered", "count"}
    assert {name for name, _ in expected} == kinds
    out: list[Any] = []
    job = program(environment(before, tmp_path / "c"), 35, out, ends=False)
    until(lambda: len([1 for name, _ in out if name == "count"]) == 7)
    path = job.savepoint(tmp_path / "s", stop=True)
    env = environment(after, tmp_path / "d").set_savepoint(path)
    program(env, 60, out, ends=True).get_job_execution_result().result()
    assert sorted(out) == sorted(expected)
