"""A running local job: builds the tasks, runs them on an event loop in a thread of its own, checkpoints them.

A checkpoint is taken at rest: sources pause, queues and calls run empty, then everything is written at once. In one
process that costs milliseconds and needs no barriers.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

from emberflow.engines.call_log import CALLS_FOLDER, FileCallLog
from emberflow.engines.calls import LoopCalls
from emberflow.engines.job_thread import JobThread
from emberflow.engines.local.builder import JobTasks, TaskBuilder
from emberflow.engines.local.checkpoints import Checkpoint, CheckpointStore
from emberflow.engines.manifest import Manifest
from emberflow.errors import EmberflowError, EngineFailed, describe_cause
from emberflow.event_time.clock import Clock, SystemClock
from emberflow.plan.job import JobConfig, JobStatus
from emberflow.plan.job_graph import JobGraph

_DEFAULT_INTERVAL_MS = 1_000


class LocalJob(JobThread):
    def __init__(
        self, graph: JobGraph, config: JobConfig, manifest: Manifest, store: CheckpointStore
    ) -> None:
        super().__init__(graph.name, manifest.job_id, config)
        self._graph = graph
        self._store = store
        self._clock: Clock = config.options.get("clock") or SystemClock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._epoch = 0
        self._log: FileCallLog | None = None
        self.launch()

    def cancel(self) -> None:
        self.canceled.set()
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None:
            # A loop that has ended in between has nothing left to stop.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(stop.set)
        self.thread.join()

    def work(self) -> JobStatus:
        return JobStatus.CANCELED if asyncio.run(self._main()) else JobStatus.FINISHED

    def explain_failure(self, error: BaseException) -> EmberflowError:
        if isinstance(error, EmberflowError):
            return error
        failed = EngineFailed(
            "the local engine failed",
            cause=describe_cause(error),
            way_out="--traceback shows the Python stack",
        )
        failed.__cause__ = error
        return failed

    async def _main(self) -> bool:
        """True if the job was canceled before its end."""
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        if self.canceled.is_set():
            return True
        failure: asyncio.Future[None] = self._loop.create_future()
        calls = LoopCalls(lambda error: None if failure.done() else failure.set_exception(error))
        restored = self._store.load()
        if restored is not None:
            self._epoch = restored.epoch + 1
        if self.config.checkpoint_dir is not None:
            self._log = FileCallLog(Path(self.config.checkpoint_dir) / CALLS_FOLDER)
            self._log.resume(self._epoch)
        tasks = TaskBuilder(
            self._graph,
            self.config,
            self.job_id,
            self._clock,
            calls,
            self._log,
            self.metrics,
            self._store,
            restored,
        ).build()
        if restored is not None:
            tasks.set_epoch(self._epoch)
            self._commit_sinks(tasks, restored)
        subscribe = getattr(self._clock, "on_advance", None)
        if subscribe is not None:
            subscribe(lambda: self._loop and self._loop.call_soon_threadsafe(tasks.wake))
        try:
            canceled = await self._work(tasks, calls, failure)
            if not canceled:
                await self._rest(tasks, calls, failure)
                self._checkpoint(tasks)
            return canceled
        except BaseException:
            tasks.abort()
            raise
        finally:
            # Calls first: they may still use what the functions' close() ends.
            await calls.cancel()
            try:
                tasks.close()
            finally:
                if self._log is not None:
                    self._log.close()

    @property
    def _checkpoints(self) -> bool:
        return self.config.checkpoint_dir is not None or self.config.checkpoint_interval_ms is not None

    async def _work(self, tasks: JobTasks, calls: LoopCalls, failure: asyncio.Future[None]) -> bool:
        """Runs everything to its end, or until the job is canceled."""
        assert self._stop is not None
        running = [asyncio.ensure_future(task.run()) for task in tasks.all]
        stop = asyncio.ensure_future(self._stop.wait())
        every_s = (self.config.checkpoint_interval_ms or _DEFAULT_INTERVAL_MS) / 1000
        try:
            while True:
                pending = [item for item in running if not item.done()]
                if not pending:
                    return False
                timeout_s = every_s if self._checkpoints else None
                done, _ = await asyncio.wait(
                    [*pending, stop, failure], timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
                )
                for item in done:
                    if item is not stop:
                        item.result()
                if stop.done():
                    if self._checkpoints:
                        # While the tasks still run: what is on its way belongs to the last checkpoint.
                        tasks.gate.clear()
                        await self._rest(tasks, calls, failure)
                        self._checkpoint(tasks)
                    return True
                if not done and any(not item.done() for item in running):
                    tasks.gate.clear()
                    await self._rest(tasks, calls, failure)
                    self._checkpoint(tasks)
                    tasks.gate.set()
        finally:
            for item in [*running, stop]:
                item.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            await asyncio.gather(stop, return_exceptions=True)

    async def _rest(self, tasks: JobTasks, calls: LoopCalls, failure: asyncio.Future[None]) -> None:
        """Waits until nothing is on its way any more but what keyed state can hold."""
        calls.nudge()
        while not tasks.at_rest or tasks.calls_to_drain:
            if failure.done():
                failure.result()
            for item in tasks.failed():
                raise item
            await asyncio.sleep(0.002 if tasks.waits_for_calls else 0)
        if failure.done():
            failure.result()

    def _checkpoint(self, tasks: JobTasks) -> None:
        for task in tasks.all:
            task.stage.sync()
        with tasks.saving():
            checkpoint = Checkpoint(
                epoch=self._epoch,
                sources=tasks.source_states(),
                scopes=tasks.saved_scopes(),
                prepared=tasks.prepare_sinks(),
            )
            # Durable first, then visible: a crash in between commits the same parts again after the restart.
            self._store.save(checkpoint, tasks.scopes())
        self._commit_sinks(tasks, checkpoint)
        self._epoch += 1
        tasks.set_epoch(self._epoch)
        if self._log is not None:
            live = tuple(tasks.live_calls())
            self._log.begin(self._epoch, lambda call_id: call_id.startswith(live))

    def _commit_sinks(self, tasks: JobTasks, checkpoint: Checkpoint) -> None:
        for uid, sinks in tasks.sinks_by_uid().items():
            parts: list[Any] = checkpoint.prepared.get(uid, [])
            if parts:
                sinks[0].commit(checkpoint.epoch, parts)
            for sink in sinks:
                sink.deliver_held()
