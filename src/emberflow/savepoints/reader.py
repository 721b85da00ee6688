"""Reads a savepoint: the manifest first, then state file by file; every checksum is verified before data is used."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

from emberflow.errors import CheckpointUnusable, CorruptData, describe_cause
from emberflow.events.codecs import decode
from emberflow.savepoints import form
from emberflow.savepoints.form import Frame, FrameKind, SavepointManifest, SourcePositions, StepSummary

Prepared = tuple[str, int, dict[str, list[Any]]]
"""job id, epoch, parts by sink"""


class SavepointReader:
    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.manifest = _manifest(self.path)

    def frames(self, uid: str) -> Iterator[Frame]:
        """Yields all frames of a step, in the order of its files."""
        for name in self.manifest.steps[uid].files:
            yield from self.frames_of(name)

    def frames_of(self, name: str) -> Iterator[Frame]:
        data = self.file(name)
        yield from form.read_frames(memoryview(data), str(self.path / name))

    def entries(self, uid: str) -> Iterator[tuple[Any, dict[str, Any]]]:
        for frame in self.frames(uid):
            if frame.kind is FrameKind.ENTRIES:
                for key, values in form.unpack_entries(frame.body):
                    yield decode(key), decode(values)

    def shared(self, uid: str) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Yields the entries that every subtask has."""
        for frame in self.frames(uid):
            if frame.kind is FrameKind.SHARED:
                for key, values in form.unpack_entries(frame.body):
                    yield decode(key), decode(values)

    def timers(self, uid: str, kind: FrameKind) -> Iterator[tuple[int, Any]]:
        return ((time_ms, key) for found, time_ms, key in self.all_timers(uid) if found is kind)

    def all_timers(self, uid: str) -> Iterator[tuple[FrameKind, int, Any]]:
        """Yields kind, time and key of timers of all kinds, in one pass over the files."""
        for frame in self.frames(uid):
            if frame.kind in form.TIMER_FRAMES:
                for time_ms, key in form.unpack_timers(frame.body):
                    yield frame.kind, time_ms, decode(key)

    def parked(self, uid: str) -> Iterator[tuple[Any, str]]:
        for frame in self.frames(uid):
            if frame.kind is FrameKind.PARKED:
                for key, action in form.unpack_entries(frame.body):
                    yield decode(key), decode(action)

    def prepared(self) -> Prepared | None:
        if form.PREPARED not in self.manifest.files:
            return None
        return decode(self.file(form.PREPARED))

    def call_files(self) -> Iterator[tuple[str, bytes]]:
        """Yields name and content of each file of the durable call log."""
        prefix = f"{form.CALLS_FOLDER}/"
        for name in self.manifest.files:
            if name.startswith(prefix):
                yield name[len(prefix) :], self.file(name)

    def file(self, name: str) -> bytes:
        try:
            data = (self.path / name).read_bytes()
        except OSError as error:
            raise CorruptData(
                f"the savepoint {self.path} lacks its file {name}",
                cause=describe_cause(error),
                way_out="copy the savepoint's whole directory, or take it again",
            ) from error
        size, checksum = self.manifest.files[name]
        if len(data) != size or crc32(data) != checksum:
            raise form.damaged(str(self.path / name))
        return data


def _manifest(path: Path) -> SavepointManifest:
    try:
        text = (path / form.MANIFEST).read_bytes()
    except OSError as error:
        raise CheckpointUnusable(
            f"there is no savepoint in {path}",
            cause=describe_cause(error),
            way_out=f"name the directory that contains {form.MANIFEST}; `emberflow savepoint create` creates one",
        ) from error
    try:
        body: dict[str, Any] = json.loads(text)
        version = body["format"]
        checksum = body.pop("checksum")
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptData(
            f"{path / form.MANIFEST} is not the manifest of a savepoint",
            cause=describe_cause(error),
            way_out="take the savepoint again, or use an intact copy of it",
        ) from error
    if checksum != form.checksum_of(body):
        raise CorruptData(
            f"{path / form.MANIFEST} was changed or is corrupted",
            way_out="change a savepoint with `emberflow savepoint edit`, or take it again",
        )
    if not isinstance(version, int) or version > form.FORMAT_VERSION:
        raise CheckpointUnusable(
            f"{path} was written by a newer version of emberflow (format {version})",
            way_out="update emberflow",
        )
    sources = {uid: SourcePositions(**item) for uid, item in body.pop("sources").items()}
    steps = {uid: StepSummary(**item) for uid, item in body.pop("steps").items()}
    return SavepointManifest(**body, sources=sources, steps=steps)
