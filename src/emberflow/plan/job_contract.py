"""What a program hands to an engine, and what it gets back."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from emberflow.plan.graphs.job_graph import JobGraph
from emberflow.plan.restart_strategy import RestartStrategy

MADE: Counter[str] = Counter()
"""`environments` that were made, and `jobs` that were submitted, in this process: `emberflow run` warns of a program that
builds something and does not execute it."""


class RuntimeExecutionMode(Enum):
    """STREAMING processes as data arrives, BATCH all of it at once; AUTOMATIC takes BATCH if every source is bounded
    and there is no checkpoint directory to go on from."""

    STREAMING = "streaming"
    BATCH = "batch"
    AUTOMATIC = "automatic"


class CheckpointingMode(Enum):
    """EXACTLY_ONCE: what `print()` and `collect()` show, too, waits until the checkpoint is complete. AT_LEAST_ONCE: it is
    shown at once, and again if it has to be made again; state and sinks that commit are not touched by it. On Spark
    everything waits for its micro-batch."""

    EXACTLY_ONCE = "exactly_once"
    AT_LEAST_ONCE = "at_least_once"


class JobStatus(Enum):
    """Where a job stands."""

    CREATED = "created"
    RUNNING = "running"
    FINISHED = "finished"
    CANCELED = "canceled"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        """Whether the job has ended, in whatever way."""
        return self in (JobStatus.FINISHED, JobStatus.CANCELED, JobStatus.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobConfig:
    """Settings of one job."""

    parallelism: int
    max_parallelism: int
    mode: RuntimeExecutionMode = RuntimeExecutionMode.AUTOMATIC
    checkpoint_dir: str | None = None
    checkpoint_interval_ms: int | None = None
    checkpointing_mode: CheckpointingMode = CheckpointingMode.EXACTLY_ONCE
    checkpoint_timeout_ms: int | None = None
    """A checkpoint that takes longer is given up; the next one is tried after the interval."""
    checkpoint_pause_ms: int = 0
    """The least time between the end of a checkpoint and the beginning of the next."""
    retained_checkpoints: int = 2
    savepoint: str | None = None
    """Where a job begins that has no checkpoint of its own yet."""
    allow_non_restored_state: bool = False
    restart: RestartStrategy | None = None
    quiet: bool = False
    show_traceback: bool = False
    parameters: dict[str, str] = field(default_factory=dict[str, str])
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    """Engine settings by name, e.g. `trigger_ms` on Spark, `clock` in tests."""


@dataclass(slots=True, kw_only=True)
class JobMetrics:
    """Running totals that engines keep up to date and progress lines show."""

    records_in: int = 0
    records_out: int = 0
    batches: int = 0
    watermark: int | None = None
    duration_ms: int = 0
    restarts: int = 0
    batch_ms: list[int] = field(default_factory=list[int])
    source_busy_ms: float = 0.0
    """How long sources were reading and what they read was worked on; summed up over their tasks, as the next two are."""
    source_back_pressured_ms: float = 0.0
    """How long they had to wait because steps behind them, or calls in flight, were at their limits."""
    source_idle_ms: float = 0.0
    """How long there was nothing to read."""

    @property
    def back_pressured_ratio(self) -> float:
        """The part of their time that sources spent waiting for what is behind them: 0 to 1."""
        total = self.source_busy_ms + self.source_back_pressured_ms + self.source_idle_ms
        return self.source_back_pressured_ms / total if total else 0.0


class JobHandle(Protocol):
    """A submitted job."""

    job_id: str
    metrics: JobMetrics

    def status(self) -> JobStatus: ...

    def wait(self, timeout_s: float | None = None) -> bool:
        """True when the job has ended; raises what made it fail."""
        ...

    def cancel(self, timeout_s: float | None = None) -> None:
        """Stop cleanly; returns when everything the job started is gone, or after the timeout, with a warning."""
        ...

    def savepoint(self, path: str) -> str:
        """Writes a savepoint while the job goes on; returns its path when it is complete."""
        ...

    def stop_with_savepoint(self, path: str) -> str:
        """Stops the job at a savepoint: nothing is processed behind it."""
        ...


class Engine(Protocol):
    """Hosts job graphs."""

    name: str

    def submit(self, graph: JobGraph, config: JobConfig) -> JobHandle: ...


def new_job_id() -> str:
    return uuid.uuid4().hex
