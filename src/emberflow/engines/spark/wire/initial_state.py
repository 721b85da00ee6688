"""A savepoint's keyed state as rows for the initial state of `transformWithState` in a new query.

The frames of a savepoint are sent as they are; each group unpacks its own. They arrive in any order, so each is added to
what is already there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from emberflow.engines.spark.wire.job_spec import JobSpec
from emberflow.engines.spark.wire.packet_rows import group_ids
from emberflow.events.batch import MIN_WATERMARK
from emberflow.events.codecs import decode, encode
from emberflow.events.key_groups import KeyGroups
from emberflow.operators.partitions.operator_state import redistributed
from emberflow.operators.scope import SavedScope, Scope
from emberflow.plan.graphs.job_graph import Stage
from emberflow.plan.operator_state import keeps_operator_state
from emberflow.savepoints.form import Frame, FrameKind, pack_entry, unpack_entries, unpack_timers
from emberflow.savepoints.paged_values import to_be_paged
from emberflow.savepoints.reader import SavepointReader
from emberflow.savepoints.restore import SavepointStart
from emberflow.savepoints.wiring import GENERATOR
from emberflow.state.entry import Entry

SCHEMA = "kg int, dest int, kind int, body binary"
_CLOCK = 0
"""The kind of a row with event time; all others are kinds of frames."""


def driver_rows(
    start: SavepointStart, spec: JobSpec, stages: list[Stage]
) -> list[tuple[int, int, int, bytes]]:
    """The event time for every group of these stages, and the few keys whose group has changed."""
    rows: list[tuple[int, int, int, bytes]] = []
    numbers = spec.group_numbers
    for stage in stages:
        uid = spec.graph.stream_graph.node(stage.head).uid
        clock = encode(start.clock(uid, spec.input_channels(stage.id)))
        rows.extend((numbers[group], stage.id, _CLOCK, clock) for group in spec.groups_of(stage.id))
        if (
            uid in start.steps
            and spec.graph.traits_of(stage).shares_state
            and not keeps_operator_state(spec.graph, stage)
        ):
            for key, values in start.reader.shared(uid):
                body = pack_entry(encode(key), encode(values))
                kind = int(FrameKind.ENTRIES)
                rows.extend((numbers[group], stage.id, kind, body) for group in spec.groups_of(stage.id))
        if uid in start.steps and keeps_operator_state(spec.graph, stage):
            tasks = spec.groups_of(stage.id)
            for task, entry in redistributed(dict(start.reader.entries(uid)), len(tasks)).items():
                body = pack_entry(encode(task), encode(dict(entry)))
                rows.append((numbers[task], stage.id, int(FrameKind.ENTRIES), body))
            for key, values in start.reader.shared(uid):
                body = pack_entry(encode(key), encode(values))
                rows.extend((numbers[task], stage.id, int(FrameKind.ENTRIES), body) for task in tasks)
            continue
        if uid in start.steps and start.reader.manifest.steps[uid].kind == GENERATOR:
            groups = KeyGroups(spec.max_parallelism)
            for key, entry in start.entries(uid):
                body = pack_entry(encode(key), encode(dict(entry)))
                rows.append((numbers[groups[key]], stage.id, int(FrameKind.ENTRIES), body))
    return rows


def files_of(start: SavepointStart, spec: JobSpec, stages: list[Stage]) -> list[tuple[str, int]]:
    """The state files, each with the stage it belongs to."""
    found: list[tuple[str, int]] = []
    for stage in stages:
        uid = spec.graph.stream_graph.node(stage.head).uid
        if uid in start.steps:
            summary = start.reader.manifest.steps[uid]
            if summary.kind != GENERATOR and not keeps_operator_state(spec.graph, stage):
                found.extend((name, stage.id) for name in summary.files)
    return found


def read_files(path: str, max_parallelism: int, parallelism: int, batches: Iterator[Any]) -> Iterator[Any]:
    """For mapInArrow: file names in, rows with their frames out."""
    import pyarrow as pa

    reader = SavepointReader(path)
    numbers = group_ids(max_parallelism, parallelism)
    for batch in batches:
        for name, stage in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            for frame in reader.frames_of(name):
                if frame.kind is FrameKind.SHARED:
                    continue  # The driver has sent it to every group.
                yield pa.RecordBatch.from_arrays(
                    [
                        pa.array([numbers[frame.group]], pa.int32()),
                        pa.array([stage], pa.int32()),
                        pa.array([int(frame.kind)], pa.int32()),
                        pa.array([frame.body], pa.binary()),
                    ],
                    names=["kg", "dest", "kind", "body"],
                )


def fill(scope: Scope, kind: int, body: bytes) -> None:
    """Adds one row to its group's scope."""
    if kind == _CLOCK:
        _set_clock(scope, decode(body))
        return
    frame = Frame(FrameKind(kind), 0, 0, body)
    if frame.kind is FrameKind.ENTRIES:
        for key, values in unpack_entries(body):
            entry = Entry(decode(values))
            to_be_paged(entry)
            entry.dirty = True
            scope.entries[decode(key)] = entry
    elif frame.kind is FrameKind.PARKED:
        for key, action in unpack_entries(body):
            scope.parked[decode(key)] = decode(action)
    else:
        queues = {
            FrameKind.EVENT_TIMERS: scope.event_timers,
            FrameKind.PROCESSING_TIMERS: scope.processing_timers,
            FrameKind.CLEANUP: scope.cleanup,
        }
        timers = queues[frame.kind]
        for time_ms, key in unpack_timers(body):
            timers.register(time_ms, decode(key))


def _set_clock(scope: Scope, saved: SavedScope) -> None:
    scope.watermark = saved.watermark
    scope.ended = saved.ended
    scope.forms = saved.forms
    for channel, watermark, _ in saved.channels:
        if watermark > MIN_WATERMARK:
            scope.channels.advance(channel, watermark)


def initial_rows(
    session: Any, start: SavepointStart, spec: JobSpec, stages: list[Stage], make_mapper: Any
) -> Any:
    """The DataFrame for the stages of one level. `make_mapper(module, function, *args)` makes a function for
    mapInArrow."""
    rows = session.createDataFrame(driver_rows(start, spec, stages), SCHEMA)
    files = files_of(start, spec, stages)
    if not files:
        return rows
    mapper = make_mapper(
        "emberflow.engines.spark.wire.initial_state",
        "read_files",
        str(start.reader.path.resolve()),
        spec.max_parallelism,
        spec.parallelism,
    )
    names = session.createDataFrame(files, "name string, dest int").repartition(max(1, len(files)))
    return rows.union(names.mapInArrow(mapper, SCHEMA))
