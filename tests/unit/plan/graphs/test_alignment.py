"""Which sources of a program are aligned, and what a plan says about it."""

from __future__ import annotations

from typing import Any

import pytest

from emberflow.errors import InvalidArgument
from emberflow.plan.graphs.alignment import aligned_sources
from emberflow.streams import (
    DataStream,
    KeyedProcessFunction,
    StreamExecutionEnvironment,
    WatermarkGenerator,
    WatermarkStrategy,
)


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(engine="local")


def source(env: StreamExecutionEnvironment, strategy: WatermarkStrategy, name: str) -> DataStream[Any]:
    return env.from_collection([1]).assign_timestamps_and_watermarks(strategy).name(name)


def aligned(group: str, drift_ms: int = 500, strategy: WatermarkStrategy | None = None) -> WatermarkStrategy:
    begin = strategy or WatermarkStrategy.for_monotonous_timestamps()
    return begin.with_timestamp_assigner(lambda value, _: value).with_watermark_alignment(group, drift_ms)


def test_the_first_strategy_with_alignment_behind_a_source_counts() -> None:
    env = environment()
    source(env, aligned("a"), "first").assign_timestamps_and_watermarks(aligned("b", 7)).name(
        "second"
    ).print()
    custom = aligned("a", strategy=WatermarkStrategy.for_generator(WatermarkGenerator)).with_idleness(60)
    source(env, custom, "custom").print()
    env.from_collection([2]).print()
    graph = env.job_graph()
    found = aligned_sources(graph)
    names = [graph.stream_graph.node(item.step).name for item in found]
    assert names == ["first", "custom"]
    assert [item.step_stage == item.stage for item in found] == [True, False]
    assert [item.idle_ms for item in found] == [None, 60]
    assert {item.alignment.group for item in found} == {"a"}


def test_a_plan_says_what_alignment_does_and_where_it_does_nothing() -> None:
    env = environment()
    events = source(env, aligned("orders"), "strategy")
    later = events.key_by(lambda value: value).process(KeyedProcessFunction())
    later.assign_timestamps_and_watermarks(aligned("late")).name("late").print()
    source(env, aligned("orders", strategy=WatermarkStrategy.no_watermarks()), "never").print()
    text = env.explain()
    assert "watermark_group=orders, max_drift_ms=500" in text
    assert "watermark group 'orders': 'collection'; on local, a source more than 500 ms ahead" in text
    assert "on Spark and in batch mode there is no alignment, results are the same" in text
    assert (
        "step 'late': its watermark alignment has no effect, because it is not the first behind a source"
        in text
    )
    assert "step 'never': its watermark alignment has no effect, because it has no watermarks" in text


def test_programs_without_alignment_say_nothing_about_it() -> None:
    env = environment()
    source(env, WatermarkStrategy.for_monotonous_timestamps(), "plain").print()
    assert "watermark group" not in env.explain()
    assert aligned_sources(env.job_graph()) == []


def test_two_drifts_for_one_group_are_rejected_in_plans_too() -> None:
    env = environment()
    source(env, aligned("a", 500), "one").union(source(env, aligned("a", 600), "other")).print()
    with pytest.raises(
        InvalidArgument, match="'a' has two drifts: 500 ms in step 'one', 600 ms in step 'other'"
    ):
        env.explain()
