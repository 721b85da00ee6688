"""Agents on every host: the same outputs per key in the same order."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path

import pytest

from emberflow.errors import ActionFailed
from emberflow.streams import (
    AggregateFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    WatermarkStrategy,
)
from emberflow.testing import (
    SPARK,
    SPARK_BATCH,
    STREAMING_HOSTS,
    Crash,
    Cut,
    Host,
    TestSource,
    on_every_host,
    per_key,
)
from tests.support.small_agents import (
    CountingAgent,
    DiaryAgent,
    FailingAgent,
    WaitingAgent,
    applied,
    counted,
    diary,
)

INPUTS = [(random.Random(7 * number).choice("abcde"), number) for number in range(40)]


@on_every_host(nightly=[SPARK])
def test_actions_share_memory_and_typed_events(host: Host) -> None:
    found = host.run(lambda env: applied(env, env.from_collection(INPUTS), CountingAgent()))
    assert per_key(found) == per_key(counted(INPUTS))


@on_every_host(nightly=[SPARK])
def test_inputs_of_a_key_wait_for_each_other(host: Host) -> None:
    found = host.run(lambda env: applied(env, env.from_collection(INPUTS), WaitingAgent()))
    assert per_key(found) == per_key(counted(INPUTS))


@on_every_host(nightly=[SPARK_BATCH])
def test_a_crash_neither_repeats_nor_loses_anything(host: Host, tmp_path: Path) -> None:
    first, second, third = INPUTS[:15], INPUTS[15:30], INPUTS[30:]
    source = TestSource([*first, Crash(), *second, Crash(), *third])

    run = host.run_to_files(lambda env: applied(env, env.add_source(source), WaitingAgent()), tmp_path)

    assert run.starts == 3
    assert per_key(run.values) == per_key(counted(INPUTS))


@on_every_host
def test_a_failing_input_can_be_skipped(host: Host) -> None:
    inputs = [("a", 1), ("a", -5), ("b", -1), ("a", 3), ("b", 4), ("a", -2), ("a", 2)]
    found = host.run(lambda env: applied(env, env.from_collection(inputs), FailingAgent(), skip=True))
    assert per_key(found) == {"a": [("a", 1), ("a", 4), ("a", 6)], "b": [("b", 4)]}


@on_every_host(nightly=[SPARK])
def test_a_failing_input_stops_the_job_by_default(host: Host) -> None:
    with pytest.raises(ActionFailed) as caught:
        host.run(lambda env: applied(env, env.from_collection([("a", 1), ("b", -1)]), FailingAgent()))
    text = str(caught.value)
    assert "agent 'FailingAgent', action 'check', key 'b', event InputEvent(input=('b', -1))" in text
    assert "ValueError: -1 is negative" in text
    assert "ON_ERROR" in text


@on_every_host(nightly=[SPARK_BATCH])
def test_watermarks_do_not_overtake_inputs_in_flight(host: Host) -> None:
    """A window after the agent must see every output before the watermark that closes it."""
    inputs = [(word, number) for number in range(30) for word in "abc"]

    def build(env: StreamExecutionEnvironment):
        timed = env.from_collection(inputs).assign_timestamps_and_watermarks(
            WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
                lambda value, _: value[1] * 100
            )
        )
        windows = (
            applied(env, timed, WaitingAgent())
            .key_by(lambda value: value[0])
            .window(TumblingEventTimeWindows.of(timedelta(seconds=1)))
        )
        return windows.aggregate(CountAll())

    found = host.run(build)
    assert sorted(found) == sorted([10] * 9)


class CountAll(AggregateFunction[object, int, int]):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: object, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


@on_every_host(nightly=[SPARK])
def test_agents_are_chained_over_a_stream(host: Host) -> None:
    def build(env: StreamExecutionEnvironment):
        first = applied(env, env.from_collection(INPUTS), WaitingAgent())
        return applied(env, first.map(lambda value: (value[0], value[2])), CountingAgent())

    assert per_key(host.run(build)) == per_key(counted(INPUTS))


@on_every_host(hosts=STREAMING_HOSTS)
@pytest.mark.parametrize("waits", [False, True], ids=["plain", "waiting"])
def test_large_memory_survives_batches_and_crashes(host: Host, waits: bool, tmp_path: Path) -> None:
    inputs = [(word, number) for number in range(1, 25) for word in "ab"]
    source = TestSource([*inputs[:16], Cut(), *inputs[16:24], Crash(), *inputs[24:40], Cut(), *inputs[40:]])

    run = host.run_to_files(
        lambda env: applied(env, env.add_source(source), DiaryAgent(waits=waits)), tmp_path
    )

    assert per_key(run.values) == per_key(diary(inputs))
