"""Sinks whose records are delivered to the process that started the job: print and collect.

Engines bring committed batches to that process and call `deliver`; no writer runs on a worker.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol

from emberflow.connectors.sink import Sink
from emberflow.errors import SinkFailed
from emberflow.events.batch import Batch
from emberflow.events.types.printing import printer_of
from emberflow.events.types.type_information import TypeInformation


class PrintSink(Sink[Any]):
    """Prints each record on a line of its own, in Flink's format.

    `identifier:2> value` in a program with several subtasks, `identifier> value` with one; a part of the prefix that
    carries no information is omitted. The parallelism is that of the job unless given. Records of the type `type_info` are
    printed as PyFlink prints them, all others with `str`.
    """

    to_client = True

    def __init__(
        self,
        sink_identifier: str = "",
        stderr: bool = False,
        parallelism: int | None = None,
        type_info: TypeInformation[Any] | None = None,
    ) -> None:
        self._identifier = sink_identifier
        self._stderr = stderr
        self._fixed_parallelism = parallelism
        self._parallelism = parallelism or 1
        self._type_info = type_info

    def describe(self) -> str:
        return "Print to Std. Err" if self._stderr else "Print to Std. Out"

    def starting(self, parallelism: int) -> None:
        self._parallelism = self._fixed_parallelism or parallelism

    def deliver(self, batch: Batch, subtask: int) -> None:
        prefix = self._prefix(subtask)
        printed = printer_of(self._type_info) or str
        # Looked up on every call: notebooks and tests replace the streams.
        stream = sys.stderr if self._stderr else sys.stdout
        # One write per batch keeps the lines of other threads from interleaving.
        stream.write("".join([f"{prefix}{printed(value)}\n" for value in batch.values]))
        stream.flush()

    def _prefix(self, subtask: int) -> str:
        number = str(subtask + 1) if self._parallelism > 1 else ""
        name = ":".join(part for part in (self._identifier, number) if part)
        return f"{name}> " if name else ""


class BatchQueue(Protocol):
    """`queue.Queue`, or any object with its `put`."""

    def put(self, item: Batch, /) -> Any: ...


class CollectSink(Sink[Any]):
    """Passes each committed batch to a function or puts it into a queue, in the process that started the job."""

    to_client = True

    def __init__(self, target: Callable[[Batch], Any] | BatchQueue) -> None:
        self._target: Callable[[Batch], Any] | None = target if callable(target) else target.put

    def __getstate__(self) -> dict[str, Any]:
        # A plan with this sink may be shipped to workers; the queue stays in this process.
        return {"_target": None}

    def describe(self) -> str:
        return "Collect"

    def deliver(self, batch: Batch, subtask: int) -> None:
        if self._target is None:
            raise SinkFailed(
                "a copy of a collect sink in another process cannot deliver records",
                way_out="deliver through the sink object that the program was built with",
            )
        self._target(batch)
