"""Starting from a savepoint: which of its parts match the program, and the initial state of each keyed step.

The same for every engine; how state gets into an engine's own store is up to the engine.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import chain
from typing import Any

from emberflow.errors import CheckpointUnusable, ProgramChanged
from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK
from emberflow.operators.scope import SavedScope
from emberflow.operators.watermarks.watermark_merge import ChannelId, SavedChannel
from emberflow.plan.graphs.job_graph import JobGraph, StageKind
from emberflow.plan.graphs.stream_graph import of_first_form
from emberflow.plan.stored_kinds import continues
from emberflow.savepoints.form import TIMER_FRAMES, FrameKind, SourcePositions
from emberflow.savepoints.paged_values import to_be_paged
from emberflow.savepoints.reader import SavepointReader
from emberflow.savepoints.wiring import Wiring, wiring_of
from emberflow.state.entry import Entry

_log = logging.getLogger("emberflow.savepoints")


class SavepointStart:
    """A savepoint that a job starts from."""

    def __init__(self, reader: SavepointReader, graph: JobGraph) -> None:
        self.reader = reader
        self.wiring: Wiring = wiring_of(graph, reader.manifest.epoch + 1)
        self._graph = graph
        kept = _fitting(reader, graph)
        self.sources: dict[str, SourcePositions] = {
            uid: item for uid, item in reader.manifest.sources.items() if uid in kept
        }
        self.steps = [uid for uid in reader.manifest.steps if uid in kept]

    @property
    def first_epoch(self) -> int:
        return self.wiring.first_epoch

    def clock(self, uid: str, channels: list[ChannelId]) -> SavedScope:
        """Event time of a keyed step, for all its subtasks; without timers. A new step starts at the minimum watermark,
        but inputs that have ended are marked as ended."""
        summary = self.reader.manifest.steps[uid] if uid in self.steps else None
        by_exchange: dict[int, list[int]] = {}
        for exchange, channel in channels:
            by_exchange.setdefault(exchange, []).append(channel)
        saved: list[SavedChannel] = []
        for exchange, numbers in by_exchange.items():
            marks = self._stored_marks(uid, exchange) if summary is not None else None
            for channel in numbers:
                if marks is None:
                    mark = MAX_WATERMARK if self._has_ended(exchange, channel) else MIN_WATERMARK
                elif len(marks) == len(numbers):
                    mark = marks[channel]
                else:
                    # The upstream step had another parallelism: put all its channels at the lowest watermark of the old ones.
                    mark = min(marks)
                saved.append(((exchange, channel), mark, 0))
        if summary is None:
            return SavedScope(channels=saved, forms={})
        return SavedScope(
            watermark=summary.watermark, channels=saved, ended=summary.ended, forms=summary.states
        )

    def scope(self, uid: str, channels: list[ChannelId]) -> SavedScope:
        """`clock` plus timers and parked keys, without entries; for an engine that keeps timers in memory."""
        saved = self.clock(uid, channels)
        if uid in self.steps:
            timers = self._timers(uid)
            saved.event_timers = timers[FrameKind.EVENT_TIMERS]
            saved.processing_timers = timers[FrameKind.PROCESSING_TIMERS]
            saved.cleanup = timers[FrameKind.CLEANUP]
            saved.parked = list(self.reader.parked(uid))
        return saved

    def entries(self, uid: str) -> Iterator[tuple[Any, Entry]]:
        kind = self.reader.manifest.steps[uid].kind
        for key, values in chain(self.reader.entries(uid), self.reader.shared(uid)):
            to_be_paged(values)
            entry = Entry(values)
            entry.dirty = True
            yield self.wiring.key_in(kind, key), entry

    def _timers(self, uid: str) -> dict[FrameKind, list[tuple[int, list[Any]]]]:
        by_kind: dict[FrameKind, dict[int, list[Any]]] = {kind: {} for kind in TIMER_FRAMES}
        for kind, time_ms, key in self.reader.all_timers(uid):
            by_kind[kind].setdefault(time_ms, []).append(key)
        return {kind: sorted(by_time.items()) for kind, by_time in by_kind.items()}

    def _stored_marks(self, uid: str, exchange: int) -> list[int] | None:
        names = {number: name for name, number in self.wiring.exchanges.items()}
        return self.reader.manifest.steps[uid].channels.get(names[exchange])

    def _has_ended(self, exchange: int, channel: int) -> bool:
        stage = self._graph.stages[self._graph.exchanges[exchange].source_stage]
        uid = self._graph.stream_graph.node(stage.head).uid
        if stage.kind is StageKind.SOURCE:
            source = self.sources.get(uid)
            return source is not None and channel < len(source.ended) and source.ended[channel]
        return uid in self.steps and self.reader.manifest.steps[uid].ended


def open_start(
    path: str, graph: JobGraph, max_parallelism: int, *, allow_non_restored_state: bool
) -> SavepointStart:
    """Opens the savepoint and checks it against the program; raises ProgramChanged."""
    reader = SavepointReader(path)
    manifest = reader.manifest
    kept = _fitting(reader, graph)
    program = _kinds(graph)
    gone = {uid: kind for uid, kind in manifest.kinds.items() if uid not in kept}
    new = {uid: kind for uid, kind in program.items() if uid not in kept}
    if gone and not allow_non_restored_state:
        raise ProgramChanged(
            f"the program does not match the savepoint {path}: "
            + "; ".join(part for part in (_named("gone", gone), _named("new", new)) if part),
            way_out=of_first_form(gone)
            or "give the steps the uid() they had, and a step whose windows hold something else another one, or drop the state of removed steps with "
            "allow_non_restored_state (--allow-non-restored-state)",
            committed="the savepoint was not changed",
        )
    if manifest.max_parallelism != max_parallelism:
        raise ProgramChanged(
            f"the maximum parallelism was {manifest.max_parallelism} when the savepoint {path} was taken, "
            f"now it is {max_parallelism}",
            way_out=f"call env.set_max_parallelism({manifest.max_parallelism}): it cannot change for existing state",
            committed="the savepoint was not changed",
        )
    if kept == {} and manifest.kinds:
        raise CheckpointUnusable(
            f"the savepoint {path} and the program have no step in common",
            way_out="start from the savepoint of this job, or without one",
        )
    for what, steps in (("left out", gone), ("new", new)):
        if steps:
            _log.warning("start from the savepoint %s: %s", path, _named(what, steps))
    return SavepointStart(reader, graph)


def _fitting(reader: SavepointReader, graph: JobGraph) -> dict[str, str]:
    stored = reader.manifest.kinds
    return {uid: kind for uid, kind in _kinds(graph).items() if continues(stored.get(uid), kind)}


def _kinds(graph: JobGraph) -> dict[str, str]:
    nodes = graph.stream_graph
    return {nodes.node(stage.head).uid: nodes.node(stage.head).spec.stored_kind for stage in graph.stages}


def _named(what: str, steps: dict[str, str]) -> str:
    return "" if not steps else f"{what}: " + ", ".join(f"{kind} {uid!r}" for uid, kind in steps.items())
