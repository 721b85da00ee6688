"""Dead letters as files below the checkpoint directory, and the way back.

`<checkpoint_dir>/dead-letters/<agent>/letters/` is written by a file sink, exactly once, a line of JSON for each letter.
`…/redrive/<number>.json` are letters that somebody wants to be tried again (`dead_letters/redrive.py` writes them); the
agent reads them as one more source, whose position says which it has taken: each is taken in exactly once. `…/redrive/.next`
is the number behind the last file, so that one that is gone is missed.
"""

from __future__ import annotations

import base64
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from emberflow.connectors.files.file_sink import FileSink
from emberflow.connectors.files.file_sink_options import Encoder, OutputFileConfig
from emberflow.connectors.source import Chunk, Position, Source
from emberflow.errors import CheckpointError, NotSerializable, SourceFailed, describe_cause, shorten
from emberflow.events.codecs import decode, encode
from emberflow.events.identity import text_identity
from emberflow.events.stored_files import corrupt, parse_json, read_bytes, read_json, sealed

DEAD_LETTERS_FOLDER = "dead-letters"
LETTERS, REDRIVE = "letters", "redrive"
VERSION = 2
"""Of letters, redriven ones and their number. The first one had no checksums."""
NEXT = ".next"
REDRIVEN = ("id", "timestamp", "record")
"""What is kept of a letter for its other try."""
_LOST_NUMBER = "restore the file; without a copy, delete it if no file was ever removed from its folder: a number must not be used twice"
EMPTY_REDRIVE = (
    'restore the file, or replace its content by {"version": 1, "letters": []}: its letters are then not tried again, '
    "unless that is asked for once more"
)
INPUT = "_input_event"
LOOK_EVERY_S = 0.5
_LONGEST = 10_000
_LONGEST_NAME = 80


def letters_folder(checkpoint_dir: str, agent: str) -> str:
    """Where an agent's letters are kept."""
    safe = re.sub(r"[^A-Za-z0-9_-]", "_", agent)[:_LONGEST_NAME]
    # Names that had to be changed stay apart: what is redriven must not reach another agent.
    name = agent if safe == agent and safe else f"{safe or '_'}-{text_identity(agent)}"
    return os.path.join(checkpoint_dir, DEAD_LETTERS_FOLDER, name)


class LetterEncoder(Encoder[Any]):
    """A letter as JSON for people and tools; beside it the record itself, for the way back."""

    def __init__(self, takes_pairs: bool, *, bounded: bool = False) -> None:
        self._takes_pairs = takes_pairs
        # Of a job that reads no letters after its first start: who asks for another try must be told.
        self._extra = {"bounded": True} if bounded else {}

    def encode(self, value: Any) -> bytes:
        letter: dict[str, Any] = value
        record = None
        if letter["event_type"] == INPUT:
            given = (letter["key"], letter["input"]) if self._takes_pairs else letter["input"]
            try:
                record = base64.b64encode(encode(given)).decode()
            except NotSerializable:
                record = None  # Read by people all the same.
        shown = {**letter, "key": _plain(letter["key"]), "input": _plain(letter["input"])}
        body = {"version": VERSION, **shown, **self._extra, "record": record}
        return (json.dumps(sealed(body)) + "\n").encode()


def _plain(value: Any) -> Any:
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return shorten(value, _LONGEST)
    return value if len(text) <= _LONGEST else shorten(value, _LONGEST)


def letter_sink(folder: str, *, takes_pairs: bool, bounded: bool) -> FileSink[Any]:
    """The sink of letters that the program does not take itself."""
    config = OutputFileConfig.builder().with_part_prefix("letters").with_part_suffix(".jsonl").build()
    encoder = LetterEncoder(takes_pairs, bounded=bounded)
    builder = FileSink.for_row_format(os.path.join(folder, LETTERS), encoder)
    return builder.with_output_file_config(config).with_private_files().build()


def redrive_file(folder: str, number: int) -> str:
    return os.path.join(folder, REDRIVE, f"{number:08d}.json")


def next_number(folder: str) -> int:
    """Behind the last file of redriven letters that was ever written; 0 if that is not known. Raises CorruptData."""
    path = Path(folder, REDRIVE, NEXT)
    try:
        data = read_bytes(path)
    except FileNotFoundError:
        return 0
    if data.isdigit():
        return int(data)  # As the first version wrote it.
    number: Any = parse_json(
        path, data, newest=VERSION, version="version", way_out=_LOST_NUMBER, unchecked=1
    ).get("next")
    if not isinstance(number, int):
        raise corrupt(path, "it holds no number", _LOST_NUMBER)
    return number


def redriven_letters(path: Path) -> list[dict[str, Any]]:
    """Of one file. Raises FileNotFoundError, CorruptData, and CheckpointUnusable where the disk fails."""
    body = read_json(path, newest=VERSION, version="version", way_out=EMPTY_REDRIVE, unchecked=1)
    try:
        return [{name: letter[name] for name in REDRIVEN} for letter in body["letters"]]
    except (KeyError, TypeError) as error:
        raise corrupt(path, "it holds no list of letters", EMPTY_REDRIVE) from error


class RedriveSource(Source[Any]):
    """Letters to be tried again, in the order in which that was asked for. A position is the number of the next file.

    A bounded one ends with what is there when it is read.
    """

    def __init__(self, folder: str, *, bounded: bool) -> None:
        self._folder = folder
        self.bounded = bounded
        self._next_look_s = 0.0

    def describe(self) -> str:
        return "redriven dead letters"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_next_look_s": 0.0}

    def read(self, channel: int, position: Position, limit: int) -> Iterator[Chunk[Any]]:
        if not self.bounded:
            if time.monotonic() < self._next_look_s:
                return
            self._next_look_s = time.monotonic() + LOOK_EVERY_S
        number: int = position
        while (chunk := self._file(number)) is not None:
            number += 1
            yield chunk
        if self.bounded:
            yield Chunk([], number, end=True)

    def read_again(
        self, channel: int, position: Position, stop: Position, limit: int
    ) -> Iterator[Chunk[Any]]:
        for number in range(position, stop):
            chunk = self._file(number)
            if chunk is None:
                raise SourceFailed(
                    f"the redriven letters in {redrive_file(self._folder, number)} were read before, and are gone now",
                    way_out="put the file back; the job deletes nothing that it may have to read again",
                )
            yield chunk

    def _check_nothing_follows(self, number: int) -> None:
        """Files come in order: behind one that is not there yet, there is none."""
        try:
            names = os.listdir(os.path.join(self._folder, REDRIVE))
        except FileNotFoundError:
            return
        path = redrive_file(self._folder, number)
        later = any(name.endswith(".json") and name > os.path.basename(path) for name in names)
        # Looked for last: it may have been written meanwhile.
        if (later or next_number(self._folder) > number) and not os.path.exists(path):
            raise SourceFailed(
                f"the redriven letters in {path} are missing",
                cause="later ones are there" if later else f"{NEXT} says that they were written",
                way_out=EMPTY_REDRIVE,
            )

    def _file(self, number: int) -> Chunk[Any] | None:
        path = redrive_file(self._folder, number)
        try:
            letters = redriven_letters(Path(path))
            values = [decode(base64.b64decode(letter["record"])) for letter in letters]
        except FileNotFoundError:
            self._check_nothing_follows(number)
            return None
        except (OSError, ValueError, TypeError, CheckpointError) as error:
            raise SourceFailed(
                f"the redriven letters in {path} cannot be read",
                cause=error.cause if isinstance(error, CheckpointError) else describe_cause(error),
                way_out=EMPTY_REDRIVE,
            ) from error
        return Chunk(values, number + 1, timestamps=[letter["timestamp"] for letter in letters])
