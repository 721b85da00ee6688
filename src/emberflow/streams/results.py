"""Results in the process that started the job: the iterator of `execute_and_collect`, and job results."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Iterator
from typing import Generic, Self, TypeVar

from emberflow.plan.job_contract import JobHandle, JobMetrics, JobStatus
from emberflow.streams.tracebacks import user_frames_only

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


class JobExecutionResult:
    """What `execute()` returns when the job is done."""

    def __init__(self, name: str, handle: JobHandle, started: float) -> None:
        self._name = name
        self._handle = handle
        self._runtime_ms = int((time.monotonic() - started) * 1000)

    def get_job_id(self) -> str:
        """The id that the engine gave the job."""
        return self._handle.job_id

    def get_net_runtime(self) -> int:
        """Milliseconds from submission to end."""
        return self._runtime_ms

    @property
    def metrics(self) -> JobMetrics:
        """Counters of the job so far."""
        return self._handle.metrics

    def __repr__(self) -> str:
        return f"JobExecutionResult({self._name!r}, {self._runtime_ms} ms, {self.metrics.records_in} records)"


class JobClient:
    """A job that runs while the program goes on."""

    def __init__(self, name: str, handle: JobHandle) -> None:
        self._name = name
        self._handle = handle
        self._started = time.monotonic()

    def get_job_id(self) -> str:
        """The id that the engine gave the job."""
        return self._handle.job_id

    def get_job_status(self) -> JobStatus:
        """Whether the job runs, has finished, failed or was cancelled."""
        return self._handle.status()

    @property
    def metrics(self) -> JobMetrics:
        """Counters of the job so far."""
        return self._handle.metrics

    def cancel(self, timeout_ms: int | None = None) -> None:
        """Stops the job cleanly and waits for it. After the timeout (the option `cancel_timeout_ms`, 30 s, if it is not
        given) a job whose code does not return is abandoned with a warning that names the step."""
        self._handle.cancel(None if timeout_ms is None else timeout_ms / 1000)

    def savepoint(self, path: str | os.PathLike[str]) -> str:
        """Writes a savepoint while the job goes on; returns its path when it is complete."""
        return self._handle.savepoint(os.fspath(path))

    def stop_with_savepoint(self, path: str | os.PathLike[str]) -> str:
        """Stops the job at a savepoint, from which another one can start; returns its path."""
        return self._handle.stop_with_savepoint(os.fspath(path))

    @user_frames_only
    def get_job_execution_result(self) -> JobExecutionResult:
        """Waits for the end; raises what made the job fail."""
        self._handle.wait()
        return JobExecutionResult(self._name, self._handle, self._started)
