"""Parquet files, row group by row group.

Created by `StreamFormat.parquet`. pyarrow is imported only when a file is read: it belongs to an extra.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import importlib
import json
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from emberflow.connectors.files.stream_formats import Mark, StreamFormat, file_size
from emberflow.connectors.files.text_files import file_changed, file_unreadable
from emberflow.errors import PackageMissing, SourceFailed, describe_cause


class ParquetFormat(StreamFormat[dict[str, Any]]):
    """Rows as dictionaries. A mark is `[row number, checksum of the footer]`; chunks end where a row group ends."""

    def __init__(self, columns: Sequence[str] | None) -> None:
        _parquet()
        self._columns = None if columns is None else list(columns)

    def read(self, path: str, mark: Mark | None, limit: int) -> Iterator[tuple[list[Any], Mark]]:
        with _open(path) as file:
            checksum, sizes = _shape(file)
            self._check(path, file, mark, checksum)
            row = 0 if mark is None else mark[0]
            group_begin = 0
            for group, size in enumerate(sizes):
                if row < group_begin + size:
                    skip = row - group_begin
                    for values in self._rows(path, file, group, skip, max(limit, 1)):
                        row += len(values)
                        yield values, [row, checksum]
                group_begin += size

    def plan(self, path: str, mark: Mark | None, limit: int) -> tuple[Mark | None, int]:
        with _open(path) as file:
            checksum, sizes = _shape(file)
            self._check(path, file, mark, checksum)
        begin = 0 if mark is None else mark[0]
        end = 0
        for size in sizes:
            end += size
            if end - begin >= max(limit, 1) and end < sum(sizes):
                return [end, checksum], end - begin
        return None, sum(sizes) - begin

    def _rows(self, path: str, file: Any, group: int, skip: int, limit: int) -> Iterator[list[Any]]:
        row = 0
        batches = file.iter_batches(batch_size=limit, row_groups=[group], columns=self._columns)
        while True:
            try:
                batch = next(batches, None)
                values: list[Any] = [] if batch is None else batch.slice(max(0, skip - row)).to_pylist()
            except Exception as error:
                raise SourceFailed(
                    f"the file {path} is corrupted in row group {group}, after its row {row}",
                    cause=describe_cause(error),
                    way_out="write the file again; rows before it were read",
                ) from error
            if batch is None:
                return
            row += batch.num_rows
            if values:
                yield values

    def _check(self, path: str, file: Any, mark: Mark | None, checksum: int) -> None:
        if mark is not None and mark[1] != checksum:
            raise file_changed(path, f"row {mark[0]}")
        names: list[str] = file.schema_arrow.names
        missing = [name for name in self._columns or [] if name not in names]
        if missing:
            raise SourceFailed(
                f"the file {path} has no column {', '.join(missing)}; it has {', '.join(names)}",
                way_out="select columns that every file has, or omit `columns`",
            )


def _parquet() -> Any:
    try:
        return importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise PackageMissing(
            "Parquet files are read with pyarrow, which is not installed",
            cause=describe_cause(error),
            way_out='pip install "emberflow[files]"',
        ) from error


def _open(path: str) -> Any:
    parquet = _parquet()
    size = file_size(path)
    try:
        return parquet.ParquetFile(path)
    except PermissionError as error:
        raise file_unreadable(path, error) from error
    except Exception as error:
        raise SourceFailed(
            f"the file {path} ({size} bytes) is not a complete Parquet file",
            cause=describe_cause(error),
            way_out="write the file again, or remove it from the source's folder; the footer is written last, "
            "so a file without one was not finished",
        ) from error


def _shape(file: Any) -> tuple[int, list[int]]:
    """A checksum of the footer, and the number of rows of each row group."""
    footer = json.dumps(file.metadata.to_dict(), default=str, sort_keys=True)
    sizes = [file.metadata.row_group(index).num_rows for index in range(file.metadata.num_row_groups)]
    return zlib.crc32(footer.encode()), sizes
