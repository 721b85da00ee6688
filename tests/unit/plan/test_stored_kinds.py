"""Which changes of a window step can continue stored windows, and how the others are refused."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emberflow.errors import ProgramChanged
from emberflow.plan.stored_kinds import continues, recorded
from emberflow.plan.window_specs import WindowSpec
from emberflow.streams import (
    CollectSink,
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WatermarkStrategy,
)
from emberflow.testing import TestSource

TEN = TumblingEventTimeWindows.of(10)


def kind(assigner: Any, change: Callable[[Any], Any] = lambda windowed: windowed.sum(1)) -> str:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    change(env.from_collection([("a", 1)]).key_by(lambda value: value[0]).window(assigner)).print()
    (spec,) = [spec for spec in env._program.specs() if isinstance(spec, WindowSpec)]
    return spec.stored_kind


def test_kinds_are_named() -> None:
    assert kind(TEN) == "window(reduced values; event-time windows)"
    assert kind(SlidingEventTimeWindows.of(40, 10, 3)) == (
        "window(reduced values; event-time windows; panes of 10 ms, offset 3 ms)"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            kind(TEN),
            kind(TEN, lambda windowed: windowed.allowed_lateness(5).trigger(CountTrigger.of(2)).sum(1)),
        ),
        (kind(TEN), kind(TumblingEventTimeWindows.of(20))),
        (kind(TEN), kind(SlidingEventTimeWindows.of(40, 10))),
        (kind(SlidingEventTimeWindows.of(40, 10)), kind(SlidingEventTimeWindows.of(20, 10))),
        (kind(SlidingEventTimeWindows.of(40, 10)), kind(SlidingEventTimeWindows.of(60, 10))),
        (kind(EventTimeSessionWindows.with_gap(5)), kind(EventTimeSessionWindows.with_dynamic_gap(len))),
        ("window", kind(TEN)),
        ("reduce", "reduce"),
    ],
)
def test_changes_that_continue(before: str, after: str) -> None:
    assert continues(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (kind(TEN), kind(TEN, lambda windowed: windowed.evictor(CountEvictor.of(5)).sum(1))),
        (kind(TEN), kind(TEN, lambda windowed: windowed.process(lambda key, context, elements: elements))),
        (kind(TEN), kind(EventTimeSessionWindows.with_gap(5))),
        (kind(TEN), kind(TumblingProcessingTimeWindows.of(10))),
        (kind(TEN), kind(GlobalWindows.create())),
        (kind(SlidingEventTimeWindows.of(40, 10)), kind(SlidingEventTimeWindows.of(40, 8))),
        (None, kind(TEN)),
        ("reduce", "window"),
    ],
)
def test_changes_that_do_not(before: str | None, after: str) -> None:
    assert not continues(before, after)


def test_panes_stay_recorded() -> None:
    panes = kind(SlidingEventTimeWindows.of(40, 10))
    assert recorded(panes, kind(TEN)) == panes
    assert recorded("window", panes) == panes


def job(
    directory: Path, savepoint: str | None, change: Callable[[Any], Any], *, bounded: bool
) -> tuple[Any, list[Any]]:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local", checkpoint_dir=str(directory))
    env.enable_checkpointing(50)
    if savepoint is not None:
        env.set_savepoint(savepoint)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value[1]
    )
    records = [("a", 1), ("a", 2), *([("a", 3), ("a", 20)] if bounded else [])]
    stream = env.add_source(TestSource(records, bounded=bounded)).uid("source")
    stamped = stream.assign_timestamps_and_watermarks(strategy).uid("time")
    found: list[Any] = []
    windowed = stamped.key_by(lambda value: value[0]).window(TEN)
    change(windowed).uid("totals").sink_to(CollectSink(lambda batch: found.extend(batch.values))).uid("out")
    return env, found


def test_contents_of_another_kind_are_refused(tmp_path: Path) -> None:
    env, _ = job(tmp_path / "one", None, lambda windowed: windowed.sum(1), bounded=False)
    client = env.execute_async("before")
    time.sleep(0.2)
    savepoint = client.savepoint(str(tmp_path / "saved"), stop=True)

    def evicted(windowed: Any) -> Any:
        return windowed.evictor(CountEvictor.of(5)).sum(1)

    for directory, path in ((tmp_path / "one", None), (tmp_path / "two", savepoint)):
        env, _ = job(directory, path, evicted, bounded=True)
        with pytest.raises(ProgramChanged) as caught:
            env.execute("after")
        for text in ("reduced values", "elements with timestamps", "'totals'", "uid()"):
            assert text in str(caught.value)
    env, found = job(
        tmp_path / "three", savepoint, lambda windowed: windowed.allowed_lateness(1).sum(1), bounded=True
    )
    env.execute("after")
    assert found == [("a", 6), ("a", 20)]
