"""`TableResult`: a job that was started by `Table.execute()` or `Table.execute_insert()`."""

from __future__ import annotations

import queue
import sys
from collections.abc import Sequence
from typing import Any

from emberflow.connectors.client_sinks import CollectSink
from emberflow.connectors.sink import Sink
from emberflow.errors import InvalidArgument
from emberflow.events.types.row import Row
from emberflow.plan.graphs.job_graph import compile_graph
from emberflow.plan.job_contract import JobHandle
from emberflow.streams.data_stream import DataStream
from emberflow.streams.program.tracebacks import user_frames_only
from emberflow.streams.results import CloseableIterator, JobClient
from emberflow.streams.tables.data_types import Kind
from emberflow.streams.tables.schema import Column, Schema

_LONGEST = 30
_WIDTHS = {8: 6, 16: 6, 32: 11, 64: 20}
"""By the bits of a whole number."""


class TableResult:
    """The job, and for `execute()` its rows."""

    def __init__(
        self, handle: JobHandle, name: str, schema: Schema, rows: CloseableIterator[Row] | None
    ) -> None:
        self._handle = handle
        self._name = name
        self._schema = schema
        self._rows = rows

    def get_job_client(self) -> JobClient:
        """The running job."""
        return JobClient(self._name, self._handle)

    @user_frames_only
    def wait(self, timeout_ms: int | None = None) -> None:
        """Waits for the end of the job; raises its failure, and `TimeoutError` if it takes longer."""
        if not self._handle.wait(None if timeout_ms is None else timeout_ms / 1000):
            raise TimeoutError(f"the job {self._name!r} still runs after {timeout_ms} ms")

    def collect(self) -> CloseableIterator[Row]:
        """The rows as they are committed, each of them once; closing the iterator cancels the job."""
        if self._rows is None:
            raise InvalidArgument(
                "a job that writes a table has no rows", way_out="read the table it writes to"
            )
        return self._rows

    def print(self) -> None:
        """Prints the rows in Flink's form as they arrive, until the job ends; long values are cut."""
        columns = self._schema.columns
        widths = [2, *map(_width, columns)]
        line = "+".join(["", *("-" * (width + 2) for width in widths), ""])
        count = 0
        with self.collect() as rows:
            for row in rows:
                if not count:
                    _say(line, _printed(["op", *self._schema.names], widths), line)
                count += 1
                _say(_printed([row.get_row_kind(), *row], widths))
        if count:
            _say(line, f"{count} row{'s' if count > 1 else ''} in set")
        else:
            _say("Empty set")


def _say(*lines: str) -> None:
    # Looked up on every call: notebooks and tests replace the stream.
    sys.stdout.write("".join([f"{line}\n" for line in lines]))
    sys.stdout.flush()


def insert(stream: DataStream[Row], sink: Sink[Any], name: str, schema: Schema) -> TableResult:
    """Starts a job that writes the stream, and nothing else of the program, to a sink."""
    return TableResult(_started(stream, sink, name), name, schema, None)


def select(stream: DataStream[Row], name: str, schema: Schema) -> TableResult:
    """Starts a job that brings the stream's rows to this process."""
    batches: queue.SimpleQueue[list[Row]] = queue.SimpleQueue()
    handle = _started(stream, CollectSink(lambda batch: batches.put(list(batch.values))), name)
    return TableResult(handle, name, schema, CloseableIterator(handle, batches))


def _started(stream: DataStream[Row], sink: Sink[Any], name: str) -> JobHandle:
    env = stream.get_execution_environment()
    node = env._client_sink(stream, sink)
    env._leave_out(node)
    return env._submit(compile_graph(env._freeze(name, {node})))


def _width(column: Column) -> int:
    data_type = column.data_type
    width = _WIDTHS[data_type.bits] if data_type.kind is Kind.WHOLE else _LONGEST
    return max(6 if data_type.kind is Kind.BOOLEAN else width, len(column.name))


def _printed(values: Sequence[Any], widths: Sequence[int]) -> str:
    cells: list[str] = []
    for value, width in zip(values, widths, strict=True):
        text = _cell(value)
        cells.append((text if len(text) <= width else f"{text[: width - 3]}...").rjust(width))
    return f"| {' | '.join(cells)} |"


def _cell(value: Any) -> str:
    if value is None:
        return "<NULL>"
    return ("FALSE", "TRUE")[value] if isinstance(value, bool) else str(value)
