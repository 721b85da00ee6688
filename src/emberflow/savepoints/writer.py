"""Writes a savepoint: engines and `Savepoint.write` add its parts in any order; memory use is bounded.

Everything goes to a temporary directory next to the target, which is renamed at the end: a savepoint appears completely
or not at all.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self
from zlib import crc32

from emberflow.errors import CheckpointUnusable, NotSerializable, describe_cause, shorten
from emberflow.events.batch import MIN_WATERMARK
from emberflow.events.codecs import encode
from emberflow.events.key_groups import KeyGroups
from emberflow.events.private_files import make_private_folder, open_private
from emberflow.savepoints import form
from emberflow.savepoints.form import FrameKind, SourcePositions, StepSummary
from emberflow.state.entry import SharedKey

_FRAME_BYTES = 1 << 20
_BUFFERED_BYTES = 64 << 20
_FILE_BYTES = 16 << 20


class StepWriter:
    """Writes the keyed state of one step."""

    def __init__(self, home: SavepointWriter, number: int, uid: str, kind: str) -> None:
        self._home = home
        self._number = number
        self.uid = uid
        self._kind = kind
        self._pending: dict[tuple[FrameKind, int], list[bytes]] = {}
        self._sizes: dict[tuple[FrameKind, int], int] = {}
        self._file: _CheckedFile | None = None
        self._written = 0
        self._names: list[str] = []
        self._counts = dict.fromkeys(FrameKind, 0)
        self._watermarks: list[int] = []
        self._ended: list[bool] = []
        self._channels: dict[str, list[int]] = {}
        self._shared: set[SharedKey] = set()
        self._states: dict[str, str] | None = None

    def entry(self, key: Any, values: dict[str, Any], group: int | None = None) -> None:
        """Adds a key; `group` is its key group, where known. Raises NotSerializable."""
        try:
            packed = form.pack_entry(encode(key), encode(values))
        except NotSerializable as error:
            raise NotSerializable(
                f"step {self.uid!r}: the state of key {shorten(key)} cannot be stored",
                cause=error.cause,
                way_out=error.way_out,
            ) from error
        self._add(FrameKind.ENTRIES, self._home.groups[key] if group is None else group, packed)

    def shared(self, key: SharedKey, values: dict[str, Any]) -> None:
        """Adds an entry that every subtask has, with equal values: the first one is written."""
        if key not in self._shared:
            self._shared.add(key)
            self._add(FrameKind.SHARED, 0, form.pack_entry(encode(key), encode(values)))

    def raw_entry(self, group: int, key: bytes, values: bytes) -> None:
        """Adds an entry read from another savepoint, without decoding it."""
        self._add(FrameKind.ENTRIES, group, form.pack_entry(key, values))

    def timer(self, kind: FrameKind, time_ms: int, key: Any, group: int | None = None) -> None:
        chosen = self._home.groups[key] if group is None else group
        self._add(kind, chosen, form.pack_timer(time_ms, encode(key)))

    def parked(self, key: Any, action: str, group: int | None = None) -> None:
        chosen = self._home.groups[key] if group is None else group
        self._add(FrameKind.PARKED, chosen, form.pack_entry(encode(key), encode(action)))

    def frame(self, frame: form.Frame) -> None:
        """Adds a frame read from another savepoint, without decoding it."""
        self._write(frame)

    def states(self, forms: dict[str, str] | None) -> None:
        """Adds the forms of the states of one subtask or key group; None if they are not known."""
        if forms is not None:
            self._states = {**(self._states or {}), **forms}

    def clock(self, watermark: int, channels: dict[str, list[int]], *, ended: bool) -> None:
        """Adds the event time of one subtask or key group. The step's event time is the minimum of them."""
        self._watermarks.append(watermark)
        self._ended.append(ended)
        for name, marks in channels.items():
            known = self._channels.get(name)
            if known is None or len(known) != len(marks):
                self._channels[name] = list(marks)
            else:
                self._channels[name] = [min(pair) for pair in zip(known, marks, strict=True)]

    def _add(self, kind: FrameKind, group: int, packed: bytes) -> None:
        part = (kind, group)
        self._pending.setdefault(part, []).append(packed)
        size = self._sizes[part] = self._sizes.get(part, 0) + len(packed)
        self._home.buffered += len(packed)
        if size >= _FRAME_BYTES:
            self._flush(part)
        elif self._home.buffered >= _BUFFERED_BYTES:
            self._home.flush()

    def flush(self) -> None:
        for part in sorted(self._pending):
            self._flush(part)

    def _flush(self, part: tuple[FrameKind, int]) -> None:
        items = self._pending.pop(part)
        self._home.buffered -= self._sizes.pop(part)
        self._write(form.Frame(*part, len(items), b"".join(items)))

    def _write(self, frame: form.Frame) -> None:
        self._counts[frame.kind] += frame.count
        if self._file is None:
            name = f"{form.STATE_FOLDER}/{self._number:03d}-{len(self._names):05d}.state"
            self._names.append(name)
            self._file = self._home.open(name)
            self._file.write(form.FILE_MAGIC)
        packed = form.pack_frame(frame)
        self._file.write(packed)
        self._written += len(packed)
        if self._file.size >= _FILE_BYTES:
            self._close_file()

    def _close_file(self) -> None:
        if self._file is not None:
            self._home.close(self._file)
            self._file = None

    def summary(self) -> StepSummary:
        self.flush()
        self._close_file()
        return StepSummary(
            kind=self._kind,
            watermark=min(self._watermarks, default=MIN_WATERMARK),
            ended=bool(self._ended) and all(self._ended),
            channels=self._channels,
            keys=self._counts[FrameKind.ENTRIES],
            event_timers=self._counts[FrameKind.EVENT_TIMERS],
            processing_timers=self._counts[FrameKind.PROCESSING_TIMERS],
            parked=self._counts[FrameKind.PARKED],
            bytes=self._written,
            files=self._names,
            states=self._states,
        )


class SavepointWriter:
    """Writes one savepoint. A context manager: leaving it without an error makes the savepoint visible."""

    def __init__(
        self,
        target: str | os.PathLike[str],
        *,
        job_name: str,
        job_id: str,
        engine: str,
        max_parallelism: int,
        epoch: int,
        created_ms: int | None = None,
    ) -> None:
        self._target = Path(target)
        self._header = {
            "format": form.FORMAT_VERSION,
            "job_name": job_name,
            "job_id": job_id,
            "engine": engine,
            "max_parallelism": max_parallelism,
            "epoch": epoch,
            "created_ms": int(time.time() * 1000) if created_ms is None else created_ms,
        }
        self.groups = KeyGroups(max_parallelism)
        self.buffered = 0
        self._sources: dict[str, SourcePositions] = {}
        self._steps: dict[str, StepWriter] = {}
        self._sinks: list[str] = []
        self._files: dict[str, list[int]] = {}
        self._folder = self._target.with_name(f".{self._target.name}.{os.getpid()}-{uuid.uuid4().hex}.tmp")

    def __enter__(self) -> Self:
        check_free(self._target)
        self._guard(lambda: make_private_folder(self._folder / form.STATE_FOLDER))
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if kind is None:
                self._guard(self._finish)
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def source(self, uid: str, positions: list[Any], ended: list[bool]) -> None:
        self._sources[uid] = SourcePositions(positions=positions, ended=ended)

    def step(self, uid: str, kind: str) -> StepWriter:
        found = self._steps.get(uid)
        if found is None:
            found = self._steps[uid] = StepWriter(self, len(self._steps), uid, kind)
        return found

    def sinks(self, uids: list[str]) -> None:
        self._sinks = list(uids)

    def prepared(self, job_id: str, epoch: int, parts: dict[str, list[Any]]) -> None:
        """Adds outputs of an epoch that may not be visible yet; a job that starts from here commits them again."""
        kept = {uid: items for uid, items in parts.items() if items}
        if kept:
            self.whole_file(form.PREPARED, encode((job_id, epoch, kept)))

    def calls(self, name: str, data: bytes) -> None:
        """Adds one part of the durable call log."""
        self.whole_file(f"{form.CALLS_FOLDER}/{name}", data)

    def flush(self) -> None:
        for step in self._steps.values():
            step.flush()

    # files

    def whole_file(self, name: str, data: bytes) -> None:
        make_private_folder((self._folder / name).parent)
        file = self.open(name)
        file.write(data)
        self.close(file)

    def open(self, name: str) -> _CheckedFile:
        return _CheckedFile(self._folder, name)

    def close(self, file: _CheckedFile) -> None:
        self._files[file.name] = file.end()

    def _finish(self) -> None:
        body = {
            **self._header,
            "sources": {uid: asdict(item) for uid, item in self._sources.items()},
            "steps": {uid: asdict(step.summary()) for uid, step in self._steps.items()},
            "sinks": self._sinks,
            "files": self._files,
        }
        file = self.open(form.MANIFEST)
        file.write(json.dumps({**body, "checksum": form.checksum_of(body)}, indent=1).encode())
        file.end()
        check_free(self._target)
        os.rename(self._folder, self._target)
        _sync(self._target.parent)

    def _guard(self, action: Callable[[], object]) -> None:
        try:
            action()
        except OSError as error:
            raise CheckpointUnusable(
                f"the savepoint {self._target} cannot be written",
                cause=describe_cause(error),
                way_out="free space or choose another path",
                committed="nothing was left behind; the job's own checkpoints are unchanged",
            ) from error


class _CheckedFile:
    """A file that computes its checksum and is synced to disk when it is closed."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.size = 0
        self._file = open(folder / name, "wb", opener=open_private)  # noqa: SIM115 - closed by end()
        self._checksum = 0

    def write(self, data: bytes) -> None:
        self._checksum = crc32(data, self._checksum)
        self.size += len(data)
        self._file.write(data)

    def end(self) -> list[int]:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return [self.size, self._checksum]


def check_free(target: Path) -> None:
    """Raises if `target` exists: a savepoint never overwrites anything."""
    if target.exists():
        raise CheckpointUnusable(
            f"{target} exists already", way_out="choose another path for the savepoint, or remove it first"
        )


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
