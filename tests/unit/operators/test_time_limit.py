"""The time limit of a call begins when the call's code runs."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from emberflow.operators.admission.gate import Gate, MemoryLedger
from emberflow.operators.admission.model_limits import ModelLimits
from emberflow.operators.agents.resources.resource_views import admitted
from emberflow.operators.time_limit import TimeLimit, on_thread


def test_the_wait_for_a_thread_does_not_count() -> None:
    async def run(function: Callable[[], Any]) -> Any:
        await asyncio.sleep(1.5)
        return await asyncio.to_thread(function)

    async def call() -> str:
        async with TimeLimit(1):
            return await on_thread(run, lambda: "quick")

    assert asyncio.run(call()) == "quick"


def test_what_runs_on_a_thread_counts() -> None:
    async def call() -> None:
        limit = TimeLimit(0.01)
        try:
            async with limit:
                release = asyncio.Event()

                async def run(function: Callable[[], Any]) -> None:
                    await asyncio.to_thread(function)
                    await release.wait()

                await on_thread(run, lambda: None)
        finally:
            assert limit.expired()

    with pytest.raises(TimeoutError):
        asyncio.run(call())


def test_the_limit_goes_on_after_the_wait() -> None:
    async def call() -> None:
        limit = TimeLimit(0.05)
        async with limit:
            limit.hold()
            await asyncio.sleep(0.2)
            limit.go_on()
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        asyncio.run(call())


def test_the_wait_for_admission_does_not_count() -> None:
    async def calls() -> tuple[str, str]:
        began = asyncio.Event()

        async def first() -> str:
            began.set()
            await asyncio.sleep(1.5)
            return "first"

        async def second() -> str:
            return "second"

        async def make(function: Callable[[], Any]) -> str:
            return await function()

        limits = ModelLimits(max_concurrent=1)
        tool = admitted(SimpleNamespace(call=make), "call", Gate("the tool", limits, MemoryLedger()))
        running = asyncio.ensure_future(tool.call(first))
        await began.wait()
        async with TimeLimit(1):
            answer = await tool.call(second)
        return await running, answer

    assert asyncio.run(calls()) == ("first", "second")


def test_a_task_that_outlives_the_call_does_not_change_anything() -> None:
    async def call() -> str:
        async def run(function: Callable[[], Any]) -> Any:
            return function()

        async with TimeLimit(3600):
            context = contextvars.copy_context()
        later = asyncio.get_running_loop().create_task(on_thread(run, lambda: "later"), context=context)
        return await later

    assert asyncio.run(call()) == "later"
