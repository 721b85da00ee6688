"""Backpressure: a source waits for asynchronous steps and for the tasks downstream of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from emberflow.engines.local.queues import LIMIT_RECORDS
from emberflow.engines.local.tasks import CHUNK_RECORDS
from emberflow.streams import (
    AsyncDataStream,
    AsyncFunction,
    IterableSource,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from emberflow.testing import LOCAL, TestSource


class TasksAlive(AsyncFunction):
    async def async_invoke(self, value: int) -> list[Any]:
        await asyncio.sleep(0.0005)
        return [len(asyncio.all_tasks())]


def test_calls_that_wait_for_capacity_are_bounded_by_one_batch() -> None:
    source = TestSource(range(600), batch=10)
    for keyed in (False, True):

        def build(env: Any, keyed: bool = keyed) -> Any:
            stream = env.add_source(source)
            stream = stream.key_by(lambda n: n % 5).map(lambda n: n) if keyed else stream
            return AsyncDataStream.unordered_wait(stream, TasksAlive(), timedelta(seconds=20), capacity=5)

        alive = LOCAL.run(build)
        assert len(alive) == 600
        assert max(alive) < 30


def test_a_slow_step_slows_its_source_down() -> None:
    """Between the source and a slow keyed step there is never more than a queue and one chunk."""
    produced, ahead = [0], [0]

    def endless() -> Iterator[int]:
        for number in range(60_000):
            produced[0] = number
            yield number

    def slow(value: int) -> int:
        ahead[0] = max(ahead[0], produced[0] - value)
        if value % 1_000 == 0:
            time.sleep(0.002)
        return value

    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    stream = env.from_source(IterableSource(endless)).key_by(lambda value: 0).map(slow)
    with stream.execute_and_collect() as results:
        assert sum(1 for _ in results) == 60_000
    assert ahead[0] <= LIMIT_RECORDS + 2 * CHUNK_RECORDS
