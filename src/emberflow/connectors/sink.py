"""The sink contract: two-phase commit, with simpler forms built on it.

A writer collects the records of one task and one epoch (a micro-batch or a checkpoint interval); `prepare` makes them
durable but invisible and returns a description of them; `commit` makes them visible. An engine may call `commit` again
for an epoch after a crash, so it must be idempotent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from emberflow.errors import EmberflowError, SinkFailed, describe_cause
from emberflow.events.batch import Batch
from emberflow.events.types.type_information import TypeInformation

T = TypeVar("T", contravariant=True)

_log = logging.getLogger("emberflow")


@dataclass(frozen=True, slots=True)
class WriterContext:
    """Which part of a job a writer serves."""

    job_id: str
    sink_id: str
    subtask: int
    epoch: int
    attempt: str
    fencing_epoch: int = 0
    """The fencing epoch of the job's start that the writer belongs to; 0 in a job without a checkpoint directory."""


@dataclass(frozen=True, slots=True)
class Committed:
    """What a sink has committed for a job."""

    ledger: str
    """The id of the sink's ledger; a ledger that was replaced or recreated has another id."""
    epoch: int
    """The newest visible epoch; -1 before the first."""


class SinkWriter(Protocol):
    """Collects the records of one task and one epoch."""

    def write(self, batch: Batch) -> None:
        """Stages a batch; nothing may become visible yet. Raise to fail the task."""
        ...

    def prepare(self) -> Any:
        """Makes the staged records durable; returns what `commit` needs (picklable), or None if there is nothing to commit."""
        ...

    def abort(self) -> None:
        """Discards what was written; the epoch is not committed."""
        ...


class Sink(Generic[T]):
    """Base of all sinks. `T` is what it can write; override `writer` and `commit`."""

    discards: bool = False
    """Whether records need not even be sent to the sink."""
    to_client: bool = False
    """Whether committed records are delivered to the process that started the job (print, collect)."""

    def describe(self) -> str:
        """The name of the sink in plans and errors."""
        return type(self).__name__

    def for_type(self, type_info: TypeInformation[Any] | None) -> Sink[T]:
        """The sink for a stream whose records have this declared type, or None; called when the sink is added to the stream.
        One that depends on the type returns a copy: the same object may be added to several streams."""
        return self

    def starting(self, parallelism: int) -> None:
        """Called in the process that starts a job, before it runs, with the number of tasks that write to the sink."""

    def writer(self, context: WriterContext) -> SinkWriter:
        """Creates a writer for the records of one task and one epoch."""
        raise NotImplementedError(type(self).__name__)

    def commit(self, job_id: str, sink_id: str, epoch: int, prepared: Sequence[Any]) -> None:
        """Makes the prepared parts of an epoch visible, all or none. Called again after a crash: must be idempotent."""

    def newest_start(self, job_id: str, sink_id: str) -> int:
        """The largest fencing epoch with which the job has taken over the sink; 0 if there is none or the sink does not
        know. The engine starts with a larger one."""
        return 0

    def take_over(self, job_id: str, sink_id: str, fencing_epoch: int) -> Committed | None:
        """Called at each start of the job; a later start has a larger number. From here on, anything that older starts of the
        job have not decided must not become visible through them: a replaced process may still be running. Returns what is
        committed, so that the engine can compare it with its state; None if the sink does not know."""
        return None

    def commit_fenced(
        self, job_id: str, sink_id: str, epoch: int, prepared: Sequence[Any], fencing_epoch: int
    ) -> None:
        """`commit` by one start of the job. Raises OwnershipLost if a later one has taken over. The default relies on the
        engine, which checks the checkpoint directory immediately before."""
        self.commit(job_id, sink_id, epoch, prepared)

    def finished(self, job_id: str, sink_id: str) -> None:
        """Called when a job that cannot be continued has ended without a failure: it has neither a checkpoint directory nor a
        savepoint. What was kept only to continue is no longer needed."""

    def deliver(self, batch: Batch, subtask: int) -> None:
        """For `to_client` sinks: receives committed records in the process that started the job."""


def sink_failed(name: str, what: str, error: BaseException) -> BaseException:
    """The error for a sink that could not `open`, `write`, `prepare` or `commit`, whatever it raised."""
    if isinstance(error, EmberflowError | KeyboardInterrupt):
        return error
    return SinkFailed(
        f"sink {name!r} could not {what}",
        cause=describe_cause(error),
        way_out="fix the sink's target and run the program again",
        committed="what was written since the last commit is not committed",
    )


def abort_quietly(writer: SinkWriter) -> None:
    """Aborts after an error, which another error must not hide: on a full disk even closing a file may fail."""
    try:
        writer.abort()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        _log.warning("a sink could not remove its staged output: %s", describe_cause(error))


class DiscardingSink(Sink[Any]):
    """Discards every record; for benchmarks."""

    discards = True


class _FunctionWriter:
    def __init__(
        self, function: Any, invoke: Callable[..., None], takes_context: bool, context: SinkRuntimeContext
    ) -> None:
        self._function = function
        self._invoke = invoke
        self._takes_context = takes_context
        opener = getattr(function, "open", None)
        if opener is not None:
            opener(context)

    def write(self, batch: Batch) -> None:
        if not self._takes_context:
            for value in batch.values:
                self._invoke(value)
            return
        stamps = batch.timestamps or [None] * len(batch)
        for value, stamp in zip(batch.values, stamps, strict=True):
            self._invoke(value, SinkContext(stamp))

    def prepare(self) -> Any:
        self._close()
        return None

    def abort(self) -> None:
        self._close()

    def _close(self) -> None:
        closer = getattr(self._function, "close", None)
        if closer is not None:
            closer()


class SinkRuntimeContext:
    """Handed to `SinkFunction.open()`: which part of the job it serves."""

    __slots__ = ("_name", "_subtask")

    def __init__(self, name: str, subtask: int) -> None:
        self._name = name
        self._subtask = subtask

    def get_task_name(self) -> str:
        """The name of the sink."""
        return self._name

    def get_index_of_this_subtask(self) -> int:
        """The number of this parallel writer, from 0."""
        return self._subtask


@dataclass(frozen=True, slots=True)
class SinkContext:
    """What `SinkFunction.invoke` receives besides the record."""

    timestamp: int | None


class SinkFunction(Generic[T]):
    """A custom sink with one method. At least once: a record may be written again after a crash; subclass `Sink` for
    exactly-once. `open` and `close` are called around every epoch of a task."""

    def open(self, runtime_context: SinkRuntimeContext) -> None:
        """Called before the first record of an epoch."""

    def invoke(self, value: T, context: SinkContext) -> None:
        """Writes one record; an exception fails the job with `SinkFailed`."""
        raise NotImplementedError("invoke() must be overridden")

    def close(self) -> None:
        """Called after the last record of an epoch."""


class FunctionSink(Sink[Any]):
    """Hosts a `SinkFunction` or a plain `function(value)`."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def describe(self) -> str:
        return getattr(self._function, "__qualname__", type(self._function).__qualname__)

    def writer(self, context: WriterContext) -> SinkWriter:
        function: Any = self._function
        known = SinkRuntimeContext(self.describe(), context.subtask)
        if isinstance(self._function, SinkFunction):
            return _FunctionWriter(function, function.invoke, True, known)
        return _FunctionWriter(function, function, False, known)
