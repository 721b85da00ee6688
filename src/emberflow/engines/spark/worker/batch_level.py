"""Keyed stages in batch mode: each group's packets arrive together, and event time advances once, to its end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from emberflow.connectors.arrow_records import arrow_records
from emberflow.engines.spark.wire.arrow_rows import record_batches, rows_of
from emberflow.engines.spark.wire.job_spec import JobSpec, load_spec
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
    opened = _Opened(data, stage_ids, partition)
    ready: list[PacketRow] = []
    rows = (row for batch in batches for row in rows_of(batch))
    for (kg, dest), group in groupby(rows, key=lambda row: (row.kg, row.dest)):
        if dest not in stage_ids:
            ready.extend(group)
        else:
            stage = opened.stage(dest, kg)
            opened.lead(stage, dest, kg)
            _run_group(opened.spec, stage, dest, [row.packet for row in group])
            if stage.task.full:
                stage.calls.wait_while(lambda task=stage.task: task.full)
            if stage.task.calls_in_flight == 0:
                ready.extend(stage.exits.take_rows())
        if len(ready) >= _FLUSH_ROWS:
            yield from record_batches(ready)
            ready = []
    for stage in opened.stages.values():
        ready.extend(stage.finish())
        stage.task.sync()
    for number, task in opened.stages:
        close_stage(data, number, task)
    yield from record_batches(ready)


class _Opened:
    """The stages of a partition; of a partitioned stage, the tasks that have records."""

    def __init__(self, data: bytes, stage_ids: list[int], partition: int) -> None:
        self._data = data
        self._partition = partition
        self.spec = load_spec(data)
        self._groups = {number: group for group, number in enumerate(self.spec.group_numbers)}
        self.stages: dict[tuple[int, int | None], WorkerStage] = {}
        for number in stage_ids:
            if self.spec.tasks_of(number) is None:
                self._open(number, None)

    def stage(self, number: int, kg: int) -> WorkerStage:
        task = None if self.spec.tasks_of(number) is None else self._groups[kg]
        found = self.stages.get((number, task))
        return self._open(number, task) if found is None else found

    def lead(self, stage: WorkerStage, number: int, kg: int) -> None:
        if stage.task.head is not None:
            leads = self._groups[kg] in self.spec.leading_groups
            stage.task.head.leads = leads or self.spec.tasks_of(number) is not None

    def _open(self, number: int, task: int | None) -> WorkerStage:
        stage = open_stage(self._data, number, self._partition if task is None else task)[1]
        stage.exits.new_batch(self._partition << 32, 0)
        stage.clock.set(int(time.time() * 1000))
        stage.begin_batch(0)
        if task is None:
            stage.exits.sent_by(self._partition, self.spec.parallelism)
        else:
            stage.exits.sent_by(task, self.spec.tasks_of(number) or 1)
        self.stages[(number, task)] = stage
        return stage


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
