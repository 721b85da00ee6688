"""Brings the tasks of a local job to rest: nothing is in flight except what keyed state can hold.

Checkpoints are taken there. The caller has paused the sources, or they have ended.
"""

from __future__ import annotations

import asyncio

from emberflow.engines.job.call_service import LoopCalls
from emberflow.engines.local.task_builder import JobTasks


class RestPoint:
    def __init__(self, tasks: JobTasks, calls: LoopCalls, failure: asyncio.Future[None]) -> None:
        """`failure` is set when a call fails that no task waits for."""
        self._tasks = tasks
        self._calls = calls
        self._failure = failure

    async def reach(self) -> None:
        """Returns at rest; raises the failure of a task or a call."""
        tasks, failure = self._tasks, self._failure
        self._calls.nudge()
        while not tasks.at_rest or tasks.calls_to_drain:
            if failure.done():
                failure.result()
            for item in tasks.failed():
                raise item
            await asyncio.sleep(0.002 if tasks.waits_for_calls else 0)
        if failure.done():
            failure.result()

    async def reach_within(self, limit_s: float | None) -> bool:
        """Whether the job came to rest in time; None means no limit."""
        limit = asyncio.timeout(limit_s)
        try:
            async with limit:
                await self.reach()
        except TimeoutError:
            if not limit.expired():
                raise
            return False
        return True

    async def reach_before(self, stop: asyncio.Event) -> bool:
        """Whether the job came to rest before it was canceled."""
        resting, stopped = asyncio.ensure_future(self.reach()), asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait([resting, stopped], return_when=asyncio.FIRST_COMPLETED)
            if resting.done():
                resting.result()
            return resting.done()
        finally:
            for item in (resting, stopped):
                item.cancel()
            await asyncio.gather(resting, stopped, return_exceptions=True)
