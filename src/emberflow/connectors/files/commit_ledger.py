"""The write-ahead ledger of a file sink: which epochs are visible.

    base/.emberflow/{job}-{sink}/inprogress-{f}/{epoch}-{subtask}-{n}.{attempt}   staged, not visible
    base/.emberflow/{job}-{sink}/inprogress-{f}/{epoch}-0000-0.decided            all files of the epoch were there
    base/.emberflow/{job}-{sink}/{epoch}-{f}.json                                 decision: which file gets which name
    base/.emberflow/{job}-{sink}/{epoch}.done                                     all files are visible
    base/.emberflow/{job}-{sink}/ledger.json                                      id and owner of the ledger

An epoch is committed as soon as its .json exists; everything after that only completes the decision. Each step is one
rename and can be repeated: a crash between any two of them neither loses nor duplicates output.

`f` is the fencing epoch of the job's start (omitted if it is 0). `take_over` moves the staged files of older starts into
the folder of the new one before it reads their decisions. A process of an older start that has not made its decision by
then finds its files gone: it cannot make anything visible any more, at whatever point it was suspended.
Called by `FileSink` only.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from emberflow.connectors.files.staged_files import StagedFile
from emberflow.errors import OwnershipLost, SinkFailed, SinkMismatch, describe_cause
from emberflow.events.identity import text_identity
from emberflow.events.stored_files import corrupt, make_folder, read_json, sync_folder, write_json

FOLDER = ".emberflow"
"""Hidden, so that programs that list the output with a pattern find only results."""
FOLDERS = (FOLDER, "_emberflow")
"""Its names: that of this version, and that of ledgers that earlier versions began."""
IDENTITY = "ledger.json"
KEPT = 3
"""Finished epochs that stay on record; only the newest one is needed."""
VERSION = 2
"""Version of a decision; version 1 had no lengths and checksums of the staged files."""
_IDENTITY_VERSION = 1
_LOST = (
    "restore it from a backup; without one, start over with another output folder and an empty checkpoint directory, from the"
    " last savepoint if there is one"
)

_ENTRY = re.compile(r"(\d{8,})(?:-(\d{6,}))?\.(json|done)")
_STAGED = re.compile(r"(\d{8,})-\d{4,}-\d+\..+")
_STAGING = re.compile(r"inprogress(?:-(\d{6,}))?")


@dataclass(frozen=True, slots=True)
class _Entry:
    epoch: int
    fence: int
    name: str


def short_id(job_id: str, sink_id: str) -> str:
    """Part of every file name, so that several jobs and sinks can share a folder."""
    return text_identity(job_id, sink_id)


def _folder_of(base: Path, job_id: str, sink_id: str) -> Path:
    """The folder of the sink's ledger. One created by an earlier version keeps its name: its epochs must be found."""
    readable = f"{safe_name(job_id)}-{safe_name(sink_id)}"
    shorter = blake2b(f"{job_id}\0{sink_id}".encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    names = f"{readable}-{short_id(job_id, sink_id)}", f"{readable}-{shorter}"
    places = [base / folder / name for folder in FOLDERS for name in names]
    return next((place for place in places if place.is_dir()), places[0])


def has_ledger(base_path: str, job_id: str, sink_id: str) -> bool:
    """Whether the job has ever staged anything in this folder."""
    return _folder_of(Path(base_path), job_id, sink_id).is_dir()


def safe_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:60]


class CommitLedger:
    """The ledger of one sink in one job. Without a fencing epoch it acts for the latest start of the job."""

    def __init__(self, base_path: str, job_id: str, sink_id: str, fence: int | None = None) -> None:
        self._base = Path(base_path)
        self._folder = _folder_of(self._base, job_id, sink_id)
        self._written_by = fence
        """The start whose files need not be read again before they become visible."""
        self._fence = self.newest_fence() if fence is None else fence
        self.staging = self._staging_of(self._fence)

    def take_over(self, mode: int = 0o777, *, again: bool = False) -> str:
        """Called at each start of the job. From here on, nothing of an older start becomes visible unless it was decided.
        Returns the ledger's id, which never changes. `mode` is for the folders it creates. A fencing epoch belongs to one start,
        which may call this `again`; raises SinkMismatch if another start uses the same epoch."""
        self.check_fence()
        known = self._identity()
        if known is None:
            self._check_is_new()
            make_folder(self._folder, mode)
            known = uuid.uuid4().hex, 0
            # Before creating any folder of this version: a ledger with folders but without an id has lost it.
            self._write_identity(known[0], 0)
        self._make_staging(mode, again=again)
        # First the files, then the decisions: a decision that is missed below no longer has its files.
        for fence in self._fences():
            if fence != self._fence:
                self._move_staged(self._staging_of(fence))
        for entry in self._entries("json"):
            if entry.fence >= known[1]:
                self._finish(entry)
            else:
                # A decision made after another start had looked for decisions.
                (self._folder / entry.name).unlink(missing_ok=True)
        self._write_identity(known[0], self._fence)
        return known[0]

    def _write_identity(self, ledger: str, fence: int) -> None:
        body = {"version": _IDENTITY_VERSION, "id": ledger, "fencing_epoch": fence}
        write_json(self._folder / IDENTITY, body)

    def _make_staging(self, mode: int, *, again: bool) -> None:
        try:
            make_folder(self.staging, mode, new=self._fence > 0 and not again)
        except FileExistsError:
            raise SinkMismatch(
                f"another start of the job has taken over the sink's folder {self._base}, with the same fencing epoch "
                f"{self._fence}",
                cause="a copy of the job's checkpoint directory was started at the same time",
                way_out="start only one of them; a separate job needs an empty checkpoint directory and another output "
                "folder",
                committed="this process has written nothing to it",
            ) from None

    def _check_is_new(self) -> None:
        """A ledger without an id is new, or of a version that had neither ids nor staging folders per start."""
        if any(self._fences()) and (self._entries("json") or self._entries("done")):
            raise corrupt(self._folder / IDENTITY, "it is missing, but the ledger has epochs", _LOST)

    def commit(self, epoch: int, files: Sequence[StagedFile]) -> None:
        """Makes an epoch visible. If it or a later one is visible already, its staged files are discarded. Raises CorruptData
        for a file that differs from what was staged."""
        if not (files or self._folder.is_dir()):
            return
        self.check_fence()
        # Complete an older decision first: epochs become visible in order. Decisions of older starts came too late.
        for pending in self._entries("json"):
            if pending.fence == self._fence:
                self._finish(pending)
        if files and epoch > self.newest():
            self._finish(self._decide(epoch, files))
        self._clean()

    def remove(self) -> None:
        """Leaves only results behind, after a job that cannot be continued. Other jobs' ledgers are kept."""
        shutil.rmtree(self._folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            self._folder.parent.rmdir()

    def newest(self) -> int:
        """The newest visible epoch; -1 before the first."""
        return max((entry.epoch for entry in self._entries("done")), default=-1)

    def newest_fence(self) -> int:
        """The newest start that has taken over the sink; 0 before the first."""
        return max(self._fences(), default=0)

    def check_fence(self) -> None:
        """Raises OwnershipLost if a later start has taken over."""
        newest = self.newest_fence()
        if newest > self._fence:
            raise OwnershipLost(
                f"the sink's folder {self._base} belongs to a later start of the job",
                cause=f"this start has fencing epoch {self._fence}, the later one {newest}",
                way_out="let the later start continue; if it was started by mistake, stop it and start this job again",
                committed="this process commits nothing more to it",
            )

    def _move_staged(self, staging: Path) -> None:
        for name in _names(staging):
            with contextlib.suppress(FileNotFoundError):
                os.replace(staging / name, self.staging / name)
        sync_folder(self.staging)
        with contextlib.suppress(OSError):
            # Not empty if its process is still writing: the next start tries again.
            staging.rmdir()

    def _decide(self, epoch: int, files: Sequence[StagedFile]) -> _Entry:
        missing = [file.name for file in files if not (self.staging / file.name).exists()]
        if missing:
            self.check_fence()
            raise SinkFailed(
                f"the files staged for epoch {epoch} are gone from {self.staging}: {', '.join(missing[:3])}",
                way_out=f"keep the sink's {FOLDER} folder while the job runs; it must be one folder for all workers",
            )
        for file in files:
            by_this_start = self._written_by is not None and file.fence == self._written_by
            file.check(self.staging / file.name, _LOST, content=not by_this_start)
        # Kept next to the staged files and moved with them: if it exists, a missing file has become visible before.
        (self.staging / _mark(epoch)).touch(0o600)
        entry = _Entry(epoch, self._fence, f"{epoch:08d}{_suffix(self._fence)}.json")
        body = {"version": VERSION, "epoch": epoch, "renames": [file.as_decided() for file in files]}
        write_json(self._folder / entry.name, body)
        return entry

    def _finish(self, entry: _Entry) -> None:
        path = self._folder / entry.name
        folders: set[Path] = set()
        files = self._read(path)
        for file in files if entry.fence != self._fence else ():
            with contextlib.suppress(FileNotFoundError):
                file.check(self.staging / file.name, _LOST, content=True)
        for file in files:
            staged, target = self.staging / file.name, self._base / file.final
            if staged.exists() and target.parent not in folders:
                make_folder(target.parent)
                folders.add(target.parent)
            try:
                os.replace(staged, target)
            except FileNotFoundError:
                if not target.exists():
                    # Before anything else: an older start finds its files gone, too.
                    self.check_fence()
                    if (self.staging / _mark(entry.epoch)).exists():
                        continue  # Visible before a crash, and moved since by a reader of the folder.
                    raise SinkFailed(
                        f"{target} should become visible in epoch {entry.epoch}, but its staged file is gone: {staged}",
                        way_out=f"keep the sink's {FOLDER} folder while the job runs; {_LOST}",
                    ) from None
        # The files must be in place before the ledger says so.
        for folder in folders:
            sync_folder(folder)
        os.replace(path, self._folder / f"{entry.epoch:08d}.done")
        sync_folder(self._folder)

    def _read(self, entry: Path) -> list[StagedFile]:
        content = read_json(entry, newest=VERSION, version="version", way_out=_LOST, unchecked=1)
        try:
            return [StagedFile.decided(item) for item in content["renames"]]
        except (ValueError, KeyError, TypeError) as error:
            raise corrupt(entry, describe_cause(error), _LOST) from error

    def _identity(self) -> tuple[str, int] | None:
        """The ledger's id, and the last start that has looked for decisions; None before the first."""
        path = self._folder / IDENTITY
        try:
            content = read_json(path, newest=_IDENTITY_VERSION, version="version", way_out=_LOST)
        except FileNotFoundError:
            return None
        try:
            return str(content["id"]), int(content["fencing_epoch"])
        except (ValueError, KeyError, TypeError) as error:
            raise corrupt(path, describe_cause(error), _LOST) from error

    def _clean(self) -> None:
        done = self._entries("done")
        # Oldest first: the newest entry, which everything is compared with, is never at risk.
        for entry in done[:-KEPT]:
            (self._folder / entry.name).unlink(missing_ok=True)
        for entry in self._entries("json"):
            if entry.fence < self._fence:
                (self._folder / entry.name).unlink(missing_ok=True)
        newest = done[-1].epoch if done else -1
        for name in _names(self.staging):
            found = _STAGED.fullmatch(name)
            # Leftovers of attempts that died. Later epochs may already be prepared and are not touched.
            if found and int(found.group(1)) <= newest:
                (self.staging / name).unlink(missing_ok=True)

    def _entries(self, kind: str) -> list[_Entry]:
        """Entries of one kind, sorted by epoch."""
        found = [_ENTRY.fullmatch(name) for name in _names(self._folder)]
        entries = [
            _Entry(int(item[1]), int(item[2] or 0), item[0]) for item in found if item and item[3] == kind
        ]
        return sorted(entries, key=lambda entry: (entry.epoch, entry.fence))

    def _fences(self) -> list[int]:
        """The starts of the job that have a staging folder."""
        found = [_STAGING.fullmatch(name) for name in _names(self._folder)]
        return sorted(int(item[1] or 0) for item in found if item)

    def _staging_of(self, fence: int) -> Path:
        return self._folder / f"inprogress{_suffix(fence)}"


def _mark(epoch: int) -> str:
    """Named like a staged file, so that it is removed with those of its epoch."""
    return f"{epoch:08d}-0000-0.decided"


def _suffix(fence: int) -> str:
    return f"-{fence:06d}" if fence else ""


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []
