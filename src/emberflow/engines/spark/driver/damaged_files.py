"""Finds the damaged file in Spark's part of a checkpoint directory: Spark's own errors often do not name it.

On a local disk Hadoop keeps the checksums of a file `x` in `.x.crc` next to it. Used only after a query has failed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

from emberflow.errors import CorruptData

_HEADER = struct.Struct(">4sI")
_KIND = b"crc\0"
_SUM = struct.Struct(">I")
_SUSPECTS = 20_000
"""The maximum number of files to check: a failed job must not take minutes to report its failure."""


def spark_damage(directory: Path) -> CorruptData | None:
    """An error that names the first corrupted file; None if none is found."""
    for count, sums in enumerate(_checksum_files(directory)):
        if count >= _SUSPECTS:
            break
        path = sums.with_name(sums.name[1:].removesuffix(".crc"))
        cause = _damage(path, sums)
        if cause:
            return CorruptData(
                f"{path} is corrupted",
                cause=cause,
                way_out="restore the checkpoint directory from a backup taken while the job was stopped; without one, start"
                " with an empty one and another output folder, from the last savepoint if there is one",
                committed="nothing was removed",
            )
    return None


def _checksum_files(directory: Path) -> Iterator[Path]:
    """The checksum files of Spark's logs come first: they are small, and the most important."""
    for folder in (".", "offsets", "commits"):
        yield from sorted((directory / folder).glob(".*.crc"))
    yield from sorted(directory.glob("state/**/.*.crc"))


def _damage(path: Path, sums: Path) -> str:
    try:
        expected = sums.read_bytes()
        data = path.read_bytes()
    except FileNotFoundError:
        return "" if not sums.exists() else f"it is missing, but {sums.name} exists"
    except OSError:
        return ""
    if len(expected) < _HEADER.size or expected[:4] != _KIND:
        return ""
    _, chunk = _HEADER.unpack_from(expected)
    found = b"".join(_SUM.pack(crc32(data[at : at + chunk])) for at in range(0, len(data), chunk or 1))
    if found == expected[_HEADER.size :]:
        return ""
    if len(found) != len(expected) - _HEADER.size:
        return f"it has {len(data):,} bytes, which do not match {sums.name}"
    return f"it does not match {sums.name}"
