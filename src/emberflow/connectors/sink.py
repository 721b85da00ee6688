"""The sink contract: two-phase commit, with simpler forms built on it.

A writer collects records of one task and one epoch (a micro-batch or a checkpoint interval); `prepare` makes them
durable but invisible and returns a description of them; `commit` makes them visible. An engine may call `commit` again
for an epoch after a crash: it must then change nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from emberflow.errors import EmberflowError, SinkFailed, describe_cause
from emberflow.events.batch import Batch

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
    """Of the job's start that the writer belongs to; 0 in a job without a checkpoint directory."""


@dataclass(frozen=True, slots=True)
class Committed:
    """What a sink has on record about a job."""

    ledger: str
    """Names the record; another one, or one that was made anew, has another name."""
    epoch: int
    """The last epoch that is visible; -1 before the first."""


class SinkWriter(Protocol):
    """Collects the records of one task and one epoch."""

    def write(self, batch: Batch) -> None:
        """Takes a batch; nothing may become visible yet."""
        ...

    def prepare(self) -> Any:
        """Flush; returns what `commit` needs, picklable; None if there is nothing to commit."""
        ...

    def abort(self) -> None:
        """Throw away what was written; the epoch is not committed."""
        ...


class Sink(Generic[T]):
    """Base of all sinks. `T` is what it can write; override `writer` and `commit`."""

    discards: bool = False
    """True: records need not even be brought to the sink."""
    to_client: bool = False
    """True: committed records are wanted in the process that started the job (print, collect)."""

    def describe(self) -> str:
        """How plans and errors name the sink."""
        return type(self).__name__

    def writer(self, context: WriterContext) -> SinkWriter:
        """A writer for the records of one task and one epoch."""
        raise NotImplementedError(type(self).__name__)

    def commit(self, job_id: str, sink_id: str, epoch: int, prepared: Sequence[Any]) -> None:
        """Make an epoch's prepared parts visible, all or none; called again after a crash."""

    def newest_start(self, job_id: str, sink_id: str) -> int:
        """The largest fencing epoch with which the job has taken the sink over; 0 if there is none, or the sink cannot tell.
        The engine begins with a larger one."""
        return 0

    def take_over(self, job_id: str, sink_id: str, fencing_epoch: int) -> Committed | None:
        """A start of the job begins; a later one has a larger number. From here on, what older starts of the same job have
        not decided must not become visible by them: a process that was replaced may still run. Returns what is committed,
        so that the engine can see whether its state belongs to it; None if the sink cannot tell."""
        return None

    def commit_fenced(
        self, job_id: str, sink_id: str, epoch: int, prepared: Sequence[Any], fencing_epoch: int
    ) -> None:
        """`commit` by one start of the job. Raises OwnershipLost if a later one has taken over. The default relies on the
        engine, which asks the checkpoint directory just before."""
        self.commit(job_id, sink_id, epoch, prepared)

    def deliver(self, batch: Batch, subtask: int) -> None:
        """`to_client` sinks: committed records, in the process that started the job."""


def sink_failed(name: str, what: str, error: BaseException) -> BaseException:
    """The error a user sees when a sink could not `open`, `write`, `prepare` or `commit`, whatever it raised."""
    if isinstance(error, EmberflowError | KeyboardInterrupt):
        return error
    return SinkFailed(
        f"sink {name!r} could not {what}",
        cause=describe_cause(error),
        way_out="mend the sink's target and run the program again",
        committed="what was written since the last commit is not committed",
    )


def abort_quietly(writer: SinkWriter) -> None:
    """Because of an error, which must not be hidden by another one: a full disk may not even let a file be closed."""
    try:
        writer.abort()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        _log.warning("a sink could not clear what it had begun to write: %s", describe_cause(error))


class DiscardingSink(Sink[Any]):
    """Drops every record; for measuring."""

    discards = True


class _FunctionWriter:
    def __init__(self, function: Any, invoke: Callable[..., None], takes_context: bool) -> None:
        self._function = function
        self._invoke = invoke
        self._takes_context = takes_context
        opener = getattr(function, "open", None)
        if opener is not None:
            opener(None)

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


@dataclass(frozen=True, slots=True)
class SinkContext:
    """What `SinkFunction.invoke` is told about a record."""

    timestamp: int | None


class SinkFunction(Generic[T]):
    """A custom sink in one method. At least once: a record may be written again after a crash; derive from `Sink`
    for exactly-once. `open` and `close` are called around every epoch of a task."""

    def open(self, runtime_context: Any) -> None:
        """Before the first record of an epoch."""

    def invoke(self, value: T, context: SinkContext) -> None:
        """Writes one record; what it raises fails the job with `SinkFailed`."""
        raise NotImplementedError("invoke() must be overridden")

    def close(self) -> None:
        """After the last record of an epoch."""


class FunctionSink(Sink[Any]):
    """Hosts a `SinkFunction` or a plain `function(value)`."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def describe(self) -> str:
        return getattr(self._function, "__qualname__", type(self._function).__qualname__)

    def writer(self, context: WriterContext) -> SinkWriter:
        function: Any = self._function
        if isinstance(self._function, SinkFunction):
            return _FunctionWriter(function, function.invoke, True)
        return _FunctionWriter(function, function, False)
