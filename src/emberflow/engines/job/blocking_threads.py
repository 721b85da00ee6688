"""The threads on which blocking functions run.

A thread cannot be stopped. A function whose caller has given up, after a timeout for example, therefore goes on, but gives up
its place: another thread takes over, so that functions that hang do not keep all others waiting.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from emberflow.errors import ResourceFailed

Function = Callable[[], Any]

MOST_LEFT_BEHIND = 256
"""Threads beyond the places; afterwards a function keeps its place until it ends."""


class _Work:
    __slots__ = ("ended", "function", "future", "keeps_place", "left_behind")

    def __init__(self, function: Function) -> None:
        self.function = function
        self.future: Future[Any] = Future()
        self.left_behind = False
        self.keeps_place = True
        self.ended = False

    def run(self) -> None:
        try:
            result = _for_a_future(self.function)
        except BaseException as error:
            self.future.set_exception(error)
        else:
            self.future.set_result(result)


class BlockingThreads:
    """Runs as many functions at a time as there are places; the others wait, in order. Used from any event loop."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._free = places
        self._beyond = 0
        """Functions that were left behind and gave up their places."""
        self._stuck = 0
        """Those that kept them."""
        self._waiting: deque[_Work] = deque()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(places + MOST_LEFT_BEHIND, thread_name_prefix="emberflow-blocking")

    async def run(self, function: Function) -> Any:
        """The function's result. Raises ResourceFailed if no place will become free."""
        work = _Work(function)
        with self._lock:
            if self._stuck >= self._places:
                raise self._no_place()
            self._waiting.append(work)
            self._start_waiting()
        try:
            return await asyncio.wrap_future(work.future)
        except asyncio.CancelledError:
            self._leave_behind(work)
            raise

    def shutdown(self) -> None:
        """Functions that have not started are canceled."""
        with self._lock:
            for work in self._waiting:
                work.future.cancel()
            self._waiting.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _start_waiting(self) -> None:
        while (work := self._next()) is not None:
            self._threads.submit(self._run, work)

    def _next(self) -> _Work | None:
        """The next function, with a place."""
        while self._free and self._waiting:
            work = self._waiting.popleft()
            if work.future.set_running_or_notify_cancel():
                self._free -= 1
                return work
        return None

    def _run(self, work: _Work) -> None:
        running: _Work | None = work
        while running is not None:
            running.run()
            running = self._ended(running)

    def _ended(self, work: _Work) -> _Work | None:
        """The function that this thread runs next."""
        with self._lock:
            work.ended = True
            if work.keeps_place:
                self._free += 1
                self._stuck -= work.left_behind
            else:
                self._beyond -= 1
            return self._next()

    def _leave_behind(self, work: _Work) -> None:
        if work.future.cancel():
            return
        with self._lock:
            if work.ended:
                return
            work.left_behind = True
            if self._beyond < MOST_LEFT_BEHIND:
                work.keeps_place = False
                self._beyond += 1
                self._free += 1
                self._start_waiting()
                return
            self._stuck += 1
            if self._stuck >= self._places:
                while self._waiting:
                    found = self._waiting.popleft().future
                    if found.set_running_or_notify_cancel():
                        found.set_exception(self._no_place())

    def _no_place(self) -> ResourceFailed:
        return ResourceFailed(
            "no thread is free for a blocking function",
            cause=f"{self._stuck + self._beyond:,} functions still run whose callers have given up, e.g. after a timeout; a "
            "thread cannot be stopped",
            way_out="give what these functions wait for a timeout of its own, so that they end",
        )


def _for_a_future(function: Function) -> Any:
    """A future cannot hold a StopIteration, and a GeneratorExit closes the coroutine that awaits it: the caller would wait
    forever. Coroutines turn the first into a RuntimeError as well."""
    try:
        return function()
    except (StopIteration, GeneratorExit) as error:
        raise RuntimeError(f"the function raised {type(error).__name__}") from error
