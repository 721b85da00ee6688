"""Our sources as Spark data sources: which records a batch has (driver side), and reading them (tasks).

An offset is `{"channels": [[position, ended, limit], …], "run": n}`; `limit` is the one that the position was planned
with, so that a repeated batch is read in the same chunks. `run` moves once when a finished job is started again, so
that Spark runs one (empty) batch and the driver sees the end.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from emberflow.connectors.source import Chunk, Source
from emberflow.engines.spark.arrow_rows import record_batches
from emberflow.engines.spark.job_spec import JobSpec, load_spec
from emberflow.engines.spark.packing import Row
from emberflow.engines.spark.rows import STATS
from emberflow.engines.spark.worker import WorkerStage, open_stage
from emberflow.errors import EmberflowError, SourceFailed, describe_cause
from emberflow.events.batch import MIN_WATERMARK, Batch
from emberflow.plan.job_graph import source_of

FLUSH_RECORDS = 200_000
"""A task sends what it has packed after this many records, so that its memory does not grow with the batch."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one task reads: a channel from one position to another. `chunks` are set if the driver had to read them."""

    channel: int
    start: Any
    stop: Any
    ends: bool
    limit: int
    chunks: tuple[Chunk, ...] | None = None


class OffsetPlanner:
    """Driver side of a streaming source: one per query start."""

    def __init__(self, data: bytes, stage_id: int) -> None:
        self._spec = load_spec(data)
        stage = self._spec.graph.stages[stage_id]
        self._source = source_of(self._spec.graph, stage).source
        self._count = self._spec.channels[stage_id]
        self._limit = max(1, self._spec.max_records // self._count)
        self._read: dict[str, tuple[Chunk, ...]] = {}
        self._started_ms: dict[int, float] = {}
        self._first = True

    def initial(self) -> dict[str, Any]:
        return {"channels": [[self._source.start(channel), False, 0] for channel in range(self._count)], "run": 0}

    def latest(self, start: dict[str, Any]) -> dict[str, Any]:
        channels = [self._next(number, item) or item for number, item in enumerate(start["channels"])]
        first, self._first = self._first, False
        again = first and all(ended for _, ended, _ in start["channels"])
        return {"channels": channels, "run": start["run"] + 1 if again else start["run"]}

    def _next(self, channel: int, item: list[Any]) -> list[Any] | None:
        """Where the channel's next records end; None if there are none yet (an equal offset means: no batch)."""
        position, ended, _ = item
        if ended:
            return None
        now_ms = time.time() * 1000
        began = self._started_ms.setdefault(channel, now_ms - self._source.due_ms(channel, position))
        due = self._source.available(channel, position, int(now_ms - began))
        limit = self._limit if due is None else min(due, self._limit)
        if limit <= 0:
            return None
        planned = self._source.plan(channel, position, limit)
        if planned is not None:
            return [*planned, limit]
        chunks = tuple(_read_about(self._source, channel, position, limit))
        if not chunks:
            return None
        self._read = {key: value for key, value in self._read.items() if not key.startswith(f"{channel}:")}
        self._read[_range_key(channel, position, chunks[-1].position)] = chunks
        return [chunks[-1].position, chunks[-1].end, limit]

    def shares(self, start: dict[str, Any], end: dict[str, Any]) -> list[Share]:
        made: list[Share] = []
        pairs = zip(start["channels"], end["channels"], strict=True)
        for channel, ((before, was_ended, _), (after, ended, limit)) in enumerate(pairs):
            if before == after and was_ended == ended and start["run"] == end["run"]:
                continue
            chunks = self._driver_chunks(channel, before, after, limit)
            made.append(Share(channel, before, after, ended, limit, chunks))
        return made

    def _driver_chunks(self, channel: int, before: Any, after: Any, limit: int) -> tuple[Chunk, ...] | None:
        """Records that were read here to find the batch's end; read again if the batch is repeated after a restart."""
        if before == after:
            return ()
        if self._source.plan(channel, before, limit) is not None:
            return None
        known = self._read.get(_range_key(channel, before, after))
        if known is not None:
            return known
        return tuple(read_between(self._source, channel, before, after, limit))


def _range_key(channel: int, before: Any, after: Any) -> str:
    return f"{channel}:{json.dumps([before, after], sort_keys=True)}"


def _read_about(source: Source, channel: int, position: Any, limit: int) -> Iterator[Chunk]:
    count = 0
    for chunk in _safely(source, channel, position, limit):
        yield chunk
        count += len(chunk.values)
        if chunk.end or count >= limit:
            return


def read_between(source: Source, channel: int, start: Any, stop: Any, limit: int) -> Iterator[Chunk]:
    """Exactly the chunks between two positions."""
    if start == stop:
        return
    wanted = json.dumps(stop, sort_keys=True)
    position = start
    for chunk in _safely(source, channel, start, limit):
        yield chunk
        position = chunk.position
        if json.dumps(position, sort_keys=True) == wanted:
            return
    raise SourceFailed(
        f"the source {source.describe()} ended at position {position!r} instead of {stop!r}",
        way_out="a source must return the same records when it is read again from the same position",
    )


def _safely(source: Source, channel: int, position: Any, limit: int) -> Iterator[Chunk]:
    try:
        yield from source.read(channel, position, limit)
    except (EmberflowError, GeneratorExit):
        raise
    except Exception as error:
        raise SourceFailed(
            f"the source {source.describe()} failed behind position {position!r}",
            cause=describe_cause(error),
            way_out="mend the source and run the program again; it starts at the last committed batch",
        ) from error


def read_share(data: bytes, stage_id: int, share: Share, task_number: int) -> Iterator[Any]:
    """A task's records, through the stage's chain, as packet rows in Arrow batches."""
    spec, stage = open_stage(data, stage_id, share.channel)
    source = source_of(spec.graph, spec.graph.stages[stage_id]).source
    chunks = share.chunks
    if chunks is None:
        chunks_in: Iterator[Chunk] = read_between(source, share.channel, share.start, share.stop, share.limit)
    else:
        chunks_in = iter(chunks)
    yield from _feed(spec, stage, chunks_in, share.channel, share.ends, task_number)


def read_whole(data: bytes, stage_id: int, channel: int, task_number: int) -> Iterator[Any]:
    """Batch mode: a channel from its beginning to its end."""
    spec, stage = open_stage(data, stage_id, channel)
    source = source_of(spec.graph, spec.graph.stages[stage_id]).source
    # Positions may hold what channels() found out about the split, so ask for it first, as on the driver.
    source.channels(spec.parallelism)
    chunks = _until_end(source, channel)
    yield from _feed(spec, stage, chunks, channel, True, task_number)


def _until_end(source: Source, channel: int) -> Iterator[Chunk]:
    position = source.start(channel)
    while True:
        for chunk in _safely(source, channel, position, FLUSH_RECORDS):
            yield chunk
            position = chunk.position
            if chunk.end:
                return


def _feed(
    spec: JobSpec, stage: WorkerStage, chunks: Iterator[Chunk], channel: int, ends: bool, task_number: int
) -> Iterator[Any]:
    stage.clock.set(int(time.time() * 1000))
    stage.exits.new_batch(0, task_number)
    stage.exits.select_channel(channel)
    stage.task.new_channel()
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
    rows: list[Row] = stage.finish()
    rows.append((task_number, STATS, count, MIN_WATERMARK, b""))
    yield from record_batches(rows)
