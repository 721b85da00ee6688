"""B8: lists, maps and timers that are much larger than a batch, through commits and a crash."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emberflow.engines.local import task_builder
from emberflow.errors import EngineFailed
from emberflow.events.codecs import decode
from emberflow.streams import (
    KeyedProcessFunction,
    ListStateDescriptor,
    MapStateDescriptor,
    RuntimeContext,
    StateTtlConfig,
    Time,
    TimestampAssigner,
    ValueStateDescriptor,
    WatermarkStrategy,
)
from emberflow.testing import LOCAL_SQLITE, SPARK_BATCH, Crash, Cut, Host, Pause, TestSource, on_every_host

MANY = 1_500
"""Items that one record adds: several pages, and more timers than are stored with a key group."""


class Large(KeyedProcessFunction):
    """Adds to a list and two maps, and registers timers; deletes every third timer of the record before."""

    def open(self, runtime_context: RuntimeContext) -> None:
        living = MapStateDescriptor("living")
        living.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        self._list = runtime_context.get_list_state(ListStateDescriptor("list"))
        self._map = runtime_context.get_map_state(MapStateDescriptor("map"))
        self._living = runtime_context.get_map_state(living)
        self._fired = runtime_context.get_state(ValueStateDescriptor("fired"))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        _, number = value
        timers = ctx.timer_service()
        for item in range(number * MANY, number * MANY + MANY):
            self._list.add(item)
            self._map.put(f"k{item}", -item)
            self._living.put(item, str(item))
            timers.register_event_time_timer(due(item))
            if item >= MANY and item % 3 == 0:
                timers.delete_event_time_timer(due(item - MANY))
        self._map.remove(f"k{number * MANY + 1}")
        items = list(self._list.get())
        pairs = list(self._map.items())
        yield (
            value,
            (len(items), items == sorted(items)),
            (len(pairs), [-item for _, item in pairs] == sorted(-item for _, item in pairs)),
            (self._map.get("k7"), self._map.contains("k1"), self._living.get(number * MANY)),
        )

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        count, last = self._fired.value() or (0, 0)
        assert timestamp > last, "timers fire in order"
        self._fired.update((count + 1, timestamp))
        if count % 500 == 0:
            yield ctx.get_current_key(), count, timestamp


def due(item: int) -> int:
    """Times that are far apart, and not in the order in which the timers are registered."""
    return 1_000_000 + (item * 7919) % (10 * MANY) * 1_000


def expected(records: list[tuple[str, int]]) -> list[Any]:
    out: list[Any] = []
    timers: dict[str, set[int]] = {}
    for key, number in records:
        pending = timers.setdefault(key, set())
        for item in range(number * MANY, number * MANY + MANY):
            pending.add(due(item))
            if item >= MANY and item % 3 == 0:
                pending.discard(due(item - MANY))
        size = MANY * (number + 1)
        out.append(((key, number), (size, True), (size - number - 1, True), (-7, False, str(number * MANY))))
    for key, pending in timers.items():
        out += [(key, count, time) for count, time in enumerate(sorted(pending)) if count % 500 == 0]
    return out


@on_every_host(nightly=[SPARK_BATCH])
def test_large_lists_maps_and_timers(host: Host, tmp_path: Path) -> None:
    records = [("a", 0), ("a", 1), ("b", 0), ("a", 2), ("a", 3)]
    # Pauses give local checkpoints time to happen in between; cuts make micro-batches on Spark.
    cut = [Cut(), Pause(60)] if host.engine == "local" else [Cut()]
    source = TestSource([records[0], *cut, *records[1:3], *cut, Crash(), records[3], *cut, records[4]])
    run = host.run_to_files(program(source), tmp_path)
    assert run.starts == 2
    assert sorted(run.values, key=repr) == sorted(expected(records), key=repr)


def program(source: Any) -> Any:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())

    def build(env: Any) -> Any:
        stream = env.add_source(source).assign_timestamps_and_watermarks(strategy)
        return stream.key_by(lambda value: value[0]).process(Large()).uid("large")

    return build


@pytest.mark.parametrize("point", range(6))
def test_a_crash_at_every_record(point: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With SQLite, where pages are written at checkpoints, and timers on pages too."""
    monkeypatch.setattr(task_builder, "TIMERS_IN_MEMORY", 64)
    records = [("a", 0), ("a", 1), ("b", 0), ("a", 2), ("b", 1)]
    items: list[Any] = []
    for index, record in enumerate(records):
        items += [*([Crash()] if index == point else []), record, Cut(), Pause(50)]
    run = LOCAL_SQLITE.run_to_files(
        program(TestSource([*items, *([Crash()] if point == 5 else [])])), tmp_path
    )
    assert run.starts == 2
    assert sorted(run.values, key=repr) == sorted(expected(records), key=repr)


def test_paged_timers_are_distributed_over_another_number_of_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_builder, "TIMERS_IN_MEMORY", 64)
    records = [(key, number) for number in range(2) for key in "abcd"]
    items: list[Any] = []
    for number, record in enumerate(records):
        items += [record, Cut(), Pause(50), *([Crash()] if number in (3, 5) else [])]
    build = program(TestSource(items))
    two = replace(LOCAL_SQLITE, name="local-sqlite-2", parallelism=2)
    for host in (LOCAL_SQLITE, two):
        with pytest.raises(EngineFailed, match="crashed 1 times"):
            host.run_to_files(build, tmp_path, max_starts=1)
    run = LOCAL_SQLITE.run_to_files(build, tmp_path)
    assert sorted(run.values, key=repr) == sorted(expected(records), key=repr)
    with closing(sqlite3.connect(tmp_path / "checkpoints" / "state.db")) as db:
        pages = [decode(data) for (data,) in db.execute("select data from pages where number > 0")]
    assert len(pages) > 100
    # What is left are lists of numbers and maps: all timers have fired, and their pages are gone.
    assert not any(isinstance(page, list) and isinstance(page[0], tuple) for page in pages)


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return value[1]
