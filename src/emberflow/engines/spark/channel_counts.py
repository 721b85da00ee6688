"""How many channels each source of a job has, in `channels.json`: the first start decides, later ones follow."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from emberflow.events.private_files import make_folders
from emberflow.events.stored_files import corrupt, parse_json, read_bytes, write_json

NAME = "channels.json"
_FORMAT = 1
_LOST = (
    "restore it from a backup; without one, start with an empty checkpoint directory and another output folder, from the"
    " last savepoint if there is one"
)


def read_channels(home: Path, *, has_checkpoint: bool) -> dict[str, int]:
    """uid of a source -> its channels; empty before the first start. Raises CorruptData if it is missing where a query has
    planned batches: their offsets are by channel."""
    path = home / NAME
    try:
        data = read_bytes(path)
    except FileNotFoundError:
        if has_checkpoint:
            raise corrupt(path, "it is missing, but the job has a checkpoint", _LOST) from None
        return {}
    counts: Any
    if b'"format"' in data and b'"channels"' in data:
        counts = parse_json(path, data, newest=_FORMAT, way_out=_LOST).get("channels")
    else:
        counts = _without_format(path, data)
    if not isinstance(counts, dict):
        raise corrupt(path, "it does not hold numbers of channels", _LOST)
    found: dict[str, Any] = counts
    if not all(type(count) is int and count > 0 for count in found.values()):
        raise corrupt(path, "it does not hold numbers of channels", _LOST)
    return found


def _without_format(path: Path, data: bytes) -> Any:
    """As the version before wrote it: only the numbers."""
    wrapped = b'{"format": 1, "channels": ' + data + b"}"
    return parse_json(path, wrapped if data.strip(b"\0 \r\n\t") else b"", newest=_FORMAT, way_out=_LOST)[
        "channels"
    ]


def write_channels(home: Path, counts: Mapping[str, int]) -> None:
    make_folders(home)
    write_json(home / NAME, {"format": _FORMAT, "channels": dict(counts)})
