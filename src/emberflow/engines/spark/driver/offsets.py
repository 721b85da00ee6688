"""Which records a micro-batch has: the driver side of a streaming source.

An offset is `{"channels": [[position, ended, limit], …], "run": n}`; `limit` is the one that the position was planned
with, so that a repeated batch is read in the same chunks. That of a query's first batch has a fourth item, where the
batch began: Spark does not store it, and asks for it again if the batch is repeated. `initial` marks an offset from before
the first batch. `run` moves once when a finished job is started again, so that
Spark runs one (empty) batch and the driver sees the end. `tick` moves when a batch has to run without input.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import Any

from emberflow.connectors.source import Chunk, Source, read_between, read_safely
from emberflow.durable.log import StoredCallLog
from emberflow.engines.spark.driver.source_admission import PressureFile, SourceAdmission, limits_behind
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
        self._followed: dict[str, Any] | None = None
        self._ticks: Ticks | None = None
        self._admission: SourceAdmission | None = None
        self._held = False
        """Whether the plan at hand has less than the source could give."""
        self._pressure = PressureFile(self._spec.client_dir, stage_id)
        limits = limits_behind(self._spec, stage_id)
        if self._spec.calls is not None and (limits or self._spec.ticking_stage == stage_id):
            log = StoredCallLog(self._spec.calls.open_calls(), fence=self._spec.fence)
            self._log = log
            self._admission = SourceAdmission(limits, log) if limits else None
            self._ticks = Ticks(log) if self._spec.ticking_stage == stage_id else None

    def initial(self) -> dict[str, Any]:
        return {"channels": [[*begin, 0] for begin in self._begins], "run": 0, "initial": True}

    def latest(self, start: dict[str, Any]) -> dict[str, Any]:
        # No batch is begun by a driver that was replaced.
        self._spec.fence.check()
        if self._spec.hold_file and os.path.exists(self._spec.hold_file):
            return start
        if self._log is not None and start != self._followed:
            # A batch was committed: what it has parked counts before the next one is planned.
            self._followed = start
            self._log.follow(at_once=True)
        self._check_channels(start)
        channels = self._plan([item[:3] for item in start["channels"]])
        first, self._first = self._first, False
        again = first and all(item[1] for item in start["channels"])
        # State from a savepoint may have something to do before there is any input.
        again = again or (first and self._spec.from_savepoint and start["run"] == 0)
        # After a restart, groups with parked runs are looked at once, whatever the log says of them.
        looks = first and "initial" not in start
        at_rest = not again and channels == [item[:3] for item in start["channels"]]
        if at_rest and not (self._ticks is not None and (self._ticks.due() or looks)):
            return start
        if "initial" in start:
            # Where the batch began, in the offset that Spark does store.
            channels = [
                [*after, before[0]] for before, after in zip(start["channels"], channels, strict=True)
            ]
        offset: dict[str, Any] = {"channels": channels, "run": start["run"] + 1 if again else start["run"]}
        if at_rest or "tick" in start:
            offset["tick"] = start.get("tick", 0) + (1 if at_rest else 0)
        return offset

    def _check_channels(self, *offsets: dict[str, Any]) -> None:
        """A query that its user has started may go on from a checkpoint of another version of the program."""
        for offset in offsets:
            if len(offset["channels"]) != self._count:
                raise CheckpointUnusable(
                    f"the query's checkpoint knows {len(offset['channels'])} channels of the source "
                    f"{self._source.describe()}, and the program has {self._count} now",
                    way_out="give the program the parallelism that it had (env.set_parallelism), or the query "
                    "another checkpointLocation",
                    committed="the checkpoint was not touched",
                )

    def _plan(self, before: list[list[Any]]) -> list[list[Any]]:
        """Where the channels' next records end, within what the agents behind the source can take."""
        most = self._limit
        if self._admission is not None and any(not ended for _, ended, _ in before):
            most = min(most, -(-self._admission.room() // self._count))
        self._held = False
        after = [self._next(number, item, most) or item for number, item in enumerate(before)]
        if self._admission is not None:
            self._pressure.note(held=self._held)
        return after

    def _next(self, channel: int, item: list[Any], most: int) -> list[Any] | None:
        """Where the channel's next records end; None if there are none yet (an equal offset means: no batch)."""
        position, ended, _ = item
        if ended:
            return None
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
            return [*planned, limit]
        chunks = tuple(_read_about(self._source, channel, position, limit))
        if not chunks:
            return None
        self._held = self._held or (limit < wanted and not chunks[-1].end)
        self._read = {key: value for key, value in self._read.items() if not key.startswith(f"{channel}:")}
        self._read[_range_key(channel, position, chunks[-1].position)] = chunks
        return [chunks[-1].position, chunks[-1].end, limit]

    def shares(self, start: dict[str, Any], end: dict[str, Any]) -> list[Share]:
        made: list[Share] = []
        self._check_channels(start, end)
        pairs = zip(start["channels"], end["channels"], strict=True)
        for channel, ((before, was_ended, *_), (after, ended, limit, *begin)) in enumerate(pairs):
            # What the batch began with when it was planned; `start` may be a new answer to the same question.
            before = begin[0] if begin else before
            if before == after and was_ended == ended and start["run"] == end["run"]:
                continue
            chunks = self._driver_chunks(channel, before, after, limit)
            made.append(Share(channel, before, after, ended, limit, chunks))
        return made

    def _driver_chunks(
        self, channel: int, before: Any, after: Any, limit: int
    ) -> tuple[Chunk[Any], ...] | None:
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


def _read_about(source: Source[Any], channel: int, position: Any, limit: int) -> Iterator[Chunk[Any]]:
    count = 0
    for chunk in read_safely(source, channel, position, limit):
        yield chunk
        count += len(chunk.values)
        if chunk.end or count >= limit:
            return
