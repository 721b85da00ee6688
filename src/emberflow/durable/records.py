"""The records of a call log, and the form in which they are stored.

A record is stored as a plain tuple: its kind, then its fields in the order in which they are declared here. A new field
is added last and has a default, so that records of the previous version can still be read; any other change needs a new
version of the framing (`stores/framing.py`). Only `to_stored` and `from_stored` know that form.

The types are named tuples because several of them are created for every action; they are never stored as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from emberflow.errors import CorruptData
from emberflow.operators.agents.calls.durable_calls import CallRecord

Stored = tuple[Any, ...]


class Call(NamedTuple):
    """A durable call was started or answered."""

    call: CallRecord
    mark: str
    """Distinguishes this record from others of the same call: see `marked`."""


class Forgotten(NamedTuple):
    """A call must be made again: the record with this mark no longer counts."""

    action: str
    mark: str


class Claimed(NamedTuple):
    """The process runs the action."""

    action: str
    fencing_epoch: int | None = None
    """Of the start of the job that the process serves. None in records of the previous version."""


class Runs(NamedTuple):
    """All actions that the process runs; replaces its earlier claims."""

    actions: list[str]
    fencing_epoch: int | None = None


class Ended(NamedTuple):
    """The process no longer runs the action."""

    action: str


class Parked(NamedTuple):
    """State that the attempt is about to commit holds these actions as unfinished."""

    epoch: int
    attempt: int
    actions: Mapping[str, int]
    """action -> inputs of its key that are queued behind it"""


class Done(NamedTuple):
    """The action is done if this attempt is the one that is committed."""

    epoch: int
    place: str
    attempt: int
    action: str


class Began(NamedTuple):
    """An attempt at an epoch started at a place, such as a partition of a Spark task."""

    epoch: int
    place: str
    attempt: int


class Due(NamedTuple):
    """The earliest time at which a task's state has something to do, if any."""

    name: str
    at_ms: int | None
    epoch: int
    attempt: int


Record = Call | Forgotten | Claimed | Runs | Ended | Parked | Done | Began | Due

_KINDS: dict[Any, str] = {
    Call: "call",
    Forgotten: "forgotten",
    Claimed: "claimed",
    Runs: "runs",
    Ended: "ended",
    Parked: "parked",
    Done: "done",
    Began: "began",
    Due: "due",
}
_TYPES = {kind: record for record, kind in _KINDS.items()}


def to_stored(record: Record) -> Stored:
    return (_KINDS[record.__class__], *record)


def from_stored(stored: Stored) -> Record:
    """Raises CorruptData for an unknown kind."""
    try:
        return _TYPES[stored[0]](*stored[1:])
    except (KeyError, TypeError) as error:
        raise _unknown(stored) from error


Note = Parked | Done | Due
"""What an attempt at an epoch has noted, for an attempt that repeats it."""


def noted_by(attempt: Began, note: Note) -> Note:
    """The same note as a record of another attempt."""
    if isinstance(note, Done):
        return Done(attempt.epoch, attempt.place, attempt.attempt, note.action)
    return note._replace(epoch=attempt.epoch, attempt=attempt.attempt)


def note_to_stored(note: Note) -> Stored:
    """Without epoch and attempt: the repeating attempt supplies its own."""
    match note:
        case Parked():
            return "parked", note.actions
        case Done():
            return "done", note.action
        case Due():
            return "due", note.name, note.at_ms


def note_from_stored(stored: Stored) -> Note:
    """A note that belongs to no attempt yet. Raises CorruptData for an unknown kind."""
    match stored:
        case ("parked", actions):
            return Parked(-1, 0, actions)
        case ("done", action):
            return Done(-1, "", 0, action)
        case ("due", name, at_ms):
            return Due(name, at_ms, -1, 0)
        case _:
            raise _unknown(stored)


def _unknown(stored: Stored) -> CorruptData:
    return CorruptData(
        f"a record of kind {stored[0]!r} with {len(stored) - 1} fields is unknown",
        cause="it was stored by a newer version of emberflow",
        way_out="update emberflow",
    )


# marks


def marked(fencing_epoch: int, name: str) -> str:
    """The mark of a call's record: if two starts of a job have answered a call, the later one counts."""
    return f"{fencing_epoch}:{name}" if fencing_epoch else name


def fencing_epoch_of(mark: str) -> int:
    fence, found, _ = mark.partition(":")
    return int(fence) if found and fence.isdigit() else 0


# records in another job


def for_another_job(record: Record) -> Record:
    """The record without fencing epochs: another job counts its starts from the beginning."""
    if isinstance(record, Call | Forgotten):
        return record._replace(mark=record.mark.rpartition(":")[2])
    return record


def carried_over(record: Record, first_epoch: int) -> bool:
    """Whether a record is relevant to another job, which starts with this epoch and has its own processes."""
    if isinstance(record, Claimed | Ended | Runs | Due):
        return False
    return isinstance(record, Call | Forgotten) or record.epoch < first_epoch
