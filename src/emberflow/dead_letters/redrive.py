"""Lists dead letters and redrives them; used by the command line.

Reads and writes the files of `dead_letters/letter_files.py`; the job need not be running.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emberflow.dead_letters.letter_files import (
    DEAD_LETTERS_FOLDER,
    LETTERS,
    NEXT,
    REDRIVE,
    REDRIVEN,
    VERSION,
    next_number,
    redrive_file,
    redriven_letters,
)
from emberflow.errors import CheckpointUnusable, InvalidArgument, describe_cause
from emberflow.events.private_files import make_private_folder, open_private, write_private
from emberflow.events.stored_files import corrupt, parse_json, read_bytes, write_json

_MOVE_AWAY = (
    "restore the file, or move it out of the checkpoint directory: its letters are then no longer listed"
)


@dataclass(frozen=True, slots=True)
class Letter:
    """One dead letter. `redriven` says whether it was redriven already."""

    body: dict[str, Any]
    folder: Path
    redriven: bool

    @property
    def id(self) -> str:
        return self.body["id"]

    def to_json(self) -> dict[str, Any]:
        shown = {
            name: value for name, value in self.body.items() if name not in ("record", "version", "bounded")
        }
        return {**shown, "redriven": self.redriven}


def letters(checkpoint_dir: str | Path) -> list[Letter]:
    """All letters in a checkpoint directory, oldest first."""
    if not Path(checkpoint_dir).is_dir():
        raise InvalidArgument(
            f"there is no directory {str(checkpoint_dir)!r}",
            way_out="name the checkpoint directory of the job",
        )
    found: list[Letter] = []
    for folder in sorted((Path(checkpoint_dir) / DEAD_LETTERS_FOLDER).glob("*")):
        asked = _redriven(folder)
        for path in sorted((folder / LETTERS).glob("*.jsonl")):
            found += [Letter(body, folder, body["id"] in asked) for body in _lines(path)]
    return sorted(found, key=lambda letter: (letter.body["failed_ms"], letter.id))


def chosen(checkpoint_dir: str | Path, ids: Sequence[str]) -> list[Letter]:
    """The letters with these ids or prefixes of ids; raises InvalidArgument for one that does not exist or is ambiguous."""
    known = letters(checkpoint_dir)
    picked: dict[str, Letter] = {}
    for given in ids:
        matching = [letter for letter in known if letter.id.startswith(given)] if given else []
        exact = [letter for letter in matching if letter.id == given] or matching
        if len(exact) != 1:
            what = "matches several letters" if exact else "matches no letter"
            raise InvalidArgument(
                f"{given!r} {what}", way_out=f"emberflow dead-letters list {checkpoint_dir}"
            )
        picked[exact[0].id] = exact[0]
    return list(picked.values())


def redrive(wanted: Sequence[Letter], *, again: bool = False) -> list[Letter]:
    """Requests that letters are processed again; returns those that were newly requested.

    A letter that was redriven before is skipped unless `again` is set. Raises InvalidArgument for a letter that
    contains no input, and for one of a job with bounded input, which reads letters at its first start only.
    """
    for letter in wanted:
        if letter.body.get("bounded"):
            raise InvalidArgument(
                f"the letter {letter.id} cannot be redriven to its job",
                cause="the job's input is bounded: it reads nothing that is added after its first start",
                way_out="emberflow dead-letters redrive ... --to FILE writes the inputs to a file for another run",
            )
        if not letter.body.get("record"):
            raise InvalidArgument(
                f"the letter {letter.id} cannot be redriven",
                cause="it came from a delayed event, not from an input"
                if letter.body.get("event_type") != "_input_event"
                else "its input could not be stored",
                way_out="send an input that leads to it, or leave this letter out",
            )
    done: list[Letter] = []
    for folder in dict.fromkeys(letter.folder for letter in wanted):
        with _locked(folder):
            # Check again while holding the lock: another process may have redriven it in between.
            asked = _redriven(folder)
            mine = [item for item in wanted if item.folder == folder and (again or item.id not in asked)]
            if mine:
                _append(folder, mine)
                done += mine
    return done


def to_file(wanted: Sequence[Letter], path: str | Path) -> None:
    """Writes the inputs as lines of JSON, for a job that has ended or another program."""
    text = "".join(
        json.dumps({"key": item.body["key"], "value": item.body["input"]}) + "\n" for item in wanted
    )
    _attempt(path, lambda: write_private(path, text))


def _append(folder: Path, wanted: list[Letter]) -> None:
    names = [int(path.stem) for path in (folder / REDRIVE).glob("*.json")]
    # Never reuse a number: the job may have read past it, and a file may have been removed since.
    number = max(max(names, default=-1) + 1, next_number(str(folder)))
    path = Path(redrive_file(str(folder), number))
    body = {
        "version": VERSION,
        "letters": [{name: letter.body[name] for name in REDRIVEN} for letter in wanted],
    }
    # Written atomically: a job may be reading the folder.
    _attempt(path, lambda: write_json(path, body))
    _attempt(folder, lambda: write_json(folder / REDRIVE / NEXT, {"version": VERSION, "next": number + 1}))


def _redriven(folder: Path) -> set[str]:
    found: set[str] = set()
    for path in (folder / REDRIVE).glob("*.json"):
        found |= {letter["id"] for letter in _attempt(path, lambda path=path: redriven_letters(path))}
    return found


def _lines(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for line in _attempt(path, lambda: read_bytes(path)).split(b"\n"):
        if line:
            body = parse_json(path, line, newest=VERSION, version="version", way_out=_MOVE_AWAY, unchecked=1)
            if not {"id", "failed_ms", "key", "input"} <= body.keys():
                raise corrupt(path, "a line is not a dead letter", _MOVE_AWAY)
            found.append(body)
    return found


@contextmanager
def _locked(folder: Path) -> Any:
    """Holds a lock that all processes of this machine respect."""
    _attempt(folder, lambda: make_private_folder(folder / REDRIVE))
    with open(folder / REDRIVE / ".lock", "w", opener=open_private) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _attempt(path: str | Path, action: Callable[[], Any]) -> Any:
    try:
        return action()
    except (OSError, ValueError) as error:
        raise CheckpointUnusable(
            f"the dead letters in {path} cannot be used", cause=describe_cause(error), way_out=_MOVE_AWAY
        ) from error
