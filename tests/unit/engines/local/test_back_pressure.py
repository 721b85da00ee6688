"""Bounded everywhere: a source waits for asynchronous steps and for the tasks behind it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from emberflow.streams import AsyncDataStream, AsyncFunction
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
