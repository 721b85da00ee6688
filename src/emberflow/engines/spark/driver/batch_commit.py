"""Commits a micro-batch: makes what its tasks prepared visible in all sinks.

Called by Spark on the driver after all tasks of a batch have ended, possibly again for the same batch. Records for the
driver (print, collect) are committed as one file per batch in the job's client folder, which the driver reads in order
(`ClientFolder`).
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

from emberflow.engines.spark.driver.sink_marks import note_output
from emberflow.engines.spark.wire.job_sinks import guard_sink, sink_of
from emberflow.engines.spark.wire.job_spec import load_spec
from emberflow.engines.spark.wire.task_output import ClientPacket, TaskOutput
from emberflow.events.packets import decode_packet
from emberflow.events.private_files import make_private_folder
from emberflow.events.stored_files import write_atomically


def commit_epoch(data: bytes, messages: list[bytes], batch_id: int) -> None:
    """Called when all tasks of a batch have ended, possibly again for the same batch: makes their parts visible."""
    spec = load_spec(data)
    spec.fence.check()
    outputs = [TaskOutput.from_bytes(message) for message in messages]
    committing = [
        (node, sink, [task.prepared[number] for task in outputs if task.prepared.get(number) is not None])
        for number in range(len(spec.graph.sinks))
        for node, sink in [sink_of(spec, number)]
        if not sink.to_client and not sink.discards
    ]
    note_output(spec, batch_id, {node.uid for node, _, parts in committing if parts})
    for node, sink, parts in committing:
        guard_sink(
            node, "commit", sink.commit_fenced, spec.job_id, node.uid, batch_id, parts, spec.fence.epoch
        )
    to_client = [tuple(item) for task in outputs for item in task.to_client]
    if to_client:
        path = Path(spec.client_dir)
        make_private_folder(path)
        write_atomically(path / f"{batch_id:010d}.batch", pickle.dumps(to_client, 5))


class ClientFolder:
    """The driver's side: reads committed batches in order, each once."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._delivered = -1

    def forget_earlier(self) -> None:
        """Discards what an earlier run of the program committed; it was delivered then."""
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
                packets = [ClientPacket(*item) for item in items]
                found += [(item.sink, item.subtask, decode_packet(item.packet).batch) for item in packets]
            # A batch that Spark repeats is written again under its old number: deliver it only once.
            os.unlink(path)
        return found

    def _files(self) -> list[tuple[int, str]]:
        try:
            names = sorted(name for name in os.listdir(self._directory) if name.endswith(".batch"))
        except FileNotFoundError:
            return []
        return [(int(name.split(".")[0]), os.path.join(self._directory, name)) for name in names]
