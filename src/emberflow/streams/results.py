"""Results in the process that started the job: the iterator of `execute_and_collect`, and job results."""

from __future__ import annotations

import math
import os
import queue
import time
import uuid
from collections.abc import Iterator
from typing import Any, Generic, Self, TypeVar

from emberflow.errors import InvalidArgument, NotSupported, shorten
from emberflow.plan.job_contract import JobHandle, JobMetrics, JobStatus
from emberflow.plan.local_folders import local_folder
from emberflow.streams.completable_future import CompletableFuture, completed
from emberflow.streams.program.tracebacks import user_frames_only

_POLL_S = 0.05


T = TypeVar("T", covariant=True)


class CloseableIterator(Generic[T]):
    """Iterates over records as they are committed; leaving the `with` block or `close()` stops the job."""

    def __init__(self, handle: JobHandle, batches: queue.SimpleQueue[list[T]]) -> None:
        self._handle = handle
        self._batches = batches
        self._ready: Iterator[T] = iter(())

    def __iter__(self) -> Iterator[T]:
        return self

    @user_frames_only
    def __next__(self) -> T:
        while True:
            for value in self._ready:
                return value
            self._ready = iter(self._next_batch())

    def next(self) -> T:
        """The next record; raises `StopIteration` at the end."""
        return self.__next__()

    def _next_batch(self) -> list[T]:
        while True:
            # Ask first whether the job has ended, then look once more: what it sent before its end is in the queue.
            ended = self._handle.status().is_final
            try:
                return self._batches.get(timeout=0 if ended else _POLL_S)
            except queue.Empty:
                if ended:
                    self._handle.wait()
                    raise StopIteration from None

    def close(self) -> None:
        """Cancels the job if it still runs."""
        if not self._handle.status().is_final:
            self._handle.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class JobID(str):
    """The id that an engine gave a job."""

    __slots__ = ()


class JobExecutionResult:
    """What `execute()` returns when the job is done."""

    def __init__(self, name: str, handle: JobHandle, started: float) -> None:
        self._name = name
        self._handle = handle
        self._runtime_ms = math.ceil((time.monotonic() - started) * 1000)

    def get_job_id(self) -> JobID:
        """The id that the engine gave the job."""
        return JobID(self._handle.job_id)

    def get_net_runtime(self) -> int:
        """Milliseconds from submission to end."""
        return self._runtime_ms

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """Always empty: there are no accumulators. Count with metrics, see `RuntimeContext.get_metrics_group()`."""
        return {}

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """Always None: there are no accumulators."""
        return self.get_all_accumulator_results().get(accumulator_name)

    @property
    def metrics(self) -> JobMetrics:
        """Counters of the job so far."""
        return self._handle.metrics

    def __repr__(self) -> str:
        return f"JobExecutionResult({self._name!r}, {self._runtime_ms} ms, {self.metrics.records_in} records)"


class JobClient:
    """A job that runs while the program continues."""

    def __init__(self, name: str, handle: JobHandle, savepoint_dir: str | None = None) -> None:
        self._name = name
        self._handle = handle
        self._started = time.monotonic()
        self._savepoint_dir = savepoint_dir

    def get_job_id(self) -> JobID:
        """The id that the engine gave the job."""
        return JobID(self._handle.job_id)

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """Whether the job runs, has finished, failed or was canceled: `get_job_status().result()`."""
        return completed(self._handle.status())

    @property
    def metrics(self) -> JobMetrics:
        """Counters of the job so far."""
        return self._handle.metrics

    def cancel(self, timeout_ms: int | None = None) -> CompletableFuture[None]:
        """Stops the job cleanly and waits for it. After the timeout (the option `cancel_timeout_ms`, 30 s, if it is not
        given) a job whose code does not return is abandoned with a warning that names the step."""
        self._handle.cancel(None if timeout_ms is None else timeout_ms / 1000)
        return completed(None)

    def savepoint(self, path: str | os.PathLike[str], *, stop: bool = False) -> str:
        """Writes a savepoint and returns its path when it is complete. The job continues, or with `stop` ends there:
        nothing is processed after it."""
        target = local_folder("a savepoint", path)
        return self._handle.stop_with_savepoint(target) if stop else self._handle.savepoint(target)

    def trigger_savepoint(
        self, savepoint_directory: str | os.PathLike[str] | None = None
    ) -> CompletableFuture[str]:
        """Writes a savepoint into a new folder below the directory while the job continues; the result is its path.

        Without a directory, the environment's default one is used; `InvalidArgument` if there is none.
        """
        return completed(self.savepoint(self._new_savepoint(savepoint_directory)))

    def stop_with_savepoint(
        self,
        advance_to_end_of_event_time: bool = False,
        savepoint_directory: str | os.PathLike[str] | None = None,
    ) -> CompletableFuture[str]:
        """As `trigger_savepoint`, and the job ends there.

        `advance_to_end_of_event_time` is not supported: the windows that are open stay in the savepoint.
        """
        if not isinstance(advance_to_end_of_event_time, bool):
            raise InvalidArgument(
                f"advance_to_end_of_event_time must be True or False, not {shorten(advance_to_end_of_event_time)}",
                way_out="stop_with_savepoint(False, directory), or savepoint(path, stop=True)",
            )
        if advance_to_end_of_event_time:
            raise NotSupported(
                "a job cannot be stopped with event time advanced to its end",
                way_out="stop_with_savepoint(False, directory) keeps open windows in the savepoint",
            )
        path = self.savepoint(self._new_savepoint(savepoint_directory), stop=True)
        return completed(path)

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """Always empty: there are no accumulators."""
        return completed({})

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """A future that waits for the end of the job; its `result()` raises what made the job fail."""
        return CompletableFuture(
            self._result,
            is_done=lambda: self._handle.status().is_final,
            is_cancelled=lambda: self._handle.status() is JobStatus.CANCELED,
            cancel=self.cancel,
        )

    def _result(self) -> JobExecutionResult:
        self._handle.wait()
        return JobExecutionResult(self._name, self._handle, self._started)

    def _new_savepoint(self, directory: str | os.PathLike[str] | None) -> str:
        chosen = self._savepoint_dir if directory is None else os.fspath(directory)
        if not chosen:
            raise InvalidArgument(
                "there is no directory for the savepoint",
                way_out="name one, or set a default with env.set_default_savepoint_directory(path)",
            )
        return os.path.join(chosen, f"savepoint-{self._handle.job_id[:6]}-{uuid.uuid4().hex[:12]}")
