"""Comma-separated values, quoted as in Python's csv module in strict mode.

Created by `StreamFormat.csv`. A quoted field may contain newlines, so a file is never split.
"""

from __future__ import annotations

import csv
import io
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from emberflow.connectors.files.stream_formats import Mark, StreamFormat
from emberflow.connectors.files.text_files import BROKEN, TAIL_BYTES, TextFile, checked_charset
from emberflow.errors import InvalidArgument, SourceFailed


class CsvFormat(StreamFormat[dict[str, str]]):
    """Rows as dictionaries of str. A mark is `[byte offset, checksum of the bytes before it]`."""

    what = "a row cannot be decoded"

    def __init__(
        self,
        *,
        header: bool,
        delimiter: str,
        quotechar: str,
        escapechar: str | None,
        columns: Sequence[str] | None,
        charset: str,
        max_field_length: int,
    ) -> None:
        self._charset = checked_charset(charset)
        self._header = header
        self._columns = None if columns is None else list(columns)
        self._max_field_length = max_field_length
        self._options: dict[str, Any] = {
            "delimiter": delimiter,
            "quotechar": quotechar,
            "escapechar": escapechar,
            "strict": True,
        }
        try:
            csv.reader([], **self._options)
        except (TypeError, ValueError) as error:
            raise InvalidArgument(
                f"invalid CSV options: {error}",
                way_out="delimiter and quotechar must be one character each",
            ) from error
        if self._columns is not None and len(set(self._columns)) < len(self._columns):
            raise InvalidArgument(
                "two CSV columns have the same name", way_out="give every column its own name"
            )

    def read(self, path: str, mark: Mark | None, limit: int) -> Iterator[tuple[list[Any], Mark]]:
        source = TextFile(path, self._charset)
        if csv.field_size_limit() < self._max_field_length:
            csv.field_size_limit(self._max_field_length)
        with source.open() as file:
            first = _Rows(source, file, 0, b"", self._options)
            names = self._names(source, first)
        if names is None:
            return
        if mark is None:
            offset, tail = (first.offset, first.tail()) if self._header else (0, b"")
        else:
            offset, tail = mark[0], source.check(*mark)
        with source.open(offset) as file:
            yield from self._chunks(_Rows(source, file, offset, tail, self._options), names, max(limit, 1))

    def record(self, names: list[str], fields: list[str]) -> Any:
        """The record of a row; raises ValueError."""
        return dict(zip(names, fields, strict=True))

    def _chunks(self, rows: _Rows, names: list[str], limit: int) -> Iterator[tuple[list[Any], Mark]]:
        values: list[Any] = []
        width = len(names)
        failed: SourceFailed | None = None
        while True:
            begin = rows.mark()
            try:
                row = rows.next()
            except SourceFailed as error:
                failed = error
                break
            if row is None:
                begin = rows.mark()
                break
            if len(row) != width:
                failed = rows.wrong(f"{self.owner}a row has {len(row)} fields instead of {width}")
                break
            try:
                values.append(self.record(names, row))
            except ValueError as error:
                failed = rows.wrong(f"{self.owner}{self.what}", error)
                break
            if len(values) >= limit:
                yield values, rows.mark()
                values = []
        if values or failed is None:
            yield values, begin
        if failed is not None:
            raise failed

    def _names(self, source: TextFile, first: _Rows) -> list[str] | None:
        """The column names, None for a file without rows; reads the first row."""
        row = first.next()
        if row is None:
            return None
        if not self._header:
            return self._columns or [f"_c{index}" for index in range(len(row))]
        if len(set(row)) < len(row):
            raise source.broken(
                0,
                "two columns have the same name",
                ",".join(row).encode(source.charset, "backslashreplace"),
                None,
                "give every column of the header its own name, or read with header=False",
            )
        if self._columns is not None and row != self._columns:
            raise source.broken(
                0,
                f"the columns are not {self._columns}",
                ",".join(row).encode(source.charset, "backslashreplace"),
                None,
                "set `columns` to the file's header, or omit it",
            )
        return row


class _Rows:
    """The rows of an open file, and the offset after the last one."""

    def __init__(
        self, source: TextFile, file: io.BufferedReader, offset: int, tail: bytes, options: dict[str, Any]
    ) -> None:
        self.offset = offset
        self._source = source
        self._file = file
        self._begin = offset
        # A line has at least one byte, so this many are enough for the tail.
        self._lines: deque[bytes] = deque([tail], TAIL_BYTES + 1)
        self._row: list[bytes] = []
        # The reader requests another line only while a row is incomplete, so the offset is always known.
        self._reader = csv.reader(self._texts(), **options)

    def next(self) -> list[str] | None:
        """The next non-blank row; None at the end."""
        while True:
            self._begin = self.offset
            self._row.clear()
            try:
                row = next(self._reader, None)
            except (csv.Error, *BROKEN) as error:
                raise self.wrong("a row is incomplete", error) from error
            if row is None or row:
                return row

    def mark(self) -> Mark:
        return [self.offset, zlib.crc32(self.tail())]

    def tail(self) -> bytes:
        return b"".join(self._lines)[-TAIL_BYTES:]

    def wrong(self, what: str, error: BaseException | None = None) -> SourceFailed:
        """An error that names the last row that was read."""
        rest = b"".join(self._row)
        if isinstance(error, BROKEN) and not isinstance(error, UnicodeDecodeError):
            what, rest = "the file is truncated", self._source.rest(self._begin)
        way_out = ""
        if "field limit" in str(error):
            way_out = "close the quotes of this row, or allow longer fields with max_field_length"
        return self._source.broken(self._begin, what, rest, error, way_out)

    def _texts(self) -> Iterator[str]:
        charset, row, lines = self._source.charset, self._row, self._lines
        for line in self._file:
            row.append(line)
            text = line.decode(charset)
            if self.offset == 0:
                text = text.removeprefix("\ufeff")
            self.offset += len(line)
            lines.append(line)
            yield text
