"""The threads of blocking functions: how many run, and what becomes of those whose callers have given up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from emberflow.engines.job import blocking_threads
from emberflow.engines.job.blocking_threads import BlockingThreads
from emberflow.errors import ResourceFailed


class Hanging:
    """Functions that run until they are released."""

    def __init__(self) -> None:
        self.running = threading.Semaphore(0)
        self.release = threading.Event()

    def __call__(self) -> str:
        self.running.release()
        self.release.wait()
        return "released"

    async def started(self) -> None:
        await asyncio.to_thread(self.running.acquire)


def run(places: int, test: Callable[[BlockingThreads, Hanging], Awaitable[None]]) -> None:
    async def everything() -> None:
        threads, hanging = BlockingThreads(places), Hanging()
        try:
            await test(threads, hanging)
        finally:
            hanging.release.set()
            threads.shutdown()

    asyncio.run(everything())


async def left_behind(threads: BlockingThreads, hanging: Hanging) -> None:
    call = asyncio.ensure_future(threads.run(hanging))
    await hanging.started()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


def test_as_many_functions_run_as_there_are_places() -> None:
    running: list[int] = []
    most: list[int] = []
    lock = threading.Lock()

    def count() -> int:
        with lock:
            running.append(1)
            most.append(len(running))
        threading.Event().wait(0.001)
        with lock:
            running.pop()
        return 1

    async def test(threads: BlockingThreads, _: Hanging) -> None:
        assert await asyncio.gather(*(threads.run(count) for _ in range(50))) == [1] * 50

    run(3, test)
    assert max(most) <= 3


def test_a_function_that_was_left_behind_gives_up_its_place() -> None:
    async def test(threads: BlockingThreads, hanging: Hanging) -> None:
        for _ in range(3):
            await left_behind(threads, hanging)
        assert await threads.run(lambda: "quick") == "quick"

    run(1, test)


def test_errors_are_raised_and_the_place_becomes_free() -> None:
    def fail() -> None:
        raise KeyError("missing")

    def end() -> None:
        raise StopIteration

    async def test(threads: BlockingThreads, _: Hanging) -> None:
        with pytest.raises(KeyError):
            await threads.run(fail)
        with pytest.raises(RuntimeError, match="raised StopIteration"):
            await threads.run(end)
        assert await threads.run(lambda: 1) == 1

    run(1, test)


def test_a_function_that_was_canceled_while_it_waited_does_not_run() -> None:
    ran: list[str] = []

    async def test(threads: BlockingThreads, hanging: Hanging) -> None:
        first = asyncio.ensure_future(threads.run(hanging))
        await hanging.started()
        second = asyncio.ensure_future(threads.run(lambda: ran.append("second")))
        third = asyncio.ensure_future(threads.run(lambda: ran.append("third")))
        await asyncio.sleep(0)
        second.cancel()
        hanging.release.set()
        assert await first == "released"
        await third

    run(1, test)
    assert ran == ["third"]


def test_what_is_left_behind_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking_threads, "MOST_LEFT_BEHIND", 2)

    async def test(threads: BlockingThreads, hanging: Hanging) -> None:
        for _ in range(2):
            await left_behind(threads, hanging)
        last = asyncio.ensure_future(threads.run(hanging))
        await hanging.started()
        waiting = asyncio.ensure_future(threads.run(lambda: "never"))
        await asyncio.sleep(0)
        last.cancel()
        for call in (waiting, threads.run(lambda: "never")):
            with pytest.raises(ResourceFailed, match="no thread is free") as raised:
                await call
            assert "3 functions still run" in raised.value.cause
        hanging.release.set()
        while True:
            try:
                assert await threads.run(lambda: "again") == "again"
                return
            except ResourceFailed:
                await asyncio.sleep(0.01)

    run(1, test)


def test_shutting_down_cancels_what_has_not_started() -> None:
    async def test(threads: BlockingThreads, hanging: Hanging) -> None:
        running = asyncio.ensure_future(threads.run(hanging))
        await hanging.started()
        waiting = asyncio.ensure_future(threads.run(lambda: "never"))
        await asyncio.sleep(0)
        threads.shutdown()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        hanging.release.set()
        assert await running == "released"

    run(1, test)
