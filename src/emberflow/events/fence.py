"""The fencing epoch of a checkpoint directory: whether this start of a job may still make output visible.

An owner takes the next epoch by creating `owners/{epoch}.json` (`engines/job/ownership.py`). A `Fence` is sent to
workers and checked wherever something is committed: by engines, the call log, approvals and sinks. It only reads.
"""

from __future__ import annotations

import datetime as dt
import errno
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from emberflow.errors import (
    CallLogFailed,
    CheckpointUnusable,
    EmberflowError,
    EngineFailed,
    OwnershipLost,
    SinkFailed,
    SinkMismatch,
    WorkerLost,
)

FOLDER = "owners"
_CLAIM = re.compile(r"(\d{10,})\.json")
NO_LOCKS = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS)


@dataclass(frozen=True, slots=True)
class Fence:
    """A fencing epoch of a directory. Without one (a job without a checkpoint directory) every check passes."""

    directory: str = ""
    epoch: int = 0

    def check(self) -> None:
        """Raises OwnershipLost if another owner has started since."""
        if self.epoch and not self._is_newest():
            raise self.lost()

    def check_if_reachable(self) -> None:
        """Like `check`, for a worker that may be on a machine without access to the directory."""
        if self.epoch and not self._is_newest() and os.path.isdir(os.path.join(self.directory, FOLDER)):
            raise self.lost()

    def explained(self, error: EmberflowError) -> EmberflowError:
        """The error of a job; OwnershipLost if the job failed because it was replaced, whatever the error says."""
        if isinstance(
            error, EngineFailed | WorkerLost | CallLogFailed | SinkFailed | SinkMismatch | CheckpointUnusable
        ):
            try:
                self.check()
            except OwnershipLost as lost:
                return lost
        return error

    def _is_newest(self) -> bool:
        # Each owner takes the number after the newest; old claims are removed, so one's own may be gone too.
        return os.path.exists(claim_path(self.directory, self.epoch)) and not os.path.exists(
            claim_path(self.directory, self.epoch + 1)
        )

    def lost(self) -> OwnershipLost:
        newest = newest_claim(Path(self.directory))
        by = (
            describe_owner(read_owner(Path(claim_path(self.directory, newest))))
            if newest > self.epoch
            else ""
        )
        return OwnershipLost(
            f"the checkpoint directory {self.directory} no longer belongs to this job: "
            + (f"{by} has taken it over" if by else f"its {FOLDER} folder was removed"),
            cause=f"this start has fencing epoch {self.epoch}"
            + (f", the new owner {newest}" if newest > self.epoch else ""),
            way_out="let the new owner continue; if it was started by mistake, stop it and start this job again"
            if by
            else "stop whatever removes files there, then start the job again",
            committed="this process commits nothing more; the new owner continues from the last checkpoint",
        )


NO_FENCE = Fence()


def read_owner(path: Path) -> dict[str, Any]:
    """The owner recorded in a file; informational, so an unreadable file is ignored."""
    try:
        found = json.loads(path.read_text())
        return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    except (OSError, ValueError):
        return {}


def describe_owner(owner: dict[str, Any]) -> str:
    try:
        since = dt.datetime.fromtimestamp(owner["since_ms"] / 1000, dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"process {owner['pid']} on {owner['host']} (since {since})"
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return "another process"


def claim_path(directory: str, number: int) -> str:
    return os.path.join(directory, FOLDER, f"{number:010d}.json")


def claims(home: Path) -> list[int]:
    found = [_CLAIM.fullmatch(name) for name in os.listdir(home / FOLDER)]
    return [int(item.group(1)) for item in found if item]


def newest_claim(home: Path) -> int:
    try:
        return max(claims(home), default=0)
    except FileNotFoundError:
        return 0
