"""What the torture harness found, each with the smallest program that shows it."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from typing import Any

import pytest

from emberflow.engines.calls import ThreadCalls


@pytest.mark.xfail(reason="ThreadCalls drops its futures, and asyncio holds tasks weakly")
def test_a_waiting_call_is_not_garbage_collected() -> None:
    """A call may wait for something that only it knows, as the reader of a connection is."""
    calls = ThreadCalls()
    begun = threading.Event()
    waits_for: list[weakref.ref[asyncio.Future[int]]] = []
    ended: list[Any] = []

    async def wait() -> int:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        waits_for.append(weakref.ref(future))
        asyncio.get_running_loop().call_soon(begun.set)
        return await future

    calls.start("step", 1, wait, lambda result, error: ended.append((result, error)))
    assert begun.wait(30)
    for _ in range(3):
        gc.collect()
    future = waits_for[0]()
    assert future is not None, "the call was collected while it waited"
    future.get_loop().call_soon_threadsafe(future.set_result, 7)
    calls.wait_while(lambda: not ended)
    assert ended == [(7, None)]
