"""A running local job: builds the tasks, runs them on an event loop in its own thread, and checkpoints them.

A checkpoint is taken at rest: sources pause, queues and calls drain, then everything is written at once. In one process
that takes milliseconds and needs no barriers.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import time
from pathlib import Path
from typing import Any

from emberflow.connectors.sink import Committed
from emberflow.durable.location import CallStoreLocation, call_store_option
from emberflow.durable.log import StoredCallLog
from emberflow.engines.job.call_service import LoopCalls
from emberflow.engines.job.checkpoint_history import CheckpointHistory, CheckpointRecord, Stopwatch
from emberflow.engines.job.garbage_collection import rare_collections
from emberflow.engines.job.manifest import Manifest
from emberflow.engines.job.ownership import Ownership
from emberflow.engines.job.restart import Restarts
from emberflow.engines.job.savepoint_calls import place_calls
from emberflow.engines.job.savepoint_start import commit_prepared
from emberflow.engines.job.sink_ownership import (
    Mark,
    StateEpochs,
    accepts_sinks,
    matched_marks,
    moved_on,
    newest_start,
    take_over_sinks,
)
from emberflow.engines.job.thread import JobThread
from emberflow.engines.local.checkpointing.checkpoint_pace import CheckpointPace
from emberflow.engines.local.checkpointing.checkpoints import Checkpoint, CheckpointStore
from emberflow.engines.local.hanging import run_to_its_end, step_of_thread, steps_with_calls
from emberflow.engines.local.rest_point import RestPoint
from emberflow.engines.local.savepoints import (
    SavepointRequest,
    SavepointRequests,
    begin_from,
    live_entries,
    write_savepoint,
)
from emberflow.engines.local.task_builder import JobTasks, TaskBuilder
from emberflow.errors import CheckpointUnusable, EmberflowError, EngineFailed, describe_cause
from emberflow.event_time.clock import Clock, SystemClock
from emberflow.events.fence import Fence
from emberflow.plan.graphs.job_graph import JobGraph
from emberflow.plan.job_contract import JobConfig, JobStatus
from emberflow.savepoints.reader import SavepointReader
from emberflow.savepoints.restore import SavepointStart
from emberflow.savepoints.wiring import Wiring

_log = logging.getLogger("emberflow")
_PATIENCE_S = 5.0
"""How long canceled calls may take to end."""


class LocalJob(JobThread):
    def __init__(
        self,
        graph: JobGraph,
        config: JobConfig,
        manifest: Manifest,
        store: CheckpointStore,
        wiring: Wiring,
        ownership: Ownership | None,
        start: SavepointStart | None = None,
        own_directory: str | None = None,
    ) -> None:
        super().__init__(graph, manifest.job_id, config)
        self._store = store
        self._wiring = wiring
        self._start = start
        self._ownership = ownership
        self._fence = Fence()
        self._marks: dict[str, Mark] = {}
        self._own_directory = own_directory
        self.can_continue = config.checkpoint_dir is not None and own_directory is None
        self._requests = SavepointRequests()
        self._history = CheckpointHistory(config.checkpoint_dir)
        self._clock: Clock = config.options.get("clock") or SystemClock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._epoch = 0
        self._calls: LoopCalls | None = None
        self._log: StoredCallLog | None = None
        self.launch()

    def ask_to_stop(self) -> None:
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None:
            # A loop that has ended in the meantime has nothing left to stop.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(stop.set)

    def where_it_hangs(self) -> str:
        calls = self._calls.running_for if self._calls is not None else set[str]()
        return (
            step_of_thread(self.thread.ident)
            or steps_with_calls(self.graph, calls)
            or super().where_it_hangs()
        )

    def savepoint(self, path: str) -> str:
        return self._requests.ask(path, stops=False)

    def stop_with_savepoint(self, path: str) -> str:
        made = self._requests.ask(path, stops=True)
        self.thread.join()
        return made

    def work(self) -> JobStatus:
        restarts = Restarts(self.config.restart)
        try:
            while True:
                try:
                    with rare_collections():
                        canceled = run_to_its_end(self._main(), _PATIENCE_S)
                    return JobStatus.CANCELED if canceled else JobStatus.FINISHED
                except Exception as error:
                    delay_ms = None if self.canceled.is_set() else restarts.delay_ms(error)
                    if delay_ms is None:
                        raise
                    self.restarting(error, delay_ms)
                    if self.canceled.wait(delay_ms / 1000):
                        return JobStatus.CANCELED
        finally:
            self._requests.close()

    def explain_failure(self, error: BaseException) -> EmberflowError:
        if isinstance(error, EmberflowError):
            return self._fence.explained(error)
        failed = EngineFailed(
            "the local engine failed",
            cause=describe_cause(error),
            way_out="--traceback shows the Python stack",
        )
        failed.__cause__ = error
        return self._fence.explained(failed)

    def clean_up(self) -> None:
        self._store.close()
        if self._ownership is not None:
            self._ownership.release()
        if self._own_directory is not None:
            shutil.rmtree(self._own_directory, ignore_errors=True)

    @property
    def _calls_place(self) -> CallStoreLocation:
        home = Path(self.config.checkpoint_dir or "")
        return CallStoreLocation.in_directory(home, self.job_id, call_store_option(self.config))

    async def _main(self) -> bool:
        """True if the job was canceled before it finished."""
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        if self.canceled.is_set():
            return True
        failure: asyncio.Future[None] = self._loop.create_future()
        self._calls = calls = LoopCalls(
            lambda error: None if failure.done() else failure.set_exception(error)
        )
        tasks = self._open(calls)
        rest = RestPoint(tasks, calls, failure)
        try:
            canceled = await self._work(tasks, rest, failure)
            if not canceled:
                canceled = not await rest.reach_before(self._stop)
                if not canceled or await self._rests_at_last(rest):
                    self._checkpoint(tasks)
            return canceled
        except BaseException:
            tasks.abort()
            raise
        finally:
            # Calls first: they may still use resources that the functions' close() releases.
            await calls.cancel(_PATIENCE_S)
            left = steps_with_calls(self.graph, calls.running_for)
            if left:
                _log.warning("%s; they are left behind", left)
            try:
                tasks.close()
            finally:
                if self._log is not None:
                    self._log.close()

    def _open(self, calls: LoopCalls) -> JobTasks:
        """The tasks as restored from the latest checkpoint or a savepoint; commits the outputs that it had prepared."""
        committed: dict[str, Committed] = {}
        if self._ownership is not None:
            self._fence = self._ownership.next_epoch(newest_start(self.graph, self.job_id))
            # Before anything is loaded: from now on, a replaced owner cannot save anything.
            self._store.own(self._fence)
            committed = take_over_sinks(self.graph, self.job_id, self._fence)
        restored = self._store.load()
        start = self._start if restored is None else None
        if start is not None:
            restored = begin_from(start, self._store)
            if self.config.checkpoint_dir is not None:
                place_calls(start, self._calls_place)
        self._check_sinks(committed, restored)
        self._epoch = 0 if restored is None else restored.epoch + 1
        if self.config.checkpoint_dir is not None:
            self._log = StoredCallLog(self._calls_place.open_calls(), fence=self._fence)
            self._log.begin(self._epoch, attempt=self._fence.epoch)
        tasks = TaskBuilder(
            self.graph,
            self.config,
            self.job_id,
            self._clock,
            calls,
            self._log,
            self.metrics,
            self._store,
            restored,
            start,
            self._fence,
        ).build()
        tasks.interruptible(self._check_canceled)
        if start is not None:
            commit_prepared(start, self.graph)
        if restored is not None:
            tasks.set_epoch(self._epoch)
            self._commit_sinks(tasks, restored)
        subscribe = getattr(self._clock, "on_advance", None)
        if subscribe is not None:
            subscribe(lambda: self._loop and self._loop.call_soon_threadsafe(tasks.wake))
        return tasks

    def _check_sinks(self, committed: dict[str, Committed], restored: Checkpoint | None) -> None:
        """Raises SinkMismatch unless the state matches the sinks. A checkpoint is saved before its output is committed, so
        sinks are at the same epoch or one behind."""
        state = StateEpochs(
            directory=str(self.config.checkpoint_dir),
            newest=-1 if restored is None else restored.epoch,
            repeated=None if restored is None else restored.epoch,
            marks={} if restored is None else restored.sinks,
        )
        accept = accepts_sinks(self.config)
        self._marks, given_up = matched_marks(self.graph, committed, state, accept=accept)
        if restored is not None:
            for uid in given_up:
                restored.prepared.pop(uid, None)

    @property
    def _checkpoints(self) -> bool:
        return self.config.checkpoint_dir is not None or self.config.checkpoint_interval_ms is not None

    async def _work(self, tasks: JobTasks, rest: RestPoint, failure: asyncio.Future[None]) -> bool:
        """Runs everything to completion, or until the job is canceled."""
        assert self._stop is not None
        running = [asyncio.ensure_future(task.run()) for task in tasks.all]
        stop = asyncio.ensure_future(self._stop.wait())
        wanted = self._requests.connect(asyncio.get_running_loop())
        asked = asyncio.ensure_future(wanted.wait())
        pace = CheckpointPace(self.config)
        try:
            while True:
                pending = [item for item in running if not item.done()]
                if not pending:
                    return False
                done, _ = await asyncio.wait(
                    [*pending, stop, failure, asked],
                    timeout=pace.wait_s() if self._checkpoints else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                for item in done:
                    if item is not stop and item is not asked:
                        if item.cancelled() and self.canceled.is_set():  # By `_check_canceled`.
                            return True
                        item.result()
                if stop.done():
                    # While the tasks still run: records in flight belong to the final checkpoint.
                    tasks.gate.clear()
                    if await self._rests_at_last(rest):
                        self._checkpoint(tasks)
                    return True
                if asked.done():
                    wanted.clear()
                    asked = asyncio.ensure_future(wanted.wait())
                elif done or all(item.done() for item in running):
                    continue
                tasks.gate.clear()
                if await self._rests_in_time(rest) and self._checkpoint(tasks):
                    return True
                tasks.gate.set()
                pace.ended()
        finally:
            for item in [*running, stop, asked]:
                item.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            await asyncio.gather(stop, asked, return_exceptions=True)

    def _check_canceled(self) -> None:
        if self.canceled.is_set() and not (self._checkpoints and time.monotonic() < self.grace_ends_s):
            raise asyncio.CancelledError  # There is no more time for a final checkpoint.

    async def _rests_at_last(self, rest: RestPoint) -> bool:
        """Whether a canceled job came to rest soon enough for a final checkpoint."""
        return self._checkpoints and await rest.reach_within(self.grace_s)

    async def _rests_in_time(self, rest: RestPoint) -> bool:
        """Whether the job came to rest within the checkpoint's timeout."""
        timeout_ms = self.config.checkpoint_timeout_ms
        watch = Stopwatch()
        if await rest.reach_within(None if timeout_ms is None else timeout_ms / 1000):
            return True
        why = f"aborted: the job did not come to rest within {timeout_ms} ms"
        for request in self._requests.take():
            request.done.set_exception(CheckpointUnusable(f"no savepoint was taken; {why}"))
        self._record("checkpoint", watch, 0, outcome=why)
        return False

    def _checkpoint(self, tasks: JobTasks) -> bool:
        """True if a savepoint was created that ends the job."""
        if self.abandoned.is_set():
            # The job may have been started again after it was canceled.
            raise EngineFailed("the job was canceled and abandoned; nothing more is committed")
        for task in tasks.all:
            task.stage.sync()
        watch = Stopwatch()
        stops = False
        with tasks.saving():
            prepared = tasks.prepare_sinks()
            marks = moved_on(self._marks, self._epoch, {uid for uid, parts in prepared.items() if parts})
            checkpoint = Checkpoint(
                epoch=self._epoch,
                sources=tasks.source_states(),
                scopes=tasks.saved_scopes(),
                prepared=prepared,
                sinks=marks,
            )
            if self._log is not None:
                # Actions that end from now on do not belong to it, even if it is found after a failure below.
                self._log.count_for(self._epoch + 1, attempt=self._fence.epoch)
            # Durable first, then visible: a crash in between commits the same parts again after the restart.
            size = self._store.save(checkpoint, tasks.scopes())
            for request in self._requests.take():
                stops = self._savepoint(request, checkpoint, tasks) or stops
            self._marks = marks
        self._commit_sinks(tasks, checkpoint)
        self._record("checkpoint", watch, size)
        self._epoch += 1
        tasks.set_epoch(self._epoch)
        if self._log is not None:
            self._log.begin(self._epoch, attempt=self._fence.epoch)
        return stops

    def _savepoint(self, request: SavepointRequest, checkpoint: Checkpoint, tasks: JobTasks) -> bool:
        """True if the job ends with it. A savepoint that cannot be written does not affect the job."""
        watch = Stopwatch()
        try:
            if self._log is not None:
                self._log.publish()
            write_savepoint(
                request.path,
                self._wiring,
                self.job_id,
                self.config.max_parallelism,
                checkpoint,
                live_entries(tasks.scopes(), self._store),
                self._store,
                None if self._log is None else self._calls_place,
            )
        except Exception as error:
            request.done.set_exception(self.explain_failure(error))
            return False
        self.can_continue = True
        self._record("savepoint", watch, SavepointReader(request.path).manifest.bytes, path=request.path)
        request.done.set_result(request.path)
        return request.stops

    def _record(
        self, kind: str, watch: Stopwatch, size: int, outcome: str = "complete", path: str = ""
    ) -> None:
        self._history.add(
            CheckpointRecord(
                id=self._epoch,
                kind=kind,
                started_ms=watch.started_ms,
                duration_ms=watch.duration_ms,
                bytes=size,
                outcome=outcome,
                path=path,
            )
        )

    def _commit_sinks(self, tasks: JobTasks, checkpoint: Checkpoint) -> None:
        for uid, sinks in tasks.sinks_by_uid().items():
            parts: list[Any] = checkpoint.prepared.get(uid, [])
            if parts:
                self._fence.check()
                sinks[0].commit(checkpoint.epoch, parts)
            for sink in sinks:
                sink.deliver_held()
