"""The event loop of a local job ends, whatever its coroutines do when they are canceled."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterable
from typing import Any

import pytest

from emberflow.engines.local.hanging import run_to_its_end
from emberflow.errors import KeySelectorFailed
from emberflow.streams import DiscardingSink, KeyedProcessFunction
from emberflow.testing import LOCAL, Pause, TestSource

HANG_GUARD_S = 120


class Alarm(KeyedProcessFunction[int, int, int]):
    def process_element(self, value: int, ctx: Any) -> Iterable[int]:
        ctx.timer_service().register_processing_time_timer(4_102_444_800_000)
        yield value


def not_3(value: int) -> int:
    if value == 3:
        raise ValueError(value)
    return value


def test_a_job_fails_at_the_moment_at_which_a_task_with_timers_gets_a_record() -> None:
    env = LOCAL.environment()
    numbers = env.add_source(TestSource([1, 2, Pause(30), 3, Pause(HANG_GUARD_S * 2_000), 4], 1))
    numbers.key_by(lambda value: value).process(Alarm()).sink_to(DiscardingSink())
    numbers.key_by(not_3).sum().sink_to(DiscardingSink())
    job = env.execute_async("fails")
    ends = time.monotonic() + HANG_GUARD_S
    while not job.get_job_status().result().is_final:
        assert time.monotonic() < ends, "the job hangs instead of failing"
        time.sleep(0.01)
    with pytest.raises(KeySelectorFailed, match="value 3"):
        job.get_job_execution_result().result()


def test_a_coroutine_that_suppresses_its_cancellation_is_abandoned() -> None:
    met: list[str] = []

    async def stubborn() -> None:
        give_up = time.monotonic() + 2 * HANG_GUARD_S
        while time.monotonic() < give_up:
            try:
                await asyncio.sleep(HANG_GUARD_S)
            except asyncio.CancelledError:
                met.append("cancelled")

    async def main() -> str:
        met.append(asyncio.create_task(stubborn()).get_name())
        await asyncio.sleep(0)
        return "done"

    found: list[str] = []
    # In a separate thread: without the time limit it would wait for the coroutine.
    thread = threading.Thread(target=lambda: found.append(run_to_its_end(main(), 0.05)), daemon=True)
    thread.start()
    thread.join(HANG_GUARD_S)
    assert found == ["done"]
    assert met[-1] == "cancelled"
