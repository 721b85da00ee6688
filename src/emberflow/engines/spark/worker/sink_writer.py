"""Sinks inside Spark's tasks: records are written and prepared; `driver/batch_commit.py` makes them visible.

Records for the driver (print, collect) are sent inside the commit messages.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

from emberflow.connectors.sink import SinkWriter, WriterContext, abort_quietly
from emberflow.engines.spark.wire.arrow_rows import rows_of
from emberflow.engines.spark.wire.job_sinks import guard_sink, sink_of
from emberflow.engines.spark.wire.job_spec import load_spec
from emberflow.engines.spark.wire.packet_rows import is_for_sink, sink_number
from emberflow.engines.spark.wire.task_output import ClientPacket, TaskOutput
from emberflow.events.packets import decode_packet


def write_task(data: bytes, batches: Iterator[Any]) -> bytes:
    """Writes one task's records; returns the commit message."""
    from pyspark import TaskContext

    spec = load_spec(data)
    spec.fence.check_if_reachable()
    context = TaskContext.get()
    subtask = context.partitionId() if context is not None else 0
    batch_id = context.getLocalProperty("streaming.sql.batchId") if context is not None else None
    epoch = int(batch_id) if batch_id else 0
    writers: dict[int, SinkWriter] = {}
    to_client: list[ClientPacket] = []
    packets: list[tuple[int, Any, bytes]] = []
    for batch in batches:
        for row in rows_of(batch):
            # A sink that discards its records gets rows without a packet: only their count is of use, to Spark.
            if is_for_sink(row.dest) and row.packet:
                packets.append((sink_number(row.dest), decode_packet(row.packet), row.packet))
    # Restore the order in which a task created its packets, whichever way they came.
    packets.sort(key=lambda item: item[1].sequence)
    try:
        for number, packet, raw in packets:
            node, sink = sink_of(spec, number)
            if sink.to_client:
                to_client.append(ClientPacket(number, subtask, raw))
                continue
            writer = writers.get(number)
            if writer is None:
                context_of = WriterContext(
                    spec.job_id, node.uid, subtask, epoch, uuid.uuid4().hex, spec.fence.epoch
                )
                writer = writers[number] = guard_sink(node, "open", sink.writer, context_of)
            guard_sink(node, "write", writer.write, packet.batch)
        prepared = {
            number: guard_sink(sink_of(spec, number)[0], "prepare", writer.prepare)
            for number, writer in writers.items()
        }
    except BaseException:
        for writer in writers.values():
            abort_quietly(writer)
        raise
    return TaskOutput(prepared, to_client).to_bytes()
