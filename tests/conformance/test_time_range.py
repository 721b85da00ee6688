"""Event time is 64-bit milliseconds: values outside are an error that names step and record, on every host; values at the
edge neither vanish nor hang."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from emberflow.errors import SourceFailed, StepFailed
from emberflow.streams import (
    KeyedProcessFunction,
    RuntimeContext,
    StateTtlConfig,
    TumblingEventTimeWindows,
    ValueStateDescriptor,
    WatermarkGenerator,
    WatermarkStrategy,
)
from emberflow.testing import LOCAL_HOSTS, SPARK, Host, TestSource, Timed, on_every_host, unordered

LOWEST, HIGHEST = -(2**63), 2**63 - 1
MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps()


def first(value: Any) -> Any:
    return value[0]


def second(value: Any, _: int) -> int:
    return value[1]


class Ahead(WatermarkGenerator):
    """The watermark that a record specifies."""

    def on_event(self, value: Any, timestamp: int, output: Any) -> None:
        output.emit_watermark(value[1])


class SetsTimers(KeyedProcessFunction):
    """Sets a timer for `value[1]`, in event time or processing time."""

    def __init__(self, domain: str) -> None:
        self._domain = domain

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        timers = ctx.timer_service()
        if self._domain == "event":
            timers.register_event_time_timer(value[1])
        else:
            timers.register_processing_time_timer(value[1])
        yield value

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield ctx.get_current_key(), "fired"


class RemembersForEver(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("seen")
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(HIGHEST).build())
        self._seen = runtime_context.get_state(descriptor)

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield value, self._seen.value()
        self._seen.update(value)


@on_every_host(nightly=[SPARK])
def test_an_assigned_timestamp_out_of_range_names_the_record(host: Host) -> None:
    bad = 2**63
    records = [("a", 10), ("a", bad), ("a", 20)]
    with pytest.raises(StepFailed) as caught:
        host.run(
            lambda env: (
                env.from_collection(records)
                .assign_timestamps_and_watermarks(MONOTONOUS.with_timestamp_assigner(second))
                .name("clock")
                .key_by(first)
                .window(TumblingEventTimeWindows.of(10))
                .reduce(lambda one, other: one)
            )
        )
    text = str(caught.value)
    assert "step 'clock'" in text
    assert f"could not process the value {('a', bad)!r}" in text
    assert "Error: a timestamp must be " in text


@on_every_host(nightly=[SPARK])
def test_a_sources_timestamp_out_of_range_names_the_record(host: Host) -> None:
    source = TestSource([Timed("good", 5), Timed("bad", 2**63), Timed("later", 7)])
    with pytest.raises(SourceFailed) as caught:
        host.run(lambda env: env.add_source(source, "readings").key_by(len).map(str))
    assert "source 'readings' gave the record 'bad' an invalid timestamp" in str(caught.value)


@on_every_host
def test_a_watermark_out_of_range_names_the_record(host: Host) -> None:
    strategy = WatermarkStrategy.for_generator(Ahead).with_timestamp_assigner(lambda value, _: 1)
    with pytest.raises(StepFailed) as caught:
        host.run(
            lambda env: (
                env.from_collection([("a", 1), ("b", HIGHEST), ("c", 2)])
                .assign_timestamps_and_watermarks(strategy)
                .key_by(first)
                .map(str)
            )
        )
    assert f"could not process the value {('b', HIGHEST)!r}" in str(caught.value)
    assert "which ends the input" in caught.value.cause


@pytest.mark.parametrize("domain", ["event", "processing"])
@on_every_host(hosts=LOCAL_HOSTS)
def test_a_timer_out_of_range_names_the_record(host: Host, domain: str) -> None:
    with pytest.raises(StepFailed) as caught:
        host.run(lambda env: env.from_collection([("a", 2**63)]).key_by(first).process(SetsTimers(domain)))
    assert f"could not process the value {('a', 2**63)!r}" in str(caught.value)
    assert "the time of a timer must be a 64-bit integer" in caught.value.cause


@on_every_host(nightly=[SPARK])
@pytest.mark.parametrize("domain", ["event", "processing"])
def test_timers_at_the_edges_fire(host: Host, domain: str) -> None:
    times = [LOWEST, -1, HIGHEST - 1, HIGHEST]
    records = [(str(key), time) for key, time in enumerate(times)]
    out = host.run(lambda env: env.from_collection(records).key_by(first).process(SetsTimers(domain)))
    assert unordered(out) == unordered([*records, *((key, "fired") for key, _ in records)])


@on_every_host(nightly=[SPARK])
def test_records_at_the_edges_are_kept(host: Host) -> None:
    """Also after a delay that would lead below the lowest watermark."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(HIGHEST).with_timestamp_assigner(second)
    records = [("a", LOWEST + 1), ("b", LOWEST + 9), ("c", 0), ("d", HIGHEST - 8), ("e", 0)]
    out = host.run(
        lambda env: (
            env.from_collection(records)
            .assign_timestamps_and_watermarks(strategy)
            .key_by(first)
            .window(TumblingEventTimeWindows.of(4))
            .reduce(lambda one, other: one)
        )
    )
    assert unordered(out) == unordered(records)


@on_every_host(nightly=[SPARK])
def test_a_window_that_would_end_after_time_names_the_record(host: Host) -> None:
    records = [("a", 10), ("a", HIGHEST)]
    with pytest.raises(StepFailed) as caught:
        host.run(
            lambda env: (
                env.from_collection(records)
                .assign_timestamps_and_watermarks(MONOTONOUS.with_timestamp_assigner(second))
                .key_by(first)
                .window(TumblingEventTimeWindows.of(10))
                .reduce(lambda one, other: one)
                .name("sums")
            )
        )
    assert f"could not process the value {('a', HIGHEST)!r}" in str(caught.value)
    assert "ends after the last timestamp, 2**63-1, so it would never fire" in caught.value.cause


@on_every_host(hosts=LOCAL_HOSTS)
def test_the_longest_time_to_live(host: Host) -> None:
    out = host.run(lambda env: env.from_collection(["a", "a"]).key_by(str).process(RemembersForEver()))
    assert out == [("a", None), ("a", "a")]
