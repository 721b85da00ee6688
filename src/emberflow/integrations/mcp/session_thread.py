"""The thread on which all MCP sessions of this process live.

Sessions outlive the calls that use them, and calls come from anywhere: the event loop of a job, threads of blocking actions,
a program without any loop. A session must be entered and left by one task, and closing a resource must be able to wait for
the end of a server's process. Therefore sessions have an event loop of their own, and calls are passed to it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loops: dict[int, asyncio.AbstractEventLoop] = {}
"""At most one, by the id of its process: a thread does not survive a fork."""


def _loop() -> asyncio.AbstractEventLoop:
    with _lock:
        found = _loops.get(os.getpid())
        if found is None:
            _loops.clear()
            found = _loops[os.getpid()] = asyncio.new_event_loop()
            threading.Thread(target=found.run_forever, daemon=True, name="emberflow-mcp").start()
        return found


def submit(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Starts a coroutine on the thread."""
    return asyncio.run_coroutine_threadsafe(work, _loop())


async def on_session_thread(work: Coroutine[Any, Any, T]) -> T:
    """Awaits a coroutine that runs on the thread, and is canceled with the caller."""
    return await asyncio.wrap_future(submit(work))


def blocking(work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
    """Waits for a coroutine that runs on the thread. Raises TimeoutError, and cancels it then."""
    future = submit(work)
    try:
        return future.result(timeout_s)
    except BaseException:
        future.cancel()
        raise
