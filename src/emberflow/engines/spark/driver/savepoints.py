"""Savepoints of Spark jobs: the state of the last committed micro-batch, read with Spark's own state reader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from emberflow.durable.location import CallStoreLocation
from emberflow.engines.job.manifest import Manifest
from emberflow.engines.job.savepoint_calls import CallsCopy
from emberflow.engines.spark.driver.source_offset import SourceOffset
from emberflow.engines.spark.wire.packet_rows import group_ids
from emberflow.errors import CheckpointUnusable, CorruptData, NotSupported, describe_cause
from emberflow.operators.group_layout import GroupLayout
from emberflow.savepoints.parts import add_entries, add_scope, step_of
from emberflow.savepoints.wiring import Wiring
from emberflow.savepoints.writer import SavepointWriter

_HOT = -1
_TRIES = 5


def write_savepoint(
    session: Any, home: Path, manifest: Manifest, wiring: Wiring, calls: CallStoreLocation, target: str
) -> int:
    """Creates a savepoint from a job's directory, whether its query is running or not; returns its batch. `calls` is the
    location of the durable call log."""
    checkpoint = home / "spark"
    with CallsCopy(calls.open_calls()) as copy:
        batch = _batch_with_calls(home, checkpoint, copy)
    with SavepointWriter(
        target,
        job_name=wiring.job_name,
        job_id=manifest.job_id,
        engine="spark",
        max_parallelism=manifest.max_parallelism,
        epoch=wiring.first_epoch + batch,
    ) as writer:
        copy.into(writer)
        for uid, offset in zip(wiring.sources, _offsets(checkpoint, batch), strict=True):
            positions = [item.position for item in offset.channels]
            writer.source(uid, positions, [bool(item.ended) for item in offset.channels])
        state = _State(session, checkpoint, batch)
        for uid in wiring.kinds:
            _add_step(state, manifest, wiring, uid, writer)
        writer.sinks(wiring.sinks)
    return batch


def _batch_with_calls(home: Path, checkpoint: Path, copy: CallsCopy) -> int:
    """The last committed batch, with everything recorded for it: the log drops what a batch no longer needs, so it is read
    again if another batch was committed in the meantime."""
    batch = last_batch(checkpoint, "commits")
    if batch is None:
        raise CheckpointUnusable(
            f"{home} has no committed micro-batch yet", way_out="let the job run before you take a savepoint"
        )
    for _ in range(_TRIES):
        copy.read()
        now = last_batch(checkpoint, "commits")
        if now is None or now == batch:
            return batch
        batch = now
    raise CheckpointUnusable(
        f"the job in {home} commits micro-batches faster than a savepoint can be started",
        way_out="stop the job with stop_with_savepoint(), or set a longer trigger_ms",
    )


def _add_step(state: _State, manifest: Manifest, wiring: Wiring, uid: str, writer: SavepointWriter) -> None:
    step = step_of(writer, wiring, uid)
    rows = state.rows(wiring.stages[uid], manifest.parallelism)
    numbers = group_ids(manifest.max_parallelism, manifest.parallelism)
    groups = {number: group for group, number in enumerate(numbers)}
    for kg, parts in groupby(rows, key=lambda row: row[0]):
        group = groups.get(kg)
        if group is None:
            raise CorruptData(f"the state of step {uid!r} has a key group {kg} that the job cannot have")
        blobs = {number: bytes(data) for _, number, data in parts}
        hot = blobs.pop(_HOT, None)
        layout = GroupLayout(hot, _Blobs(blobs), uid)
        if layout.saved is not None:
            add_scope(step, wiring, layout.saved, layout, group)
        add_entries(step, wiring, layout.all_entries(), layout, group)


class _State:
    """The state of a query at the end of a batch."""

    def __init__(self, session: Any, checkpoint: Path, batch: int) -> None:
        self._session = session
        self._checkpoint = str(checkpoint)
        self._batch = batch
        self._operators: dict[str, int] = {}
        found = session.read.format("state-metadata").load(self._checkpoint)
        for row in found.select("operatorId", "operatorProperties").collect():
            for item in json.loads(row[1])["stateVariables"]:
                self._operators[item["stateName"]] = row[0]

    def _variable(self, name: str) -> Any:
        reader = self._session.read.format("statestore").option("stateVarName", name)
        reader = reader.option("operatorId", self._operators[name]).option("batchId", self._batch)
        return reader.load(self._checkpoint)

    def rows(self, stage: int, partitions: int) -> Iterator[tuple[int, int, Any]]:
        """(group, number, blob), group by group: the hot blob, then cold buckets and pages."""
        from pyspark.sql import functions as F

        hot = self._variable(f"hot{stage}").select("key.kg", F.lit(_HOT).alias("k"), "value.v")
        cold = self._variable(f"cold{stage}").select("key.kg", "user_map_key.k", "user_map_value.v")
        ordered = hot.union(cold).repartition(partitions, "kg").sortWithinPartitions("kg", "k")
        yield from ordered.toLocalIterator()


def _offsets(checkpoint: Path, batch: int) -> list[SourceOffset]:
    """How far every source had been read at the end of the batch."""
    path = checkpoint / "offsets" / str(batch)
    try:
        lines = path.read_text().splitlines()[2:]
        found = [json.loads(line) for line in lines]
    except (OSError, ValueError) as error:
        raise CorruptData(
            f"the offsets of micro-batch {batch} in {path} cannot be read", cause=describe_cause(error)
        ) from error
    if any("channels" not in item for item in found):
        raise NotSupported(
            "a job that reads a streaming DataFrame has no savepoints: its position belongs to Spark",
            way_out="read the data with a source of emberflow",
        )
    return [SourceOffset.from_json(item) for item in found]


def last_batch(checkpoint: Path, folder: str) -> int | None:
    """The newest batch that was started (`offsets`) or committed (`commits`)."""
    try:
        names = [path.name for path in (checkpoint / folder).iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return None
    return max((int(name) for name in names if name.isdigit()), default=None)


class _Blobs:
    """A group's buckets and pages in memory."""

    def __init__(self, blobs: dict[int, bytes]) -> None:
        self._blobs = blobs

    def get(self, bucket: int) -> bytes | None:
        return self._blobs.get(bucket)

    def put(self, bucket: int, data: bytes) -> None:
        self._blobs[bucket] = data

    def remove(self, bucket: int) -> None:
        self._blobs.pop(bucket, None)
