"""Savepoints of the local engine: created from a running job at a checkpoint, or from a checkpoint directory."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emberflow.durable.location import CallStoreLocation
from emberflow.engines.job.savepoint_calls import CallsCopy
from emberflow.engines.job.savepoint_start import job_has_ended
from emberflow.engines.local.checkpointing.checkpoints import Checkpoint, CheckpointStore, SourceState
from emberflow.operators.scope import Scope
from emberflow.savepoints.parts import add_entries, add_scope, step_of
from emberflow.savepoints.restore import SavepointStart
from emberflow.savepoints.wiring import Wiring
from emberflow.savepoints.writer import SavepointWriter, check_free


@dataclass(frozen=True, slots=True)
class SavepointRequest:
    path: str
    stops: bool
    done: Future[str] = field(default_factory=Future[str])


class SavepointRequests:
    """Savepoints that other threads request from a running job. The job wakes up, takes a checkpoint and serves them all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[SavepointRequest] = deque()
        self._wake: Callable[[], None] | None = None
        self._over = False

    def ask(self, path: str, *, stops: bool) -> str:
        check_free(Path(path))
        request = SavepointRequest(path, stops)
        with self._lock:
            if self._over:
                raise job_has_ended()
            self._waiting.append(request)
            wake = self._wake
        if wake is not None:
            wake()
        return request.done.result()

    def connect(self, loop: asyncio.AbstractEventLoop) -> asyncio.Event:
        """The event that signals a request."""
        event = asyncio.Event()
        with self._lock:
            self._wake = lambda: _quietly(loop, event)
            if self._waiting:
                event.set()
        return event

    def take(self) -> list[SavepointRequest]:
        with self._lock:
            found = list(self._waiting)
            self._waiting.clear()
            return found

    def close(self) -> None:
        """Called when the job has ended: no further requests are served."""
        with self._lock:
            self._over = True
            left = list(self._waiting)
            self._waiting.clear()
        for request in left:
            request.done.set_exception(job_has_ended())


def _quietly(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    try:
        loop.call_soon_threadsafe(event.set)
    except RuntimeError:
        pass  # The loop has ended; `close` answers the request.


def write_savepoint(
    path: str,
    wiring: Wiring,
    job_id: str,
    max_parallelism: int,
    checkpoint: Checkpoint,
    entries: Callable[[str], Iterator[tuple[Any, dict[str, Any]]]],
    store: CheckpointStore,
    calls: CallStoreLocation | None,
) -> None:
    """Writes a checkpoint as a savepoint. `entries` returns the keys of a step with their values, `calls` is the location
    of the durable call log, if there is one."""
    with SavepointWriter(
        path,
        job_name=wiring.job_name,
        job_id=job_id,
        engine="local",
        max_parallelism=max_parallelism,
        epoch=checkpoint.epoch,
    ) as writer:
        for uid, source in checkpoint.sources.items():
            writer.source(uid, source.positions, source.ended)
        for uid, scopes in checkpoint.scopes.items():
            step = step_of(writer, wiring, uid)
            for saved in scopes:
                add_scope(step, wiring, saved, store.pages())
            add_entries(step, wiring, entries(uid), store.pages())
        writer.sinks(wiring.sinks)
        writer.prepared(job_id, checkpoint.epoch, checkpoint.prepared)
        if calls is not None:
            with CallsCopy(calls.open_calls()) as copy:
                copy.read()
                copy.into(writer)


def live_entries(
    scopes: dict[str, list[Scope]], store: CheckpointStore
) -> Callable[[str], Iterator[tuple[Any, dict[str, Any]]]]:
    """The keys of a job that has just stored a checkpoint: from its store if that has them all, else from memory."""

    def entries(uid: str) -> Iterator[tuple[Any, dict[str, Any]]]:
        stored = store.stored_entries(uid)
        if stored is not None:
            yield from stored
            return
        for scope in scopes[uid]:
            yield from scope.entries.items()

    return entries


def begin_from(start: SavepointStart, store: CheckpointStore) -> Checkpoint:
    """The checkpoint that a job starts with; keyed state is put into the store."""
    store.adopt({uid: start.entries(uid) for uid in start.steps})
    return Checkpoint(
        epoch=start.reader.manifest.epoch,
        sources={
            uid: SourceState(positions=list(item.positions), ended=list(item.ended))
            for uid, item in start.sources.items()
        },
    )
