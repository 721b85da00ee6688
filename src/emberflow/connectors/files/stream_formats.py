"""How records are stored in files: the contract, and text and JSON lines.

Called by `FileSource` with one file at a time. A format knows places inside a file (marks), never the list of files.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

from emberflow.connectors.files.text_files import (
    TAIL_BYTES,
    TextFile,
    checked_charset,
    file_is_gone,
    take_lines,
)
from emberflow.errors import SourceFailed

T = TypeVar("T", covariant=True)

Mark = list[int]
"""A place between two records of a file, with a checksum that detects whether the file has changed."""

RECORD_BYTES = 100
"""The assumed size of a record on disk, for estimates."""


class StreamFormat(Generic[T]):
    """Base of all formats of records of type `T`; subclass it for your own. Must be picklable and open files only in its
    methods."""

    owner = ""
    """What error messages name besides the file, such as `table 'orders': `."""

    def read(self, path: str, mark: Mark | None, limit: int) -> Iterator[tuple[list[T], Mark]]:
        """Yields records after `mark` (None: from the beginning), about `limit` at a time, each time with the mark after them.
        Raises SourceFailed for a malformed record, after the records before it."""
        raise NotImplementedError(type(self).__name__)

    def plan(self, path: str, mark: Mark | None, limit: int) -> tuple[Mark | None, int]:
        """A mark about `limit` records after `mark` at which `read` ends a chunk, or None for the end of the file; and
        the approximate number of records in between."""
        return None, file_size(path) // RECORD_BYTES

    @staticmethod
    def text_line_format(charset_name: str = "utf-8") -> StreamFormat[str]:
        """Each line as a str, without its newline."""
        return TextLineFormat(charset_name)

    @staticmethod
    def json_lines(charset: str = "utf-8") -> StreamFormat[Any]:
        """Each line as a JSON value; empty lines are skipped."""
        return JsonLinesFormat(charset)

    @staticmethod
    def csv(
        header: bool = True,
        delimiter: str = ",",
        quotechar: str = '"',
        escapechar: str | None = None,
        columns: Sequence[str] | None = None,
        charset: str = "utf-8",
        max_field_length: int = 131_072,
    ) -> StreamFormat[dict[str, str]]:
        """Each row as a dictionary of str, quoted as in Python's csv module. Without a header the columns are named by
        `columns`, or `_c0`, `_c1`, …"""
        from emberflow.connectors.files.csv_format import CsvFormat

        return CsvFormat(
            header=header,
            delimiter=delimiter,
            quotechar=quotechar,
            escapechar=escapechar,
            columns=columns,
            charset=charset,
            max_field_length=max_field_length,
        )

    @staticmethod
    def parquet(columns: Sequence[str] | None = None) -> StreamFormat[dict[str, Any]]:
        """Each row as a dictionary; needs pyarrow (`pip install "emberflow[files]"`)."""
        from emberflow.connectors.files.parquet_format import ParquetFormat

        return ParquetFormat(columns)


def file_size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError as error:
        raise file_is_gone(path) from error


class LineFormat(StreamFormat[T]):
    """One record per line. A mark is `[byte offset, checksum of the bytes before it]`.

    A line belongs to the split it begins in, and `read` ends a chunk where a split ends, so that a large file can be
    split without reading it.
    """

    what = "a line cannot be decoded"
    split_bytes = 4 << 20

    def __init__(self, charset: str = "utf-8") -> None:
        self._charset = checked_charset(charset)

    def parse(self, text: str) -> list[T]:
        """The records of some complete lines; raises ValueError."""
        raise NotImplementedError(type(self).__name__)

    def read(self, path: str, mark: Mark | None, limit: int) -> Iterator[tuple[list[T], Mark]]:
        source = TextFile(path, self._charset)
        offset, tail = (0, b"") if mark is None else (mark[0], source.check(*mark))
        with source.open(offset) as file:
            lines: list[bytes] = []
            error: Exception | None = None
            while True:
                if not lines:
                    lines, error = take_lines(file, max(limit, 1))
                if not lines:
                    break
                cut = self._cut(offset, lines)
                values, parsed, wrong = self._parse_lines(source, offset, lines[:cut])
                offset += sum(map(len, lines[:parsed]))
                # A line has at least one byte, so this many are enough for the tail.
                tail = (tail + b"".join(lines[max(0, parsed - TAIL_BYTES) : parsed]))[-TAIL_BYTES:]
                if values or parsed:
                    yield values, [offset, zlib.crc32(tail)]
                if wrong is not None:
                    raise wrong
                lines = lines[cut:]
                if not lines and error is not None:
                    break
        if error is not None:
            raise source.broken(offset, "the file is truncated", source.rest(offset), error) from error

    def plan(self, path: str, mark: Mark | None, limit: int) -> tuple[Mark | None, int]:
        offset, size = 0 if mark is None else mark[0], file_size(path)
        source = TextFile(path, self._charset)
        if not source.plain:
            return None, size // RECORD_BYTES
        splits = -(-(offset + max(limit, 1) * RECORD_BYTES) // self.split_bytes)
        boundary = splits * self.split_bytes
        if boundary < size:
            with source.open(boundary - 1) as file:
                boundary = boundary - 1 + len(file.readline())
        if boundary >= size:
            return None, (size - offset) // RECORD_BYTES
        return [boundary, zlib.crc32(source.tail(boundary))], limit

    def _cut(self, offset: int, lines: list[bytes]) -> int:
        """How many of the lines belong to the split that contains `offset`."""
        split_end = (offset // self.split_bytes + 1) * self.split_bytes
        if offset + sum(map(len, lines)) <= split_end:
            return len(lines)
        ends = accumulate(map(len, lines), initial=offset)
        return sum(1 for begin in ends if begin < split_end) if lines else 0

    def _parse_lines(
        self, source: TextFile, offset: int, lines: list[bytes]
    ) -> tuple[list[T], int, SourceFailed | None]:
        """Records, the number of lines they come from, and the error of the line after those."""
        try:
            return self.parse(self._text(source, offset, b"".join(lines))), len(lines), None
        except (ValueError, RecursionError):
            pass
        # Parse again one by one to find the line.
        values: list[T] = []
        for number, line in enumerate(lines):
            try:
                values += self.parse(self._text(source, offset, line))
            except (ValueError, RecursionError) as error:
                return values, number, source.broken(offset, f"{self.owner}{self.what}", line, error)
            offset += len(line)
        return values, len(lines), None

    def _text(self, source: TextFile, offset: int, data: bytes) -> str:
        text = data.decode(source.charset)
        return text.removeprefix("\ufeff") if offset == 0 else text


def _whole_lines(text: str) -> list[str]:
    lines = text.split("\n")
    if not lines[-1]:
        del lines[-1]
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


class TextLineFormat(LineFormat[str]):
    def parse(self, text: str) -> list[str]:
        return _whole_lines(text)


class JsonLinesFormat(LineFormat[Any]):
    what = "a line is not valid JSON"

    def parse(self, text: str) -> list[Any]:
        loads: Callable[[str], Any] = json.loads
        return [loads(line) for line in text.split("\n") if line and not line.isspace()]
