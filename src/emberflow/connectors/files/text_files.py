"""Text files as lines of bytes with offsets.

Called by the text formats. Hides compression (by suffix) and charsets whose newline is not one byte; offsets refer to
the decompressed bytes. Reports where a file is malformed; never interprets a line.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import islice
from typing import IO, Any, cast

from emberflow.errors import InvalidArgument, SourceFailed, describe_cause, shorten

TAIL_BYTES = 64
"""How many bytes before an offset are compared to detect that a file has changed."""

BROKEN = (EOFError, OSError, zlib.error, lzma.LZMAError, UnicodeDecodeError)
"""The exceptions that reading a corrupted file raises."""

_OPENERS: dict[str, Callable[[str], Any]] = {
    ".gz": gzip.GzipFile,
    ".gzip": gzip.GzipFile,
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}


def _open_plain(path: str) -> IO[bytes]:
    return open(path, "rb")


def checked_charset(charset: str) -> str:
    try:
        return codecs.lookup(charset).name
    except LookupError as error:
        raise InvalidArgument(
            f"there is no charset {charset!r}",
            way_out="use a name that Python knows, such as 'utf-8' or 'latin-1'",
        ) from error


class TextFile:
    """One file, opened again by every call."""

    def __init__(self, path: str, charset: str) -> None:
        self.path = path
        self._opener = _OPENERS.get(os.path.splitext(path)[1].lower())
        self._recode = None if "\n".encode(charset) == b"\n" else charset
        self.charset = "utf-8" if self._recode else charset
        """The charset of the lines that are returned."""
        self.plain = self._opener is None and self._recode is None
        """Whether offsets are those of the bytes on disk, so that any place can be reached by seeking."""

    @contextmanager
    def open(self, offset: int = 0) -> Generator[io.BufferedReader]:
        """The decompressed content from `offset` on. Raises SourceFailed if there is no such file."""
        try:
            raw = (self._opener or _open_plain)(self.path)
        except FileNotFoundError as error:
            raise file_is_gone(self.path) from error
        except OSError as error:
            raise file_unreadable(self.path, error) from error
        with raw:
            if self.plain:
                raw.seek(offset)
                yield cast(io.BufferedReader, raw)
                return
            pieces: Callable[[int], bytes] = cast(Any, raw).read1
            if self._recode is not None:
                pieces = _Recoder(pieces, self._recode).pieces
            file = cast(io.BufferedReader, io.BufferedReader(_Pieces(pieces), 1 << 16))
            left = offset
            while left > 0 and (skipped := len(file.read1(min(left, 1 << 16)))):
                left -= skipped
            yield file

    def tail(self, offset: int) -> bytes:
        """The bytes just before an offset; fewer if the file ends sooner."""
        start = max(0, offset - TAIL_BYTES)
        try:
            with self.open(start) as file:
                return file.read(offset - start)
        except BROKEN as error:
            raise self.broken(start, "the file is corrupted", b"", error) from error

    def check(self, offset: int, checksum: int) -> bytes:
        """The tail at an offset where reading continues; raises if it is not the one that was read before."""
        tail = self.tail(offset)
        if zlib.crc32(tail) != checksum:
            raise file_changed(self.path, f"byte {offset}")
        return tail

    def rest(self, offset: int) -> bytes:
        """What can still be read after an offset of a corrupted file, to show it in the error."""
        parts: list[bytes] = []
        try:
            with self.open(offset) as file:
                while part := file.read1(1 << 16):
                    parts.append(part)
        except BROKEN:
            pass
        return b"".join(parts)

    def line_number(self, offset: int) -> int:
        """The line of an offset; computed for error messages only."""
        number, left = 1, offset
        try:
            with self.open() as file:
                while left > 0 and (part := file.read1(min(left, 1 << 16))):
                    number += part.count(b"\n")
                    left -= len(part)
        except (*BROKEN, SourceFailed):
            pass
        return number

    def broken(
        self, offset: int, what: str, data: bytes, error: BaseException | None, way_out: str = ""
    ) -> SourceFailed:
        """An error for the record that begins at `offset`; `what` says what is wrong."""
        text = data.decode(self.charset, "backslashreplace")
        shown = f": {shorten(text)}" if data else ""
        return SourceFailed(
            f"{what} in {self.path}, line {self.line_number(offset)} (byte {offset}){shown}",
            cause=describe_cause(error) if error is not None else "",
            way_out=way_out or "fix the file from there on and run again: reading continues at this record",
        )


def take_lines(file: io.BufferedReader, limit: int) -> tuple[list[bytes], Exception | None]:
    """Up to `limit` lines, and the error that prevented more."""
    lines: list[bytes] = []
    try:
        # extend keeps the lines before an error.
        lines.extend(islice(file, limit))
    except BROKEN as error:
        return lines, error
    return lines, None


class _Pieces(io.RawIOBase):
    """Bytes returned by a function; data before an error is never lost with it."""

    def __init__(self, pieces: Callable[[int], bytes]) -> None:
        super().__init__()
        self._pieces = pieces

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._pieces(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


class _Recoder:
    """Converts a charset whose newline is not the byte 10 (UTF-16, EBCDIC) to UTF-8."""

    def __init__(self, pieces: Callable[[int], bytes], charset: str) -> None:
        self._pieces = pieces
        self._decoder = codecs.getincrementaldecoder(charset)()
        self._ready = b""
        self._error: UnicodeDecodeError | None = None

    def pieces(self, size: int) -> bytes:
        while not self._ready:
            if self._error is not None:
                raise self._error
            data = self._pieces(size)
            self._ready = self._decode(data).encode()
            if not data:
                break
        piece, self._ready = self._ready[:size], self._ready[size:]
        return piece

    def _decode(self, data: bytes) -> str:
        try:
            return self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            self._error = error
            good = error.start - (len(error.object) - len(data))
            return self._decoder.decode(data[:good]) if good > 0 else ""


def file_is_gone(path: str) -> SourceFailed:
    return SourceFailed(
        f"the file {path} existed when the source listed it, and is gone now",
        way_out="restore it; files must stay until they have been read, also across a restart",
    )


def file_changed(path: str, place: str) -> SourceFailed:
    return SourceFailed(
        f"the file {path} is not the one that was read up to {place}",
        way_out="restore the old file, or start over with another checkpoint directory; "
        "give new data a new file name",
    )


def file_unreadable(path: str, error: BaseException) -> SourceFailed:
    return SourceFailed(
        f"the file {path} cannot be read",
        cause=describe_cause(error),
        way_out="give the job's user read permission for the file",
    )
