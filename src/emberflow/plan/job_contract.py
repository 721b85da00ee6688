"""What a program passes to an engine, and what it gets back."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from emberflow.plan.graphs.job_graph import JobGraph
from emberflow.plan.restart_strategy import RestartStrategy

MADE: Counter[str] = Counter()
"""Number of `environments` created and `jobs` submitted in this process: `emberflow run` warns about a program that
builds something and does not execute it."""


class RuntimeExecutionMode(Enum):
    """STREAMING, the default, processes data as it arrives; BATCH all of it at once, and emits only final results where
    STREAMING emits intermediate ones. AUTOMATIC is BATCH if every source is bounded and there is no checkpoint directory to
    continue from."""

    STREAMING = "streaming"
    BATCH = "batch"
    AUTOMATIC = "automatic"


class CheckpointingMode(Enum):
    """EXACTLY_ONCE: output of `print()` and `collect()` also waits for its checkpoint. AT_LEAST_ONCE: it is shown
    immediately, and again if it has to be recomputed; state and transactional sinks are the same in both. On Spark all
    output waits for its micro-batch."""

    EXACTLY_ONCE = "exactly_once"
    AT_LEAST_ONCE = "at_least_once"


class JobStatus(Enum):
    """The state of a job. Only the first five are ever reported; the others are names that PyFlink programs compare with."""

    CREATED = "created"
    RUNNING = "running"
    FINISHED = "finished"
    CANCELED = "canceled"
    FAILED = "failed"
    FAILING = "failing"
    CANCELLING = "cancelling"
    RESTARTING = "restarting"
    SUSPENDED = "suspended"
    RECONCILING = "reconciling"

    @property
    def is_final(self) -> bool:
        """Whether the job has ended, in whatever way."""
        return self in (JobStatus.FINISHED, JobStatus.CANCELED, JobStatus.FAILED)

    def is_globally_terminal_state(self) -> bool:
        """Whether the job has ended, in whatever way."""
        return self.is_final

    def is_terminal_state(self) -> bool:
        """Whether the job has ended, in whatever way."""
        return self.is_final


@dataclass(frozen=True, slots=True, kw_only=True)
class JobConfig:
    """Settings of one job."""

    parallelism: int
    max_parallelism: int
    mode: RuntimeExecutionMode | None = None
    """None if the program did not choose one: `plan.capabilities.resolve_mode` decides."""
    checkpoint_dir: str | None = None
    checkpoint_interval_ms: int | None = None
    checkpointing_mode: CheckpointingMode = CheckpointingMode.EXACTLY_ONCE
    checkpoint_timeout_ms: int | None = None
    """A checkpoint that takes longer is aborted; the next one is attempted after the interval."""
    checkpoint_pause_ms: int = 0
    """The minimum time between the end of a checkpoint and the start of the next."""
    retained_checkpoints: int = 2
    savepoint: str | None = None
    """Where a job without its own checkpoint starts."""
    allow_non_restored_state: bool = False
    restart: RestartStrategy | None = None
    quiet: bool = False
    show_traceback: bool = False
    parameters: dict[str, str] = field(default_factory=dict[str, str])
    jars: tuple[str, ...] = ()
    """Jars for Spark's JVMs."""
    python_files: tuple[str, ...] = ()
    """Files, folders and archives of Python modules that functions import."""
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    """Engine settings by name, e.g. `trigger_ms` on Spark, `clock` in tests."""


@dataclass(slots=True, kw_only=True)
class JobMetrics:
    """Running totals, updated by engines and shown in progress lines."""

    records_in: int = 0
    records_out: int = 0
    batches: int = 0
    late_records_dropped: int = 0
    """Records that came after all of their windows had been removed. Those sent to a side output are not counted. Records
    that are processed again after a failure may count twice."""
    watermark: int | None = None
    duration_ms: int = 0
    restarts: int = 0
    batch_ms: list[int] = field(default_factory=list[int])
    source_busy_ms: float = 0.0
    """Time in which sources were read and their records processed; summed over their tasks, like the next two."""
    source_back_pressured_ms: float = 0.0
    """Time in which sources waited because steps after them, or calls in flight, were at their limits."""
    source_idle_ms: float = 0.0
    """Time in which there was nothing to read."""

    @property
    def back_pressured_ratio(self) -> float:
        """The share of their time, 0 to 1, that sources spent waiting for the steps after them."""
        total = self.source_busy_ms + self.source_back_pressured_ms + self.source_idle_ms
        return self.source_back_pressured_ms / total if total else 0.0


class JobHandle(Protocol):
    """A submitted job."""

    job_id: str
    metrics: JobMetrics

    def status(self) -> JobStatus: ...

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for the end of the job; returns whether it has ended, raises the error that made it fail."""
        ...

    def cancel(self, timeout_s: float | None = None) -> None:
        """Stops the job cleanly; returns when everything it started has ended, or after the timeout, with a warning."""
        ...

    def savepoint(self, path: str) -> str:
        """Writes a savepoint while the job continues; returns its path when it is complete."""
        ...

    def stop_with_savepoint(self, path: str) -> str:
        """Stops the job with a savepoint: nothing is processed after it."""
        ...


class Engine(Protocol):
    """Runs job graphs."""

    name: str

    def submit(self, graph: JobGraph, config: JobConfig) -> JobHandle: ...


def new_job_id() -> str:
    return uuid.uuid4().hex
