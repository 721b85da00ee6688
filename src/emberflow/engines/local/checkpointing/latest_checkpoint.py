"""Which checkpoint of a job is the newest, in a separate small file: detects that a store has lost it.

Written after every checkpoint, before its output becomes visible. A crash in between leaves the number of the previous
one, which does no harm: state that is newer than the file says is complete as well.
"""

from __future__ import annotations

from pathlib import Path

from emberflow.errors import CorruptData
from emberflow.events.stored_files import corrupt, read_json, write_json

NAME = "latest.json"
_FORMAT = 1
LOST = (
    "restore it from a backup taken while the job was stopped; without one, start with an empty checkpoint directory and"
    " another output folder, from the last savepoint if there is one"
)


At = tuple[int, int]
"""The fencing epoch of the start that wrote a checkpoint, and the checkpoint's epoch. A start that was replaced while
writing may have reached a higher epoch than the one that continues."""


def write_latest(directory: Path, at: At) -> None:
    write_json(directory / NAME, {"format": _FORMAT, "fence": at[0], "epoch": at[1]})


def read_latest(directory: Path) -> At | None:
    """The newest checkpoint known to have been complete; None if none is known."""
    path = directory / NAME
    advice = f"delete it and start again: {path} only names the newest checkpoint, which is then not checked"
    try:
        body = read_json(path, newest=_FORMAT, way_out=advice)
    except FileNotFoundError:
        return None
    fence, epoch = body.get("fence"), body.get("epoch")
    if type(epoch) is not int or type(fence) is not int:
        raise corrupt(path, "it does not name a checkpoint", advice)
    return fence, epoch


def check_latest(directory: Path, found: At | None, where: str) -> None:
    """Raises CorruptData if the newest checkpoint found is older than the newest one recorded."""
    latest = read_latest(directory)
    if latest is not None and (found is None or found < latest):
        has = "none" if found is None else f"checkpoint {found[1]}"
        raise CorruptData(
            f"{where} has lost its newest checkpoint",
            cause=f"{NAME} says that checkpoint {latest[1]} was complete, and there is {has}",
            way_out=LOST,
            committed="an older state would repeat or lose output and repeat calls, so the job does not start from it",
        )
