"""A running local job: builds the tasks, runs them on an event loop in a thread of its own, checkpoints them.

A checkpoint is taken at rest: sources pause, queues and calls run empty, then everything is written at once. In one
process that costs milliseconds and needs no barriers.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from emberflow.engines.calls import LoopCalls
from emberflow.engines.local.builder import JobTasks, build_tasks
from emberflow.engines.local.checkpoints import Checkpoint, CheckpointStore
from emberflow.engines.manifest import Manifest
from emberflow.engines.progress import ProgressLine
from emberflow.errors import EmberflowError, EngineFailed, describe_cause
from emberflow.event_time.clock import Clock, SystemClock
from emberflow.plan.job import JobConfig, JobMetrics, JobStatus
from emberflow.plan.job_graph import JobGraph

_DEFAULT_INTERVAL_MS = 1_000


class LocalJob:
    def __init__(
        self, graph: JobGraph, config: JobConfig, manifest: Manifest, store: CheckpointStore
    ) -> None:
        self.job_id = manifest.job_id
        self.metrics = JobMetrics()
        self._graph = graph
        self._config = config
        self._store = store
        self._clock: Clock = config.options.get("clock") or SystemClock()
        self._status = JobStatus.CREATED
        self._error: BaseException | None = None
        self._ended = threading.Event()
        self._cancel = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._epoch = 0
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"emberflow-job-{self.job_id}")
        self._progress = ProgressLine(graph.name, lambda: self.metrics, quiet=config.quiet)
        self._thread.start()

    # the handle

    def status(self) -> JobStatus:
        return self._status

    def wait(self, timeout_s: float | None = None) -> bool:
        if not self._ended.wait(timeout_s):
            return False
        self._thread.join()
        if self._error is not None:
            raise self._error
        return True

    def cancel(self) -> None:
        self._cancel.set()
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None and not self._ended.is_set():
            try:
                loop.call_soon_threadsafe(stop.set)
            except RuntimeError:
                pass  # the loop has ended in between
        self._thread.join()

    # the job's thread

    def _run(self) -> None:
        started = time.monotonic()
        self._status = JobStatus.RUNNING
        final = JobStatus.FAILED
        try:
            canceled = asyncio.run(self._main())
            final = JobStatus.CANCELED if canceled else JobStatus.FINISHED
        except EmberflowError as error:
            self._error = error
        except BaseException as error:
            self._error = EngineFailed(
                "the local engine failed",
                cause=describe_cause(error),
                way_out="--traceback shows the Python stack",
            )
            self._error.__cause__ = error
        finally:
            self.metrics.duration_ms = int((time.monotonic() - started) * 1000)
            self._progress.stop()
            self._status = final
            self._ended.set()

    async def _main(self) -> bool:
        """True if the job was canceled before its end."""
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        if self._cancel.is_set():
            return True
        failure: asyncio.Future[None] = self._loop.create_future()
        calls = LoopCalls(lambda error: None if failure.done() else failure.set_exception(error))
        restored = self._store.load()
        tasks = build_tasks(
            self._graph, self._config, self.job_id, self._clock, calls, self.metrics, self._store, restored
        )
        if restored is not None:
            self._epoch = restored.epoch + 1
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
            tasks.close()
            return canceled
        except BaseException:
            tasks.abort()
            raise
        finally:
            await calls.cancel()

    @property
    def _checkpoints(self) -> bool:
        return self._config.checkpoint_dir is not None or self._config.checkpoint_interval_ms is not None

    async def _work(self, tasks: JobTasks, calls: LoopCalls, failure: asyncio.Future[None]) -> bool:
        """Runs everything to its end, or until the job is canceled."""
        assert self._stop is not None
        running = [asyncio.ensure_future(task.run()) for task in tasks.all]
        stop = asyncio.ensure_future(self._stop.wait())
        every_s = (self._config.checkpoint_interval_ms or _DEFAULT_INTERVAL_MS) / 1000
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
        """Waits until nothing is on its way any more."""
        while not tasks.at_rest or calls.in_flight:
            if failure.done():
                failure.result()
            for item in tasks.failed():
                raise item
            await asyncio.sleep(0.002 if calls.in_flight else 0)
        if failure.done():
            failure.result()

    def _checkpoint(self, tasks: JobTasks) -> None:
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

    def _commit_sinks(self, tasks: JobTasks, checkpoint: Checkpoint) -> None:
        for uid, sinks in tasks.sinks_by_uid().items():
            parts: list[Any] = checkpoint.prepared.get(uid, [])
            if parts:
                sinks[0].commit(checkpoint.epoch, parts)
            for sink in sinks:
                sink.deliver_held()
