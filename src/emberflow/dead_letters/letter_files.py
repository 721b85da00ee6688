"""Dead letters as files in the checkpoint directory, and the source of redriven ones.

`<checkpoint_dir>/dead-letters/<agent>/letters/` is written by a file sink, exactly once, one line of JSON per letter.
`…/redrive/<number>.json` are letters to be processed again (`dead_letters/redrive.py` writes them); the agent reads them
as another source, whose position is the next number, so each is processed exactly once. `…/redrive/.next` is the number
after the last file, so that a missing file is detected.
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
from emberflow.connectors.files.file_sink_options import BucketAssigner, Encoder, OutputFileConfig
from emberflow.connectors.source import Chunk, Position, Source
from emberflow.errors import CheckpointError, NotSerializable, SourceFailed, describe_cause, shorten
from emberflow.events.codecs import decode, encode
from emberflow.events.identity import text_identity
from emberflow.events.stored_files import corrupt, parse_json, read_bytes, read_json, sealed

DEAD_LETTERS_FOLDER = "dead-letters"
LETTERS, REDRIVE = "letters", "redrive"
VERSION = 2
"""Version of letters, redrive requests and their number. Version 1 had no checksums."""
NEXT = ".next"
REDRIVEN = ("id", "timestamp", "record")
"""What is stored of a letter to process it again."""
_LOST_NUMBER = "restore the file; without a copy, delete it if no file was ever removed from its folder: a number must not be used twice"
EMPTY_REDRIVE = (
    'restore the file, or replace its content by {"version": 1, "letters": []}: its letters are then not processed again, '
    "unless they are redriven once more"
)
INPUT = "_input_event"
LOOK_EVERY_S = 0.5
_LONGEST = 10_000
_LONGEST_NAME = 80


def letters_folder(checkpoint_dir: str, agent: str) -> str:
    """The folder of an agent's dead letters."""
    safe = re.sub(r"[^A-Za-z0-9_-]", "_", agent)[:_LONGEST_NAME]
    # Keep sanitized names distinct: a redriven letter must not reach another agent.
    name = agent if safe == agent and safe else f"{safe or '_'}-{text_identity(agent)}"
    return os.path.join(checkpoint_dir, DEAD_LETTERS_FOLDER, name)


class LetterEncoder(Encoder[Any]):
    """Writes a letter as JSON for people and tools, together with the pickled record for redriving it."""

    def __init__(self, takes_pairs: bool, *, bounded: bool = False) -> None:
        self._takes_pairs = takes_pairs
        # A bounded job reads no letters after its first start: `redrive` must be able to reject them.
        self._extra = {"bounded": True} if bounded else {}

    def encode(self, value: Any) -> bytes:
        letter: dict[str, Any] = value
        record = None
        if letter["event_type"] == INPUT:
            given = (letter["key"], letter["input"]) if self._takes_pairs else letter["input"]
            try:
                record = base64.b64encode(encode(given)).decode()
            except NotSerializable:
                record = None  # The letter can still be read by people.
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
    """The sink of letters whose stream the program does not consume itself."""
    config = OutputFileConfig.builder().with_part_prefix("letters").with_part_suffix(".jsonl").build()
    encoder = LetterEncoder(takes_pairs, bounded=bounded)
    builder = FileSink.for_row_format(os.path.join(folder, LETTERS), encoder)
    builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    return builder.with_output_file_config(config).with_private_files().build()


def redrive_file(folder: str, number: int) -> str:
    return os.path.join(folder, REDRIVE, f"{number:08d}.json")


def next_number(folder: str) -> int:
    """The number after the last redrive file that was ever written; 0 if unknown. Raises CorruptData."""
    path = Path(folder, REDRIVE, NEXT)
    try:
        data = read_bytes(path)
    except FileNotFoundError:
        return 0
    if data.isdigit():
        return int(data)  # Written by version 1.
    number: Any = parse_json(
        path, data, newest=VERSION, version="version", way_out=_LOST_NUMBER, unchecked=1
    ).get("next")
    if not isinstance(number, int):
        raise corrupt(path, "it does not contain a number", _LOST_NUMBER)
    return number


def redriven_letters(path: Path) -> list[dict[str, Any]]:
    """The letters of one file. Raises FileNotFoundError, CorruptData, or CheckpointUnusable if the disk fails."""
    body = read_json(path, newest=VERSION, version="version", way_out=EMPTY_REDRIVE, unchecked=1)
    try:
        return [{name: letter[name] for name in REDRIVEN} for letter in body["letters"]]
    except (KeyError, TypeError) as error:
        raise corrupt(path, "it does not contain a list of letters", EMPTY_REDRIVE) from error


class RedriveSource(Source[Any]):
    """Redriven letters, in the order of the requests. A position is the number of the next file.

    A bounded source ends with the files that exist when it is read.
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
                    f"the redriven letters in {redrive_file(self._folder, number)} were read before, but the file is gone",
                    way_out="restore the file; the job deletes nothing that it may have to read again",
                )
            yield chunk

    def _check_nothing_follows(self, number: int) -> None:
        """Raises if a later file exists: files are written in order, so none can follow a missing one."""
        try:
            names = os.listdir(os.path.join(self._folder, REDRIVE))
        except FileNotFoundError:
            return
        path = redrive_file(self._folder, number)
        later = any(name.endswith(".json") and name > os.path.basename(path) for name in names)
        # Checked last: it may have been written in the meantime.
        if (later or next_number(self._folder) > number) and not os.path.exists(path):
            raise SourceFailed(
                f"the redriven letters in {path} are missing",
                cause="later ones exist" if later else f"{NEXT} says that they were written",
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
