"""Reads a source inside Spark's tasks: records go through the stage's chain and are sent as packet rows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from emberflow.connectors.source import Chunk, Position, Source, read_between, read_safely
from emberflow.engines.spark.wire.arrow_rows import record_batches
from emberflow.engines.spark.wire.job_spec import JobSpec
from emberflow.engines.spark.wire.packet_rows import STATS, count_row
from emberflow.engines.spark.wire.source_share import Share
from emberflow.engines.spark.worker.worker_process import WorkerStage, close_stage, open_stage
from emberflow.events.batch import Batch
from emberflow.events.key_groups import stable_hash
from emberflow.plan.graphs.job_graph import source_of

FLUSH_RECORDS = 200_000
"""A task sends what it has packed after this many records, so that its memory does not grow with the batch."""


def read_share(data: bytes, stage_id: int, share: Share, task_number: int) -> Iterator[Any]:
    """A task's records, processed by the stage's chain, as packet rows in Arrow batches."""
    spec, stage = open_stage(data, stage_id, share.channel)
    source = source_of(spec.graph, spec.graph.stages[stage_id]).source
    chunks = share.chunks
    if chunks is None:
        chunks_in: Iterator[Chunk[Any]] = read_between(
            source, share.channel, share.start, share.stop, share.limit
        )
    else:
        chunks_in = iter(chunks)
    # The same when the batch is repeated, another one for the next.
    stage.exits.sent_by(share.channel, spec.channels[stage_id], stable_hash(repr(share.start)))
    # Tasks that share a channel do not know each other's progress.
    stage.task.new_channel(None if spec.at_end[stage_id] else share.channel, share.start)
    yield from _feed(spec, stage, chunks_in, share.channel, share.ends, task_number)
    if share.ends:
        close_stage(data, stage_id)


def read_whole(data: bytes, stage_id: int, channel: int, task_number: int) -> Iterator[Any]:
    """Batch mode: reads a channel from beginning to end."""
    spec, stage = open_stage(data, stage_id, channel)
    source = source_of(spec.graph, spec.graph.stages[stage_id]).source
    chunks = _until_end(source, channel, spec.start_positions[stage_id][channel][0])
    stage.exits.sent_by(channel, spec.channels[stage_id])
    stage.task.new_channel()
    yield from _feed(spec, stage, chunks, channel, True, task_number)
    close_stage(data, stage_id)


def _until_end(source: Source[Any], channel: int, position: Position) -> Iterator[Chunk[Any]]:
    while True:
        for chunk in read_safely(source, channel, position, FLUSH_RECORDS):
            yield chunk
            position = chunk.position
            if chunk.end:
                return


def _feed(
    spec: JobSpec,
    stage: WorkerStage,
    chunks: Iterator[Chunk[Any]],
    channel: int,
    ends: bool,
    task_number: int,
) -> Iterator[Any]:
    stage.clock.set(int(time.time() * 1000))
    stage.exits.new_batch(0, task_number)
    stage.exits.select_channel(channel)
    count = waiting = 0
    for chunk in chunks:
        if chunk.values:
            stage.task.feed(Batch(chunk.values, chunk.timestamps))
        count += len(chunk.values)
        waiting += len(chunk.values)
        if waiting >= FLUSH_RECORDS:
            waiting = 0
            yield from record_batches(stage.finish())
    if ends and not spec.batch:
        stage.task.end_channel()
    rows = stage.finish()
    rows.append(count_row(task_number, STATS, count))
    yield from record_batches(rows)
