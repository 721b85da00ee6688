"""The write-ahead ledger of a file sink: which epochs are visible.

    base/_emberflow/{job}-{sink}/inprogress/{epoch}-{subtask}-{n}.{attempt}     written, not visible
    base/_emberflow/{job}-{sink}/{epoch}.json                                   decided: these files become those
    base/_emberflow/{job}-{sink}/{epoch}.done                                   all of them have

An epoch is committed from the moment its .json is there; whatever happens afterwards only finishes what it says.
Each step is one rename, and each can be done again: a crash between any two of them loses and doubles nothing.
Called by `FileSink` only.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from emberflow.errors import CorruptData, SinkFailed
from emberflow.events.identity import text_identity
from emberflow.events.private_files import open_private
from emberflow.events.stored_files import make_folder, sync_folder

FOLDER = "_emberflow"
KEPT = 3
"""Finished epochs that stay on record; the newest one is what counts."""
VERSION = 1

_ENTRY = re.compile(r"(\d{8,})\.(json|done)")
_STAGED = re.compile(r"(\d{8,})-\d{4,}-\d+\..+")


def short_id(job_id: str, sink_id: str) -> str:
    """Part of every file's name, so that jobs and sinks may share a folder."""
    return text_identity(job_id, sink_id)


def _folder_of(base: Path, job_id: str, sink_id: str) -> Path:
    """Of the sink's ledger. One that the first version made keeps its shorter name: its epochs must be found."""
    readable = f"{safe_name(job_id)}-{safe_name(sink_id)}"
    earlier = blake2b(f"{job_id}\0{sink_id}".encode(), digest_size=4).hexdigest()
    found = base / FOLDER / f"{readable}-{earlier}"
    return found if found.is_dir() else base / FOLDER / f"{readable}-{short_id(job_id, sink_id)}"


def safe_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:60]


class CommitLedger:
    """Of one sink in one job. `renames` are pairs: a name in the staging folder, a path below the base path."""

    def __init__(self, base_path: str, job_id: str, sink_id: str) -> None:
        self._base = Path(base_path)
        self._folder = _folder_of(self._base, job_id, sink_id)
        self.staging = self._folder / "inprogress"

    def commit(self, epoch: int, renames: Sequence[Sequence[str]]) -> None:
        """Make an epoch visible, unless it or a later one is: then what was staged for it is thrown away."""
        if not (renames or self._folder.is_dir()):
            return
        # An older decision first: epochs become visible in order.
        for pending in self._epochs("json"):
            self._finish(pending)
        if renames and epoch > self._newest_done():
            self._decide(epoch, renames)
            self._finish(epoch)
        self._clean()

    def _decide(self, epoch: int, renames: Sequence[Sequence[str]]) -> None:
        missing = [name for name, _ in renames if not (self.staging / name).exists()]
        if missing:
            raise SinkFailed(
                f"the files staged for epoch {epoch} are gone from {self.staging}: {', '.join(missing[:3])}",
                way_out="keep the sink's _emberflow folder while the job runs; it must be one folder for all workers",
            )
        entry = self._entry(epoch, "json")
        draft = entry.with_suffix(".tmp")
        text = json.dumps({"version": VERSION, "epoch": epoch, "renames": [list(pair) for pair in renames]})
        with open(draft, "w", encoding="utf-8", opener=open_private) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, entry)
        sync_folder(self._folder)

    def _finish(self, epoch: int) -> None:
        entry = self._entry(epoch, "json")
        folders: set[Path] = set()
        for name, final in self._read(entry):
            staged, target = self.staging / name, self._base / final
            if staged.exists():
                if target.parent not in folders:
                    make_folder(target.parent)
                    folders.add(target.parent)
                os.replace(staged, target)
            elif not target.exists():
                raise SinkFailed(
                    f"{target} was to become visible in epoch {epoch}, but what was staged for it is gone",
                    way_out="keep the sink's _emberflow folder while the job runs; begin anew with another folder",
                )
        # The files must be where they belong before the ledger says so.
        for folder in folders:
            sync_folder(folder)
        os.replace(entry, self._entry(epoch, "done"))
        sync_folder(self._folder)

    def _read(self, entry: Path) -> list[tuple[str, str]]:
        try:
            content: Any = json.loads(entry.read_text(encoding="utf-8"))
            if content["version"] != VERSION:
                raise ValueError(f"version {content['version']}")
            return [(name, final) for name, final in content["renames"]]
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptData(
                f"the ledger entry {entry} cannot be read",
                cause=f"{type(error).__name__}: {error}",
                way_out="it was written by another version or changed by hand; begin anew with another folder",
            ) from error

    def _clean(self) -> None:
        done = self._epochs("done")
        # Oldest first: the newest one, which everything is judged by, is never at risk.
        for epoch in done[:-KEPT]:
            self._entry(epoch, "done").unlink(missing_ok=True)
        newest = done[-1] if done else -1
        for name in _names(self.staging):
            found = _STAGED.fullmatch(name)
            # Left by attempts that died. Later epochs may be prepared already and are not touched.
            if found and int(found.group(1)) <= newest:
                (self.staging / name).unlink(missing_ok=True)

    def _newest_done(self) -> int:
        return max(self._epochs("done"), default=-1)

    def _epochs(self, kind: str) -> list[int]:
        entries = [_ENTRY.fullmatch(name) for name in _names(self._folder)]
        return sorted(int(entry.group(1)) for entry in entries if entry and entry.group(2) == kind)

    def _entry(self, epoch: int, kind: str) -> Path:
        return self._folder / f"{epoch:08d}.{kind}"


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []
