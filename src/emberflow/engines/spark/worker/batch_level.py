"""Keyed stages in batch mode: each group's packets arrive together, and event time advances once, to its end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from emberflow.connectors.arrow_records import arrow_records
from emberflow.engines.spark.wire.arrow_rows import record_batches, rows_of
from emberflow.engines.spark.wire.job_spec import JobSpec
from emberflow.engines.spark.wire.packet_rows import STATS, PacketRow, count_row
from emberflow.engines.spark.worker.packet_delivery import deliver
from emberflow.engines.spark.worker.source_reader import FLUSH_RECORDS
from emberflow.engines.spark.worker.worker_process import WorkerStage, close_stage, open_stage
from emberflow.events.batch import MAX_WATERMARK, Batch
from emberflow.events.packets import decode_packet
from emberflow.operators.scope import Scope

_FLUSH_ROWS = 256


def run_level(data: bytes, stage_ids: list[int], batches: Iterator[Any]) -> Iterator[Any]:
    """A partition of one level, sorted by group."""
    from pyspark import TaskContext

    context = TaskContext.get()
    partition = context.partitionId() if context is not None else 0
    opened = {number: open_stage(data, number, partition) for number in stage_ids}
    for _, stage in opened.values():
        stage.exits.new_batch(partition << 32, 0)
        stage.clock.set(int(time.time() * 1000))
        stage.begin_batch(0)
    ready: list[PacketRow] = []
    rows = (row for batch in batches for row in rows_of(batch))
    for (_, dest), group in groupby(rows, key=lambda row: (row.kg, row.dest)):
        if dest not in opened:
            ready.extend(group)
        else:
            spec, stage = opened[dest]
            _run_group(spec, stage, dest, [row.packet for row in group])
            if stage.task.full:
                stage.calls.wait_while(lambda task=stage.task: task.full)
            if stage.task.calls_in_flight == 0:
                ready.extend(stage.exits.take_rows())
        if len(ready) >= _FLUSH_ROWS:
            yield from record_batches(ready)
            ready = []
    for _, stage in opened.values():
        ready.extend(stage.finish())
        stage.task.sync()
    for number in stage_ids:
        close_stage(data, number)
    yield from record_batches(ready)


def _run_group(spec: JobSpec, stage: WorkerStage, stage_id: int, packets: list[bytes]) -> None:
    head = stage.task.head
    assert head is not None
    channels = spec.input_channels(stage_id)
    head.enter(Scope(channels=channels, idle_ms={}, clock=stage.clock))
    deliver(head, [decode_packet(packet) for packet in packets])
    for channel in channels:
        head.receive(head.input_of[channel[0]], channel, Batch([]), MAX_WATERMARK)


def feed_frame(data: bytes, stage_id: int, batches: Iterator[Any]) -> Iterator[Any]:
    """A DataFrame as a source: sends its rows, as dictionaries, through the stage's chain."""
    from pyspark import TaskContext

    context = TaskContext.get()
    partition = context.partitionId() if context is not None else 0
    _, stage = open_stage(data, stage_id, partition)
    stage.clock.set(int(time.time() * 1000))
    stage.exits.new_batch(partition << 32, partition)
    stage.task.new_channel()
    count = waiting = 0
    for batch in batches:
        values = arrow_records(batch)
        count += len(values)
        waiting += len(values)
        if values:
            stage.task.feed(Batch(values))
        if waiting >= FLUSH_RECORDS:
            waiting = 0
            yield from record_batches(stage.finish())
    rows = stage.finish()
    rows.append(count_row(partition, STATS, count))
    yield from record_batches(rows)
