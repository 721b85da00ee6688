"""Checkpoints of the local engine: state, source positions and prepared sink commits, written atomically.

`FileCheckpoints` writes everything at each checkpoint; `SqliteCheckpoints` (sqlite_checkpoints.py) only what changed.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from emberflow.engines.job.sink_ownership import Mark
from emberflow.engines.local.checkpointing.latest_checkpoint import LOST, check_latest, write_latest
from emberflow.errors import CheckpointUnusable, NotSerializable, describe_cause
from emberflow.events.codecs import encode
from emberflow.events.fence import Fence
from emberflow.events.private_files import make_private_folder
from emberflow.events.stored_files import corrupt, write_atomically
from emberflow.events.stored_types import stored_type
from emberflow.operators.scope import EntryLoader, SavedScope, Scope
from emberflow.state.blame import decode_state, unserializable_state
from emberflow.state.entry import Entry
from emberflow.state.pages import PageStore

_HEADER = struct.Struct("<4sBIQ")
_MAGIC = b"EFCP"
_VERSION = 1
_KEPT = 2
FILES_FOLDER = "local"
_FILE = re.compile(r"chk-(\d{8,})(?:-(\d{6,}))?\.ckpt")


@stored_type()
@dataclass(slots=True, kw_only=True)
class SourceState:
    """The position of each channel of a source."""

    positions: list[Any]
    ended: list[bool]


@stored_type()
@dataclass(slots=True, kw_only=True)
class Checkpoint:
    """Everything except the entries of keyed state, which the store handles itself."""

    epoch: int
    sources: dict[str, SourceState] = field(default_factory=dict[str, SourceState])
    scopes: dict[str, list[SavedScope]] = field(default_factory=dict[str, list[SavedScope]])
    prepared: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    sinks: dict[str, Mark] = field(default_factory=dict[str, Mark])
    """The marks of sinks."""

    def __setstate__(self, state: Any) -> None:
        # The previous version stored no marks.
        self.sinks = {}
        for name, value in state[1].items():
            setattr(self, name, value)


class CheckpointStore(Protocol):
    def own(self, fence: Fence) -> None:
        """Called when a start of the job begins: what older starts save from now on does not count."""
        ...

    def load(self) -> Checkpoint | None:
        """The newest complete checkpoint."""
        ...

    def entries(self, uid: str) -> dict[Any, Entry]:
        """Entries to hold in memory from the start (after `load`)."""
        ...

    def loader(self, uid: str) -> EntryLoader | None:
        """Loads entries that are not in memory."""
        ...

    def pages(self) -> PageStore | None:
        """Where large values are stored separately from their keys; None if they are not."""
        ...

    def save(self, checkpoint: Checkpoint, scopes: dict[str, list[Scope]]) -> int:
        """Returns how many bytes were written."""
        ...

    def adopt(self, steps: dict[str, Iterator[tuple[Any, Entry]]]) -> None:
        """Sets the initial state of a job without a checkpoint, by uid; as if `load` had found it."""
        ...

    def stored_entries(self, uid: str) -> Iterator[tuple[Any, dict[str, Any]]] | None:
        """All keys of a step as they were last saved; None if they must be taken from memory."""
        ...

    def close(self) -> None:
        """Called when the job has ended."""
        ...


class NoCheckpoints:
    """State exists only as long as the job."""

    def __init__(self) -> None:
        self._adopted: dict[str, dict[Any, Entry]] = {}

    def own(self, fence: Fence) -> None:
        """Nothing is stored that another start could find."""

    def load(self) -> Checkpoint | None:
        return None

    def entries(self, uid: str) -> dict[Any, Entry]:
        return self._adopted.pop(uid, {})

    def adopt(self, steps: dict[str, Iterator[tuple[Any, Entry]]]) -> None:
        self._adopted = {uid: dict(entries) for uid, entries in steps.items()}

    def stored_entries(self, uid: str) -> Iterator[tuple[Any, dict[str, Any]]] | None:
        return None

    def loader(self, uid: str) -> EntryLoader | None:
        return None

    def pages(self) -> PageStore | None:
        return None

    def save(self, checkpoint: Checkpoint, scopes: dict[str, list[Scope]]) -> int:
        for scope in (scope for tasks in scopes.values() for scope in tasks):
            scope.removed.clear()
        return 0

    def close(self) -> None:
        pass


class FileCheckpoints:
    """One file per checkpoint: a header with length and checksum, then the encoded state. The file name contains the
    fencing epoch of the start that wrote it, so a replaced start cannot overwrite a checkpoint of the later one."""

    def __init__(self, directory: Path, retained: int = _KEPT) -> None:
        self._directory = directory / FILES_FOLDER
        self._retained = retained
        self._fence = Fence()
        self._entries: dict[str, dict[Any, dict[str, Any]]] = {}
        try:
            make_private_folder(self._directory)
        except OSError as error:
            raise unusable(directory, error) from error

    def own(self, fence: Fence) -> None:
        self._fence = fence

    def load(self) -> Checkpoint | None:
        found, at = None, None
        for path in checkpoint_files(self._directory)[-1:]:
            found, self._entries = read_checkpoint(path)
            at = _fence_of(path), found.epoch
        check_latest(self._directory.parent, at, str(self._directory))
        return found

    def entries(self, uid: str) -> dict[Any, Entry]:
        return {key: Entry(values) for key, values in self._entries.pop(uid, {}).items()}

    def adopt(self, steps: dict[str, Iterator[tuple[Any, Entry]]]) -> None:
        self._entries = {uid: dict(entries) for uid, entries in steps.items()}

    def stored_entries(self, uid: str) -> Iterator[tuple[Any, dict[str, Any]]] | None:
        return iter(self._entries[uid].items()) if uid in self._entries else None

    def loader(self, uid: str) -> EntryLoader | None:
        return None

    def pages(self) -> PageStore | None:
        return None

    def save(self, checkpoint: Checkpoint, scopes: dict[str, list[Scope]]) -> int:
        entries: dict[str, dict[Any, dict[str, Any]]] = {}
        for uid, tasks in scopes.items():
            merged = entries[uid] = {}
            for scope in tasks:
                scope.removed.clear()
                for key, entry in scope.entries.items():
                    if entry:
                        entry.dirty = False
                        merged[key] = dict(entry)
        try:
            body = encode((checkpoint, entries))
        except NotSerializable as error:
            raise _blame(entries, error) from error
        data = _HEADER.pack(_MAGIC, _VERSION, zlib.crc32(body), len(body)) + body
        self._fence.check()
        try:
            write_atomically(self._directory / _file_name(checkpoint.epoch, self._fence.epoch), data)
            write_latest(self._directory.parent, (self._fence.epoch, checkpoint.epoch))
            for old in checkpoint_files(self._directory)[: -self._retained]:
                old.unlink(missing_ok=True)
        except OSError as error:
            raise unusable(self._directory, error) from error
        return len(data)

    def close(self) -> None:
        pass


def _file_name(epoch: int, fence: int) -> str:
    return f"chk-{epoch:08d}-{fence:06d}.ckpt" if fence else f"chk-{epoch:08d}.ckpt"


def _fence_of(path: Path) -> int:
    match = _FILE.fullmatch(path.name)
    return int(match[2] or 0) if match else 0


def checkpoint_files(folder: Path) -> list[Path]:
    """The checkpoint files, newest last: ordered by start, then by epoch."""
    found = [(match, path) for path in folder.glob("chk-*.ckpt") if (match := _FILE.fullmatch(path.name))]
    return [path for _, path in sorted(found, key=lambda item: (int(item[0][2] or 0), int(item[0][1])))]


def _blame(entries: dict[str, dict[Any, dict[str, Any]]], error: NotSerializable) -> NotSerializable:
    for uid, keys in entries.items():
        found = unserializable_state(uid, keys, error)
        if found is not error:
            return found
    return error


def read_checkpoint(path: Path) -> tuple[Checkpoint, dict[str, dict[Any, dict[str, Any]]]]:
    """Files appear atomically, so one that fails its check was damaged afterwards: it is never skipped silently, because
    starting from an older checkpoint would repeat committed output."""
    data = path.read_bytes()
    body = data[_HEADER.size :]
    if len(data) >= _HEADER.size:
        magic, version, crc, size = _HEADER.unpack_from(data)
        if magic == _MAGIC and version == _VERSION and size == len(body) and crc == zlib.crc32(body):
            return decode_state(body, "", _entries_of)
    raise corrupt(path, "its length or checksum does not match", LOST)


def _entries_of(body: Any) -> dict[str, Any]:
    return body[1]


def unusable(directory: Path, error: BaseException) -> CheckpointUnusable:
    return CheckpointUnusable(
        f"the checkpoint directory {directory} cannot be written",
        cause=describe_cause(error),
        way_out="free space or choose another directory (checkpoint_dir=, --checkpoint-dir)",
        committed="the previous checkpoint is complete; running the program again starts there",
    )
