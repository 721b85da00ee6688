"""Sinks on the local engine: one writer per task and epoch; epochs end at checkpoints."""

from __future__ import annotations

import uuid
from typing import Any

from emberflow.connectors.sink import SinkWriter, WriterContext, abort_quietly, sink_failed
from emberflow.events.batch import Batch
from emberflow.plan.graphs.stream_graph import StreamNode
from emberflow.plan.job_contract import JobMetrics
from emberflow.plan.specs import SinkSpec


class SinkExit:
    """A sink at the end of a task's chain."""

    def __init__(
        self,
        node: StreamNode,
        subtask: int,
        job_id: str,
        metrics: JobMetrics,
        fencing_epoch: int,
        *,
        immediate: bool,
    ) -> None:
        assert isinstance(node.spec, SinkSpec)
        self._sink = node.spec.sink
        self._node = node
        self._subtask = subtask
        self._job_id = job_id
        self._metrics = metrics
        self._fencing_epoch = fencing_epoch
        self._immediate = immediate
        self._writer: SinkWriter | None = None
        self._held: list[Batch] = []
        self.epoch = 0

    def on_batch(self, batch: Batch) -> None:
        self._metrics.records_out += len(batch)
        if self._sink.discards:
            return
        try:
            if self._sink.to_client:
                if self._immediate:
                    self._sink.deliver(batch, self._subtask)
                else:
                    self._held.append(batch)
                return
            if self._writer is None:
                context = WriterContext(
                    self._job_id,
                    self._node.uid,
                    self._subtask,
                    self.epoch,
                    uuid.uuid4().hex,
                    self._fencing_epoch,
                )
                self._writer = self._sink.writer(context)
            self._writer.write(batch)
        except BaseException as error:
            raise sink_failed(self._node.name, "write", error) from error

    def on_watermark(self, watermark: int) -> None:
        """Sinks ignore event time."""

    def prepare(self) -> Any:
        """Ends the epoch; returns what must be committed once the checkpoint is durable."""
        writer, self._writer = self._writer, None
        try:
            return None if writer is None else writer.prepare()
        except BaseException as error:
            raise sink_failed(self._node.name, "prepare", error) from error

    def deliver_held(self) -> None:
        held, self._held = self._held, []
        for batch in held:
            self._sink.deliver(batch, self._subtask)

    def abort(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            abort_quietly(writer)

    @property
    def uid(self) -> str:
        return self._node.uid

    def commit(self, epoch: int, prepared: list[Any]) -> None:
        try:
            self._sink.commit_fenced(self._job_id, self._node.uid, epoch, prepared, self._fencing_epoch)
        except BaseException as error:
            raise sink_failed(self._node.name, "commit", error) from error
