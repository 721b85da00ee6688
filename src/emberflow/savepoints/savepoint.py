"""`Savepoint`: a savepoint as an object that can be inspected, edited and written as a new one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from emberflow.errors import InvalidArgument
from emberflow.events.codecs import decode, encode
from emberflow.events.key_groups import KeyGroups
from emberflow.plan.local_folders import local_folder
from emberflow.savepoints import form
from emberflow.savepoints.form import FrameKind, SavepointManifest, SourcePositions, StepSummary
from emberflow.savepoints.reader import SavepointReader
from emberflow.savepoints.writer import SavepointWriter, StepWriter


class StateStep:
    """The keyed state of one step. Changes are kept in memory until `Savepoint.write`."""

    def __init__(self, reader: SavepointReader, uid: str) -> None:
        self._reader = reader
        self.uid = uid
        self.changes: dict[Any, dict[str, Any] | None] = {}
        self._groups = KeyGroups(reader.manifest.max_parallelism)

    @property
    def summary(self) -> StepSummary:
        """The step's entry in the manifest: kind, number of keys and timers, size."""
        return self._reader.manifest.steps[self.uid]

    @property
    def kind(self) -> str:
        """The kind of the step, such as `reduce` or `agent`."""
        return self.summary.kind

    def keys(self) -> Iterator[Any]:
        """Yields every key that has state, changes included."""
        return (key for key, _ in self.items())

    def items(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Yields every key with the values of its states, changes included; state is read lazily."""
        changes = dict(self.changes)
        for key, values in self._reader.entries(self.uid):
            if key in changes:
                changed = changes.pop(key)
                if changed is not None:
                    yield key, changed
            else:
                yield key, values
        for key, changed in changes.items():
            if changed is not None:
                yield key, changed

    def get(self, key: Any) -> dict[str, Any] | None:
        """The values of a key's states by name; None if the key has none."""
        if key in self.changes:
            return self.changes[key]
        group = self._groups[key]
        for frame in self._reader.frames(self.uid):
            if frame.kind is FrameKind.ENTRIES and frame.group == group:
                for stored, values in form.unpack_entries(frame.body):
                    if decode(stored) == key:
                        return decode(values)
        return None

    def set(self, key: Any, values: dict[str, Any]) -> None:
        """Replaces all states of a key; an empty dictionary removes the key."""
        encode((key, values))
        self.changes[key] = dict(values) or None

    def update(self, key: Any, **values: Any) -> None:
        """Changes the given states of a key and keeps the others."""
        self.set(key, {**(self.get(key) or {}), **values})

    def delete(self, key: Any) -> None:
        """Removes a key's state; its timers stay. Raises InvalidArgument if there is no such key."""
        if self.get(key) is None:
            raise InvalidArgument(f"step {self.uid!r} has no key {key!r}")
        self.changes[key] = None

    def copy_to(self, writer: StepWriter) -> None:
        """Writes the step's state, with its changes, to another savepoint; used by `Savepoint.write`."""
        by_group: dict[int, dict[Any, dict[str, Any] | None]] = {}
        for key, values in self.changes.items():
            by_group.setdefault(self._groups[key], {})[key] = values
        for frame in self._reader.frames(self.uid):
            changed = by_group.get(frame.group)
            if frame.kind is not FrameKind.ENTRIES or not changed:
                writer.frame(frame)
                continue
            # Unchanged keys are copied as bytes: their classes need not be importable.
            for key, values in form.unpack_entries(frame.body):
                found = decode(key)
                if found not in changed:
                    writer.raw_entry(frame.group, key, values)
        for key, values in self.changes.items():
            if values is not None:
                writer.entry(key, values)
        summary = self.summary
        writer.clock(summary.watermark, summary.channels, ended=summary.ended)
        writer.states(summary.states)


class Savepoint:
    """A savepoint on disk: open it with `Savepoint.read(path)`, edit its steps, and `write(path)` a new one."""

    def __init__(self, reader: SavepointReader) -> None:
        self._reader = reader
        self.steps: dict[str, StateStep] = {uid: StateStep(reader, uid) for uid in reader.manifest.steps}
        self.sources: dict[str, SourcePositions] = dict(reader.manifest.sources)
        """The positions of each source. Replace an entry to make a source start elsewhere."""

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Savepoint:
        """Opens a savepoint; keyed state is read on access. Raises CheckpointUnusable or CorruptData."""
        return cls(SavepointReader(local_folder("a savepoint", path)))

    @property
    def manifest(self) -> SavepointManifest:
        """What the savepoint contains, without its state: job, engine, epoch, sources, steps."""
        return self._reader.manifest

    def step(self, uid: str) -> StateStep:
        """The keyed state of the step with this uid; raises InvalidArgument if there is none."""
        found = self.steps.get(uid)
        if found is None:
            names = ", ".join(repr(name) for name in self.steps) or "none"
            raise InvalidArgument(f"the savepoint has no step {uid!r}", way_out=f"its steps are: {names}")
        return found

    def check(self) -> None:
        """Reads every file and verifies its checksum; raises CorruptData."""
        for name in self.manifest.files:
            self._reader.file(name)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes a new savepoint with the changes; this one is not modified. `path` must not exist."""
        manifest = self.manifest
        with SavepointWriter(
            local_folder("a savepoint", path),
            job_name=manifest.job_name,
            job_id=manifest.job_id,
            engine=manifest.engine,
            max_parallelism=manifest.max_parallelism,
            epoch=manifest.epoch,
        ) as writer:
            for uid, source in self.sources.items():
                writer.source(uid, source.positions, source.ended)
            for uid, step in self.steps.items():
                step.copy_to(writer.step(uid, step.kind))
            writer.sinks(manifest.sinks)
            for name in manifest.files:
                if not name.startswith(f"{form.STATE_FOLDER}/"):
                    writer.whole_file(name, self._reader.file(name))
