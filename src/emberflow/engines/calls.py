"""Running operators' asynchronous calls. Both engines use these; ends of calls are handed over on one thread only."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

Call = Callable[[], Any]
Done = Callable[[Any, BaseException | None], None]


class _Limits:
    """One semaphore per step: at most `capacity` of its calls run at once."""

    def __init__(self) -> None:
        self._semaphores: dict[tuple[str, int], asyncio.Semaphore] = {}

    async def run(self, limiter: str, capacity: int, call: Call) -> tuple[Any, BaseException | None]:
        semaphore = self._semaphores.get((limiter, capacity))
        if semaphore is None:
            semaphore = self._semaphores[(limiter, capacity)] = asyncio.Semaphore(capacity)
        async with semaphore:
            try:
                return await call(), None
            except Exception as error:
                return None, error
            except asyncio.CancelledError as error:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise
                # Something that the call awaited was cancelled, not the call itself: a failure like any other.
                return None, error
            except (SystemExit, KeyboardInterrupt) as error:
                # Left to itself it would end the event loop that all other calls are on.
                return None, error


class Threads:
    """A pool for blocking functions, made when the first one comes."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    async def in_thread(self, function: Call, threads: int) -> Any:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(threads, thread_name_prefix="emberflow-blocking")
        return await asyncio.get_running_loop().run_in_executor(self._pool, function)

    def shutdown(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


class LoopCalls(Threads):
    """Calls on the running event loop of the caller's own thread (local engine)."""

    def __init__(self, failed: Callable[[BaseException], None]) -> None:
        super().__init__()
        self._limits = _Limits()
        self._failed = failed
        self._running: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()

    def start(self, limiter: str, capacity: int, call: Call, done: Done) -> None:
        task = asyncio.get_running_loop().create_task(self._run(limiter, capacity, call, done))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self, limiter: str, capacity: int, call: Call, done: Done) -> None:
        result, error = await self._limits.run(limiter, capacity, call)
        try:
            done(result, error)
        except BaseException as failure:
            self._failed(failure)
        self._ended.set()

    async def wait_while(self, busy: Callable[[], bool]) -> None:
        """Lets calls end until `busy()` is false."""
        while busy():
            self._ended.clear()
            await self._ended.wait()

    @property
    def in_flight(self) -> int:
        return len(self._running)

    async def cancel(self) -> None:
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self.shutdown()


class ThreadCalls(Threads):
    """Calls on an event loop in a thread of its own; their ends wait in a mailbox until the caller takes them."""

    def __init__(self) -> None:
        super().__init__()
        self._limits = _Limits()
        self._mailbox: queue.SimpleQueue[tuple[Done, Any, BaseException | None]] = queue.SimpleQueue()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True, name="emberflow-calls").start()

    def start(self, limiter: str, capacity: int, call: Call, done: Done) -> None:
        asyncio.run_coroutine_threadsafe(self._run(limiter, capacity, call, done), self._loop)

    async def _run(self, limiter: str, capacity: int, call: Call, done: Done) -> None:
        result, error = await self._limits.run(limiter, capacity, call)
        self._mailbox.put((done, result, error))

    def wait_while(self, busy: Callable[[], bool]) -> None:
        """Hands over ends of calls until `busy()` is false."""
        while busy():
            done, result, error = self._mailbox.get()
            done(result, error)
