"""Writes scopes to a savepoint; used by every engine that takes one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from emberflow.errors import CheckpointUnusable
from emberflow.operators.scope import SavedScope, gather_timers
from emberflow.savepoints.form import FrameKind
from emberflow.savepoints.paged_values import inlined
from emberflow.savepoints.wiring import GENERATOR, Wiring
from emberflow.savepoints.writer import SavepointWriter, StepWriter
from emberflow.state.entry import SharedKey
from emberflow.state.pages import PageStore


def step_of(writer: SavepointWriter, wiring: Wiring, uid: str) -> StepWriter:
    return writer.step(uid, wiring.kinds[uid])


def add_scope(
    step: StepWriter, wiring: Wiring, saved: SavedScope, pages: PageStore | None, group: int | None = None
) -> None:
    """Writes event time, timers and parked keys of one subtask or key group; `group` if it is a key group."""
    if saved.waiting:
        raise CheckpointUnusable(
            f"step {step.uid!r} has {len(saved.waiting):,} records that wait for the end of its broadcast stream",
            way_out="take the savepoint later, or run the job in STREAMING mode",
        )
    step.clock(saved.watermark, wiring.named_channels(saved.channels), ended=saved.ended)
    step.states(saved.forms)
    whole = gather_timers(saved, pages, [])
    for kind, timers in (
        (FrameKind.EVENT_TIMERS, whole.event_timers),
        (FrameKind.PROCESSING_TIMERS, whole.processing_timers),
        (FrameKind.CLEANUP, whole.cleanup or ()),
    ):
        for time_ms, keys in timers:
            for key in keys:
                step.timer(kind, time_ms, key, group)
    for key, action in saved.parked:
        step.parked(key, action, group)


def add_entries(
    step: StepWriter,
    wiring: Wiring,
    entries: Iterable[tuple[Any, dict[str, Any]]],
    pages: PageStore | None,
    group: int | None = None,
) -> None:
    kind = wiring.kinds[step.uid]
    if kind == GENERATOR:
        group = None  # Derived from the key.
    for key, values in entries:
        if values and isinstance(key, SharedKey):
            step.shared(key, inlined(values, pages))
        elif values:
            step.entry(wiring.key_out(kind, key), inlined(values, pages), group)
