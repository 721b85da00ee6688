"""Reads the committed output of a job as Python values, for crash tests with a file sink."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import Any

from emberflow.connectors.files.file_sink import FileSink
from emberflow.connectors.files.file_sink_options import BucketAssigner, Encoder


class LiteralEncoder(Encoder[Any]):
    """`repr(value)` on a line of its own; `read_committed` parses it, tuples included."""

    def encode(self, value: Any) -> bytes:
        """The record's `repr` on a line of its own."""
        return f"{value!r}\n".encode()


def literal_files(folder: str | os.PathLike[str]) -> FileSink[Any]:
    """A file sink that writes each record as a literal on a line; `read_committed` reads them."""
    return (
        FileSink.for_row_format(os.fspath(folder), LiteralEncoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .build()
    )


def read_committed(folder: str | os.PathLike[str]) -> list[Any]:
    """The visible records below the folder, in the order in which they were committed."""
    # Not with rglob(), which fails if a running job removes a folder at the same time.
    found = (Path(place) / name for place, _, names in os.walk(folder) for name in names)
    parts = sorted(
        path for path in found if path.name.startswith("part-") and not _hidden(path, Path(folder))
    )
    return [ast.literal_eval(line) for path in parts for line in path.read_text().splitlines()]


def _hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
