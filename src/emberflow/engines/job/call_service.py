"""Runs operators' asynchronous calls, for both engines; completions are delivered on one thread only."""

from __future__ import annotations

import asyncio
import functools
import os
import queue
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from emberflow.engines.job.blocking_threads import BlockingThreads
from emberflow.operators.admission.gate import while_blocked

Call = Callable[[], Any]
Done = Callable[[Any, BaseException | None], None]


class _Limits:
    """One semaphore per step: at most `capacity` of its calls run concurrently."""

    def __init__(self) -> None:
        self._semaphores: dict[tuple[str, int], asyncio.Semaphore] = {}
        self.stopping = False

    async def run(self, limiter: str, capacity: int, call: Call) -> tuple[Any, BaseException | None]:
        semaphore = self._semaphores.get((limiter, capacity))
        if semaphore is None:
            semaphore = self._semaphores[(limiter, capacity)] = asyncio.Semaphore(capacity)
        async with semaphore:
            task = asyncio.current_task()
            try:
                return await call(), None
            except Exception as error:
                return None, error
            except asyncio.CancelledError as error:
                if self.stopping:
                    raise
                # Canceled by the call's own code, or by something it awaited: a failure like any other.
                while task is not None and task.cancelling():
                    task.uncancel()
                return None, error
            except GeneratorExit as error:
                if not _runs(task):
                    raise  # The coroutine is being closed: its loop has ended.
                return None, error
            except BaseException as error:
                # If raised, it would end the event loop of all other calls (SystemExit, KeyboardInterrupt), or only this
                # task, whose completion would never be delivered (any other, such as a panic of a Rust extension).
                return None, error


def _runs(task: asyncio.Task[Any] | None) -> bool:
    try:
        return asyncio.current_task() is task
    except RuntimeError:  # No loop is running.
        return False


class Threads:
    """Thread pools for blocking functions, one per pool size, created on first use."""

    def __init__(self) -> None:
        self._pools: dict[int, BlockingThreads] = {}
        self._loop_of_calls: asyncio.AbstractEventLoop | None = None
        """Once it is known."""

    def wait_for(self, call: Call) -> Any:
        """Runs a coroutine to its end while the calling thread waits: on the loop of the calls, or, if it is that loop's thread
        that waits, on another one. There it passes the gates of models: what it would wait for could not continue."""
        loop = None if _is_loop_thread() else self._loop_of_calls
        if loop is None:
            return asyncio.run_coroutine_threadsafe(_past_the_gates(call), _other_loop()).result()
        return asyncio.run_coroutine_threadsafe(call(), loop).result()

    async def in_thread(self, function: Call, threads: int) -> Any:
        self._loop_of_calls = asyncio.get_running_loop()
        pool = self._pools.get(threads)
        if pool is None:
            pool = self._pools[threads] = BlockingThreads(threads)
        return await pool.run(function)

    def shutdown(self) -> None:
        for pool in self._pools.values():
            pool.shutdown()


def _is_loop_thread() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _past_the_gates(call: Call) -> Any:
    while_blocked.set(True)
    return await call()


@functools.cache
def _other_loop() -> asyncio.AbstractEventLoop:
    """For coroutines that a plain function on a loop's own thread waits for."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True, name="emberflow-waited-for").start()
    return loop


os.register_at_fork(after_in_child=_other_loop.cache_clear)


class LoopCalls(Threads):
    """Calls on the running event loop of the caller's thread (local engine)."""

    def __init__(self, failed: Callable[[BaseException], None]) -> None:
        super().__init__()
        self._limits = _Limits()
        self._failed = failed
        self._running: dict[asyncio.Task[None], str] = {}
        self._ended = asyncio.Event()

    def start(self, limiter: str, capacity: int, call: Call, done: Done) -> None:
        task = asyncio.get_running_loop().create_task(self._run(limiter, capacity, call, done))
        self._running[task] = limiter
        task.add_done_callback(self._running.pop)

    async def _run(self, limiter: str, capacity: int, call: Call, done: Done) -> None:
        result, error = await self._limits.run(limiter, capacity, call)
        if self._limits.stopping:
            # It ended in spite of being canceled; its result is no longer needed.
            return
        try:
            done(result, error)
        except BaseException as failure:
            self._failed(failure)
        self._ended.set()

    async def wait_while(self, busy: Callable[[], bool]) -> None:
        """Processes completed calls until `busy()` is false."""
        while busy():
            self._ended.clear()
            await self._ended.wait()

    @property
    def in_flight(self) -> int:
        return len(self._running)

    def nudge(self) -> None:
        """Makes `wait_while` check its condition again."""
        self._ended.set()

    @property
    def running_for(self) -> set[str]:
        """The limiters of the calls in flight. Thread-safe."""
        return set(self._running.copy().values())

    async def cancel(self, patience_s: float) -> None:
        """Cancels all calls; stops waiting for those that have not ended after `patience_s`."""
        self._limits.stopping = True
        running = list(self._running)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=patience_s)
        self.shutdown()


class ThreadCalls(Threads):
    """Calls on an event loop in a separate thread; completions are queued until the caller processes them."""

    def __init__(self) -> None:
        super().__init__()
        self._limits = _Limits()
        self._mailbox: queue.SimpleQueue[tuple[Done, Any, BaseException | None]] = queue.SimpleQueue()
        self._running: set[Any] = set()
        self._loop = self._loop_of_calls = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True, name="emberflow-calls").start()

    def start(self, limiter: str, capacity: int, call: Call, done: Done) -> None:
        future = asyncio.run_coroutine_threadsafe(self._run(limiter, capacity, call, done), self._loop)
        # The loop holds only weak references to tasks: a waiting task could be garbage-collected.
        self._running.add(future)
        future.add_done_callback(self._running.discard)

    async def _run(self, limiter: str, capacity: int, call: Call, done: Done) -> None:
        result, error = await self._limits.run(limiter, capacity, call)
        self._mailbox.put((done, result, error))

    def wait_while(self, busy: Callable[[], bool], deadline_s: float | None = None) -> None:
        """Delivers completions until `busy()` is false or `time.monotonic()` has reached the deadline."""
        while busy():
            rest_s = None if deadline_s is None else max(0.0, deadline_s - time.monotonic())
            try:
                done, result, error = self._mailbox.get(timeout=rest_s)
            except queue.Empty:
                return
            done(result, error)

    def hand_over(self) -> None:
        """Delivers the completions that are queued."""
        self.wait_while(lambda: True, 0.0)

    @contextmanager
    def at_rest(self) -> Generator[None]:
        """While no coroutine runs: data that calls read and write can be accessed from this thread."""
        stopped, go_on = threading.Event(), threading.Event()

        def stop() -> None:
            stopped.set()
            go_on.wait()

        self._loop.call_soon_threadsafe(stop)
        stopped.wait()
        try:
            yield
        finally:
            go_on.set()


class CallsOfJob:
    """The calls of one of several jobs in a process: steps of the same name do not share limits."""

    def __init__(self, calls: ThreadCalls, job_id: str) -> None:
        self._calls = calls
        self._job_id = job_id

    def start(self, limiter: str, capacity: int, call: Call, done: Done) -> None:
        self._calls.start(f"{self._job_id}/{limiter}", capacity, call, done)

    def wait_for(self, call: Call) -> Any:
        return self._calls.wait_for(call)

    async def in_thread(self, function: Call, threads: int) -> Any:
        return await self._calls.in_thread(function, threads)
