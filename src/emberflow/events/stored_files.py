"""Small files that survive a restart: written atomically, verified when they are read.

Manifests, counters and ledgers of engines, savepoints and sinks are JSON objects with a checksum over all other fields.
A file that fails its check raises `CorruptData` with its name; it never counts as a different value or as absent.
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast
from zlib import crc32

from emberflow.errors import CheckpointUnusable, CorruptData, describe_cause
from emberflow.events.private_files import make_private_folder, open_private

CHECKSUM = "checksum"


def write_json(path: Path, body: Mapping[str, Any]) -> None:
    """Writes an object with its checksum, atomically. Raises OSError."""
    write_atomically(path, json.dumps(sealed(body), indent=2).encode())


def sealed(body: Mapping[str, Any]) -> dict[str, Any]:
    """The object after a JSON round trip, with its checksum."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(body)))
    return {**plain, CHECKSUM: checksum_of(plain)}


def read_json(
    path: Path, *, newest: int, way_out: str, version: str = "format", unchecked: int | None = None
) -> dict[str, Any]:
    """Reads an object, without its checksum. `newest` is the highest `version` that the caller understands.

    An object up to the version `unchecked` is accepted without a checksum too (None: any version): earlier versions wrote
    none. Raises FileNotFoundError, CorruptData with the caller's `way_out`, and CheckpointUnusable if the file cannot be
    read or was written by a newer version.
    """
    return parse_json(
        path, read_bytes(path), newest=newest, way_out=way_out, version=version, unchecked=unchecked
    )


def read_bytes(path: Path) -> bytes:
    """Reads a file; raises FileNotFoundError, or CheckpointUnusable if the disk or its permissions fail."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CheckpointUnusable(
            f"{path} cannot be read",
            cause=describe_cause(error),
            way_out="make it readable for this user, or repair the disk, then start again",
        ) from error


def parse_json(
    path: Path,
    data: bytes,
    *,
    newest: int,
    way_out: str,
    version: str = "format",
    unchecked: int | None = None,
) -> dict[str, Any]:
    """`read_json` for the bytes of a file, or for one line of it."""
    if not data.strip(b"\0 \r\n\t"):
        raise corrupt(path, "it is empty", way_out)
    try:
        found: Any = json.loads(data)
    except ValueError as error:
        raise corrupt(path, describe_cause(error), way_out) from error
    if not isinstance(found, dict):
        raise corrupt(path, f"it contains {type(found).__name__}, not an object", way_out)
    body = cast("dict[str, Any]", found)
    checksum = body.pop(CHECKSUM, None)
    if checksum is not None and checksum != checksum_of(body):
        raise corrupt(path, "its checksum does not match", way_out)
    number: Any = body.get(version)
    if type(number) is not int or number < 1:
        raise corrupt(path, f"it has no valid {version!r}", way_out)
    if checksum is None and unchecked is not None and number > unchecked:
        raise corrupt(path, "its checksum is missing", way_out)
    if number > newest:
        raise CheckpointUnusable(
            f"{path} was written by a newer version of emberflow ({version} {number})",
            way_out="update emberflow",
        )
    return body


def checksum_of(body: Mapping[str, Any]) -> int:
    """Independent of the order of names and of whitespace."""
    return crc32(json.dumps(body, sort_keys=True).encode())


def corrupt(path: Path, cause: str, way_out: str) -> CorruptData:
    return CorruptData(f"{path} is corrupted", cause=cause, way_out=way_out)


def write_atomically(path: Path, data: bytes) -> None:
    """The file appears completely or not at all, also after a power failure, for this user only. Raises OSError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}.tmp")
    with open(temporary, "wb", opener=open_private) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    sync_folder(path.parent)


def create_once(path: Path, data: bytes) -> bool:
    """Creates a file atomically and durably, for this user only, and its folder if needed. Returns False if the file exists,
    which is left unchanged: of several processes, exactly one creates it. Raises OSError."""
    temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        make_private_folder(path.parent)
        with open(temporary, "wb", opener=open_private) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        sync_folder(path.parent)
        return True
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def make_folder(folder: Path, mode: int = 0o777, *, new: bool = False) -> None:
    """Like mkdir -p, each new name synced to disk. `mode` applies to all that it creates, less the umask. A `new` folder is
    created by exactly one process: the others raise FileExistsError."""
    if new or not folder.is_dir():
        make_folder(folder.parent, mode)
        folder.mkdir(mode, exist_ok=not new)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
