"""Sinks on Spark: tasks prepare, one commit per micro-batch makes everything visible.

Records that are wanted in the driver (print, collect) travel inside the commit messages and are committed as one file
per batch in the job's client folder, which the driver reads in order.
"""

from __future__ import annotations

import os
import pickle
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from emberflow.connectors.sink import Sink, SinkWriter, WriterContext, abort_quietly, sink_failed
from emberflow.engines.spark.arrow_rows import rows_of
from emberflow.engines.spark.job_spec import JobSpec, load_spec
from emberflow.engines.spark.rows import is_for_sink, sink_number
from emberflow.engines.spark.sink_marks import note_output
from emberflow.events.codecs import decode, encode
from emberflow.events.packets import decode_packet
from emberflow.events.private_files import make_private_folder
from emberflow.events.stored_files import write_atomically
from emberflow.plan.specs import SinkSpec
from emberflow.plan.stream_graph import StreamNode


def write_task(data: bytes, batches: Iterator[Any]) -> bytes:
    """One task's records; returns the commit message."""
    from pyspark import TaskContext

    spec = load_spec(data)
    spec.fence.check_if_reachable()
    context = TaskContext.get()
    subtask = context.partitionId() if context is not None else 0
    batch_id = context.getLocalProperty("streaming.sql.batchId") if context is not None else None
    epoch = int(batch_id) if batch_id else 0
    writers: dict[int, SinkWriter] = {}
    to_client: list[tuple[int, int, bytes]] = []
    packets: list[tuple[int, Any, bytes]] = []
    for batch in batches:
        for row in rows_of(batch):
            if is_for_sink(row[1]):
                packet = decode_packet(row[4])
                packets.append((sink_number(row[1]), packet, row[4]))
    # Order within a task's packets is that of their making, whatever way they came.
    packets.sort(key=lambda item: item[1].sequence)
    try:
        for number, packet, raw in packets:
            node, sink = sink_of(spec, number)
            if sink.to_client:
                to_client.append((number, subtask, raw))
                continue
            writer = writers.get(number)
            if writer is None:
                context_of = WriterContext(
                    spec.job_id, node.uid, subtask, epoch, uuid.uuid4().hex, spec.fence.epoch
                )
                writer = writers[number] = _guard(node, "open", sink.writer, context_of)
            _guard(node, "write", writer.write, packet.batch)
        prepared = {
            number: _guard(sink_of(spec, number)[0], "prepare", writer.prepare)
            for number, writer in writers.items()
        }
    except BaseException:
        for writer in writers.values():
            abort_quietly(writer)
        raise
    return encode((prepared, to_client))


def commit_epoch(data: bytes, messages: list[bytes], epoch: int) -> None:
    """All tasks of a batch are done: their parts become visible. May be called again for the same batch."""
    spec = load_spec(data)
    spec.fence.check()
    decoded: list[tuple[dict[int, Any], list[tuple[int, int, bytes]]]] = [
        decode(message) for message in messages
    ]
    committing = [
        (node, sink, [prepared[number] for prepared, _ in decoded if prepared.get(number) is not None])
        for number in range(len(spec.graph.sinks))
        for node, sink in [sink_of(spec, number)]
        if not sink.to_client and not sink.discards
    ]
    note_output(spec, epoch, {node.uid for node, _, parts in committing if parts})
    for node, sink, parts in committing:
        _guard(node, "commit", sink.commit_fenced, spec.job_id, node.uid, epoch, parts, spec.fence.epoch)
    to_client = [item for _, items in decoded for item in items]
    if to_client:
        path = Path(spec.client_dir)
        make_private_folder(path)
        write_atomically(path / f"{epoch:010d}.batch", pickle.dumps(to_client, 5))


def _guard(node: StreamNode, what: str, call: Any, *args: Any) -> Any:
    try:
        return call(*args)
    except BaseException as error:
        raise sink_failed(node.name, what, error) from error


def sink_of(spec: JobSpec, number: int) -> tuple[StreamNode, Sink[Any]]:
    node = spec.graph.sinks[number]
    assert isinstance(node.spec, SinkSpec)
    return node, node.spec.sink


class ClientFolder:
    """The driver's side: committed batches in order, each once."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._delivered = -1

    def forget_earlier(self) -> None:
        """What an earlier run of the program has committed was delivered then."""
        for _, path in self._files():
            os.unlink(path)

    def take(self) -> list[tuple[int, int, Any]]:
        """(sink, subtask, batch) of everything committed since the last call."""
        found: list[tuple[int, int, Any]] = []
        for epoch, path in self._files():
            if epoch > self._delivered:
                self._delivered = epoch
                with open(path, "rb") as file:
                    items = pickle.load(file)
                found.extend((number, subtask, decode_packet(raw).batch) for number, subtask, raw in items)
            # A batch that Spark repeats is written again under its old number: delivered once is enough.
            os.unlink(path)
        return found

    def _files(self) -> list[tuple[int, str]]:
        try:
            names = sorted(name for name in os.listdir(self._directory) if name.endswith(".batch"))
        except FileNotFoundError:
            return []
        return [(int(name.split(".")[0]), os.path.join(self._directory, name)) for name in names]
