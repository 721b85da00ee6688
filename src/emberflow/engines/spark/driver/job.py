"""A running Spark job: starts the query, follows its progress, ends it when bounded input has ended, and restarts it
when a worker process was lost."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from emberflow.connectors.sink import Sink
from emberflow.engines.job.checkpoint_history import CheckpointHistory, CheckpointRecord, Stopwatch
from emberflow.engines.job.restart import Restarts
from emberflow.engines.job.savepoint_start import job_has_ended
from emberflow.engines.job.thread import JobThread
from emberflow.engines.spark.driver.batch_commit import ClientFolder
from emberflow.engines.spark.driver.damaged_files import spark_damage
from emberflow.engines.spark.driver.query_failures import is_worker_loss, translate_failure
from emberflow.engines.spark.driver.source_admission import held_back_ms
from emberflow.engines.spark.driver.source_offset import SourceOffset
from emberflow.engines.spark.driver.stopping import HoldFile, StopRequest, finish
from emberflow.engines.spark.driver.translate import OBSERVED_IN, OBSERVED_OUT
from emberflow.errors import EmberflowError, EngineFailed, NotSupported
from emberflow.events.batch import MIN_WATERMARK
from emberflow.events.fence import Fence
from emberflow.plan.graphs.job_graph import JobGraph
from emberflow.plan.job_contract import JobConfig, JobStatus
from emberflow.savepoints.reader import SavepointReader
from emberflow.savepoints.writer import check_free

_POLL_S = 0.05
_CONNECT_POLL_S = 0.2
_WORKER_LOSSES = 3
_FIRST_S = 60
"""How long a savepoint waits for a job's first micro-batch."""


class SparkJob(JobThread):
    """Follows `start()`'s query (streaming) or `start()`'s own work (batch) from its own thread."""

    def __init__(
        self,
        graph: JobGraph,
        job_id: str,
        config: JobConfig,
        sinks: list[Sink[Any]],
        client_dir: str,
        *,
        start: Callable[[], Any],
        interrupt: Callable[[], None],
        bounded: bool,
        batch: bool,
        connect: bool,
        done: Callable[[], None],
        home: Path,
        fence: Fence,
        write_savepoint: Callable[[str], object],
    ) -> None:
        super().__init__(graph, job_id, config)
        self._sinks = sinks
        self._client = ClientFolder(client_dir)
        self._client_dir = client_dir
        self._began_s = time.monotonic()
        self._worked_ms = 0.0
        self._start = start
        self._interrupt = interrupt
        self._bounded = bounded
        self._batch = batch
        self._poll_s = _CONNECT_POLL_S if connect else _POLL_S
        self._query: Any = None
        self._last_batch = -1
        self._sources_ended = False
        self.clean_up = done
        self._fence = fence
        self._home = home
        self._hold = HoldFile(home)
        self._write_savepoint = write_savepoint
        self._asked: StopRequest | None = None
        self._history = CheckpointHistory(config.checkpoint_dir)
        self._hold.remove()
        self._client.forget_earlier()
        self.launch()

    def ask_to_stop(self) -> None:
        # A batch job has no query to stop, and may not have started yet, so this is called repeatedly.
        if self._query is None:
            self._interrupt()

    def savepoint(self, path: str) -> str:
        self._check_streaming(path)
        watch = Stopwatch()
        self._write_savepoint(path)
        self._savepoint_taken(path, watch)
        return path

    def stop_with_savepoint(self, path: str) -> str:
        self._check_streaming(path)
        request = StopRequest(path)
        # Handled in the job's own thread, like everything else that may end the query.
        self._asked = request
        while not request.done.done() and self.thread.is_alive():
            self.thread.join(0.05)
        if not request.done.done():
            self._asked = None
            self.wait()
            raise job_has_ended()
        made = request.done.result()
        self.thread.join()
        return made

    def _check_streaming(self, path: str) -> None:
        check_free(Path(path))
        if self._batch:
            raise NotSupported(
                "a job in BATCH mode has no savepoints: it keeps no state",
                way_out="use STREAMING mode",
            )
        began = time.monotonic()
        while not self._hold.has_commit and self.thread.is_alive() and time.monotonic() - began < _FIRST_S:
            self.thread.join(0.05)
        if self.status().is_final:
            raise job_has_ended()

    def _savepoint_taken(self, path: str, watch: Stopwatch) -> None:
        self.can_continue = True
        manifest = SavepointReader(path).manifest
        self._history.add(
            CheckpointRecord(
                id=manifest.epoch,
                kind="savepoint",
                started_ms=watch.started_ms,
                duration_ms=watch.duration_ms,
                bytes=manifest.bytes,
                path=path,
            )
        )

    def work(self) -> JobStatus:
        try:
            self._run_query()
        except BaseException:
            if self.canceled.is_set():
                return JobStatus.CANCELED
            raise
        ended = self._sources_ended or not self.canceled.is_set()
        return JobStatus.FINISHED if ended else JobStatus.CANCELED

    def explain_failure(self, error: BaseException) -> EmberflowError:
        failed = translate_failure(error, show_traceback=self.config.show_traceback)
        if isinstance(failed, EngineFailed):
            # Spark's own errors about a damaged file seldom name it.
            failed = spark_damage(self._home / "spark") or failed
        failed = self._fence.explained(failed)
        failed.__cause__ = error if self.config.show_traceback else None
        return failed

    def _run_query(self) -> None:
        losses = 0
        restarts = Restarts(self.config.restart)
        while True:
            delay_ms: int | None = 0
            try:
                self._query = self._start()
                self._follow()
                return
            except _Held as held:
                self._stop_query()
                if self._end_with(held.request):
                    return
            except BaseException as error:
                self._deliver()
                losses += 1
                if self.config.restart is not None:
                    delay_ms = restarts.delay_ms(self.explain_failure(error))
                elif losses > _WORKER_LOSSES or not is_worker_loss(error):
                    delay_ms = None
                if delay_ms is None or self.canceled.is_set():
                    raise
                self.restarting(error, delay_ms)
            finally:
                self._stop_query()
                self._deliver()
            if self.canceled.wait(delay_ms / 1000):
                return

    def _end_with(self, request: StopRequest) -> bool:
        """Whether the savepoint was written; if not, the query starts again."""
        self._asked = None
        watch = Stopwatch()
        failure = finish(request, self._write_savepoint)
        self._hold.remove()
        if failure is not None:
            request.done.set_exception(failure)
            return False
        self._savepoint_taken(request.path, watch)
        self.canceled.set()
        request.done.set_result(request.path)
        return True

    def _follow(self) -> None:
        """Runs until the input has ended, the query has failed, or the job is canceled. A batch job has no query."""
        query = self._query
        if query is None:
            self._sources_ended = True
            return
        while not self.canceled.wait(self._poll_s):
            if self._asked is not None:
                self._hold.put()
                self._hold.wait_for_rest(query, self.canceled)
            active = query.isActive
            self._look(query)
            self._deliver()
            if not active:
                failure = query.exception()
                if failure is not None:
                    raise failure
                return
            if self._asked is not None and not self.canceled.is_set():
                raise _Held(self._asked)
            if self._bounded and self._sources_ended:
                return

    def _stop_query(self) -> None:
        query, self._query = self._query, None
        if query is not None and query.isActive:
            query.stop()

    def _look(self, query: Any) -> None:
        """Processes what Spark has reported about batches since the last call."""
        last = query.lastProgress
        if last is None:
            return
        batch = _field(last, "batchId")
        # While there is no input, Spark reports the batch that it would run next.
        ran = batch if _has_run(last) else batch - 1
        if ran <= self._last_batch:
            return
        # Fetching the whole list is slow, so do it only if a batch was missed.
        reports = [last] if ran == batch == self._last_batch + 1 else query.recentProgress
        for report in reports:
            batch = _field(report, "batchId")
            if batch > self._last_batch and _has_run(report):
                self._last_batch = batch
                self._count(report)
        self._last_batch = max(self._last_batch, ran)

    def _count(self, progress: Any) -> None:
        metrics = self.metrics
        metrics.batches += 1
        self._history.add(_record(progress))
        metrics.batch_ms.append(int(_field(progress, "durationMs").get("triggerExecution", 0)))
        del metrics.batch_ms[:-10_000]
        self._worked_ms += metrics.batch_ms[-1]
        held_ms = held_back_ms(self._client_dir)
        # A source under backpressure is held back while batches run, too.
        metrics.source_busy_ms = max(0.0, self._worked_ms - held_ms)
        metrics.source_back_pressured_ms = held_ms
        passed_ms = (time.monotonic() - self._began_s) * 1000
        metrics.source_idle_ms = max(0.0, passed_ms - max(self._worked_ms, held_ms))
        observed = _field(progress, "observedMetrics") or {}
        metrics.records_in += _observed(observed, OBSERVED_IN, 0)
        metrics.records_out += _observed(observed, OBSERVED_OUT, 0)
        parked = _observed(observed, OBSERVED_OUT, 1)
        metrics.late_records_dropped += _observed(observed, OBSERVED_OUT, 2)
        watermark = _observed(observed, OBSERVED_IN, 1)
        if watermark > MIN_WATERMARK:
            metrics.watermark = max(watermark, metrics.watermark or watermark)
        offsets = [_offset(_field(source, "endOffset")) for source in _field(progress, "sources")]
        if offsets and all(item is not None and item.ended for item in offsets):
            self._sources_ended = not parked

    def _deliver(self) -> None:
        for number, subtask, batch in self._client.take():
            self._sinks[number].deliver(batch, subtask)


class _Held(Exception):
    """The query has stopped between two batches."""

    def __init__(self, request: StopRequest) -> None:
        super().__init__(request.path)
        self.request = request


def _record(progress: Any) -> CheckpointRecord:
    """A micro-batch is Spark's checkpoint; its size is what the state stores wrote."""
    duration_ms = int(_field(progress, "durationMs").get("triggerExecution", 0))
    began = datetime.fromisoformat(str(_field(progress, "timestamp")).replace("Z", "+00:00"))
    written = 0
    for operator in _field(progress, "stateOperators"):
        written += int((_field(operator, "customMetrics") or {}).get("rocksdbBytesCopied", 0))
    return CheckpointRecord(
        id=_field(progress, "batchId"),
        kind="batch",
        started_ms=int(began.timestamp() * 1000),
        duration_ms=duration_ms,
        bytes=written,
    )


def _has_run(progress: Any) -> bool:
    return "addBatch" in _field(progress, "durationMs")


def _field(item: Any, name: str) -> Any:
    """Progress is a dictionary or an object, depending on the kind of session."""
    return item[name] if isinstance(item, dict) else getattr(item, name)


def _observed(metrics: Any, name: str, position: int) -> int:
    """A number that Spark observed: in a Row, or in a list of values with Connect."""
    row = metrics.get(name)
    if row is None:
        return 0
    values = row.get("values") if isinstance(row, dict) else getattr(row, "values", None)
    try:
        if isinstance(values, list):
            return int(values[position] or 0)
        return int(row[position] or 0)
    except (KeyError, TypeError, ValueError, IndexError):
        return 0


def _offset(text: Any) -> SourceOffset | None:
    """None for one of Spark's own offsets."""
    try:
        offset: Any = json.loads(text) if isinstance(text, str) else text
        return SourceOffset.from_json(offset) if isinstance(offset, dict) and "channels" in offset else None
    except ValueError:
        return None
