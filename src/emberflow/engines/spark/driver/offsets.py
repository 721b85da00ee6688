"""Which records a micro-batch contains: the driver side of a streaming source.

Spark passes and stores offsets as JSON; their contents are in `source_offset.py`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from emberflow.connectors.source import Chunk, Source, read_between, read_safely
from emberflow.durable.log import StoredCallLog
from emberflow.engines.spark.driver.source_admission import PressureFile, SourceAdmission, limits_behind
from emberflow.engines.spark.driver.source_offset import ChannelOffset, Json, SourceOffset
from emberflow.engines.spark.driver.ticks import Ticks
from emberflow.engines.spark.wire.job_spec import load_spec
from emberflow.engines.spark.wire.source_share import Share
from emberflow.errors import CheckpointUnusable
from emberflow.plan.graphs.job_graph import source_of


class OffsetPlanner:
    """Driver side of a streaming source: one per query start."""

    def __init__(self, data: bytes, stage_id: int) -> None:
        self._spec = load_spec(data)
        stage = self._spec.graph.stages[stage_id]
        self._source = source_of(self._spec.graph, stage).source
        self._count = self._spec.channels[stage_id]
        self._limit = max(1, self._spec.max_records // self._count)
        self._read: dict[str, tuple[Chunk[Any], ...]] = {}
        self._started_ms: dict[int, float] = {}
        self._first = True
        self._begins = self._spec.start_positions[stage_id]
        self._log: StoredCallLog | None = None
        self._followed: SourceOffset | None = None
        self._ticks: Ticks | None = None
        self._admission: SourceAdmission | None = None
        self._held = False
        """Whether the current plan has fewer records than the source could provide."""
        self._pressure = PressureFile(self._spec.client_dir, stage_id)
        limits = limits_behind(self._spec, stage_id)
        if self._spec.calls is not None and (limits or self._spec.ticking_stage == stage_id):
            log = StoredCallLog(self._spec.calls.open_calls(), fence=self._spec.fence)
            self._log = log
            self._admission = SourceAdmission(limits, log) if limits else None
            self._ticks = Ticks(log) if self._spec.ticking_stage == stage_id else None

    def initial(self) -> Json:
        """The offset before the first batch."""
        channels = tuple(ChannelOffset(position, ended) for position, ended in self._begins)
        return SourceOffset(channels=channels, initial=True).to_json()

    def latest(self, start: Json) -> Json:
        """Where the next batch ends; `start` itself if there is no batch to run."""
        return self._latest(SourceOffset.from_json(start)).to_json()

    def _latest(self, start: SourceOffset) -> SourceOffset:
        # A driver that was replaced must not start a batch.
        self._spec.fence.check()
        if self._spec.hold_file and os.path.exists(self._spec.hold_file):
            return start
        if self._log is not None and start != self._followed:
            # A batch was committed: account for what it has parked before planning the next one.
            self._followed = start
            self._log.follow(at_once=True)
        self._check_channels(start)
        before = [replace(item, begin=None) for item in start.channels]
        channels = self._plan(before)
        first, self._first = self._first, False
        again = first and start.ended
        # State from a savepoint may have something to do before there is any input.
        again = again or (first and self._spec.from_savepoint and start.run == 0)
        # After a restart, groups with parked runs are checked once, whatever the log says about them.
        looks = first and not start.initial
        at_rest = not again and channels == before
        if at_rest and not (self._ticks is not None and (self._ticks.due() or looks)):
            return start
        if start.initial:
            # Where the batch started, in the offset that Spark does store.
            channels = [
                replace(after, begin=(item.position,)) for item, after in zip(before, channels, strict=True)
            ]
        ticked = at_rest or start.tick is not None
        return SourceOffset(
            channels=tuple(channels),
            run=start.run + 1 if again else start.run,
            tick=(start.tick or 0) + (1 if at_rest else 0) if ticked else None,
        )

    def _check_channels(self, *offsets: SourceOffset) -> None:
        """A query that the user has started may continue from a checkpoint of another version of the program."""
        for offset in offsets:
            if len(offset.channels) != self._count:
                raise CheckpointUnusable(
                    f"the query's checkpoint has {len(offset.channels)} channels of the source "
                    f"{self._source.describe()}, but the program now has {self._count}",
                    way_out="give the program the parallelism that it had (env.set_parallelism), or the query "
                    "another checkpointLocation",
                    committed="the checkpoint was not changed",
                )

    def _plan(self, before: list[ChannelOffset]) -> list[ChannelOffset]:
        """Where the channels' next records end, within the limits of the agents downstream of the source."""
        most = self._limit
        if self._admission is not None and any(not item.ended for item in before):
            most = min(most, -(-self._admission.room() // self._count))
        self._held = False
        after = [self._next(number, item, most) or item for number, item in enumerate(before)]
        if self._admission is not None:
            self._pressure.note(held=self._held)
        return after

    def _next(self, channel: int, item: ChannelOffset, most: int) -> ChannelOffset | None:
        """Where the channel's next records end; None if there are none yet (an equal offset means no batch)."""
        if item.ended:
            return None
        position = item.position
        now_ms = time.monotonic() * 1000
        began = self._started_ms.setdefault(channel, now_ms - self._source.due_ms(channel, position))
        due = self._source.available(channel, position, int(now_ms - began))
        wanted = self._limit if due is None else min(due, self._limit)
        limit = min(wanted, most)
        if limit <= 0:
            self._held = self._held or wanted > 0
            return None
        planned = self._source.plan(channel, position, limit)
        if planned is not None:
            self._held = self._held or (limit < wanted and not planned[1] and planned[0] != position)
            return ChannelOffset(*planned, limit)
        chunks = tuple(_read_about(self._source, channel, position, limit))
        if not chunks:
            return None
        self._held = self._held or (limit < wanted and not chunks[-1].end)
        self._read = {key: value for key, value in self._read.items() if not key.startswith(f"{channel}:")}
        self._read[_range_key(channel, position, chunks[-1].position)] = chunks
        return ChannelOffset(chunks[-1].position, chunks[-1].end, limit)

    def shares(self, start: Json, end: Json) -> list[Share]:
        """What the tasks of the batch between two offsets read."""
        first, last = SourceOffset.from_json(start), SourceOffset.from_json(end)
        self._check_channels(first, last)
        made: list[Share] = []
        for channel, (before, after) in enumerate(zip(first.channels, last.channels, strict=True)):
            if after.begin is not None:
                # Where the batch started when it was planned; `start` may have been computed again since.
                before = replace(before, position=after.begin[0])
            if before.same_place(after) and first.run == last.run:
                continue
            chunks = self._driver_chunks(channel, before.position, after.position, after.limit)
            made.append(Share(channel, before.position, after.position, after.ended, after.limit, chunks))
        return made

    def _driver_chunks(
        self, channel: int, before: Any, after: Any, limit: int
    ) -> tuple[Chunk[Any], ...] | None:
        """Records that were read here to find the end of the batch; read again if the batch is repeated after a restart."""
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


def _read_about(source: Source[Any], channel: int, position: Any, limit: int) -> Iterator[Chunk[Any]]:
    count = 0
    for chunk in read_safely(source, channel, position, limit):
        yield chunk
        count += len(chunk.values)
        if chunk.end or count >= limit:
            return
