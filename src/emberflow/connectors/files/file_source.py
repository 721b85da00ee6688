"""Files as a source: a fixed set of files, or folders that are watched for new ones.

Formats read the files; this module decides which file comes next and keeps the position of each channel.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Generic, TypeVar

from emberflow.connectors.files.local_paths import PathLike, list_files, local_path
from emberflow.connectors.files.stream_formats import Mark, StreamFormat, file_size
from emberflow.connectors.source import Chunk, Position, Source
from emberflow.errors import InvalidArgument, SourceFailed
from emberflow.events.key_groups import stable_hash

T = TypeVar("T")
V = TypeVar("V")


class FileSource(Source[T]):
    """Records of the files below some paths; created by `FileSource.for_record_stream_format(...)...build()`.

    Folders are searched recursively; names that begin with `.` or `_` are skipped. Files are read in the order of their
    names, each by one channel. A corrupted file raises SourceFailed after the records before the corruption; once it is
    fixed, a restart continues there.
    """

    ordered = False

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat[V], *paths: PathLike) -> FileSourceBuilder[V]:
        """Starts building a source over files and folders; finish with `build()`."""
        return FileSourceBuilder(stream_format, *paths)

    def __init__(self, stream_format: StreamFormat[T], paths: tuple[str, ...]) -> None:
        self._format = stream_format
        self._paths = paths

    def describe(self) -> str:
        return f"Files {', '.join(self._paths)}"

    def _listed(self) -> list[str]:
        """All files below the paths."""
        try:
            return list_files(self._paths)
        except SourceFailed as error:
            message = f"{self._format.owner}{error.message}"
            raise SourceFailed(message, cause=error.cause, way_out=error.way_out) from error

    def _records(
        self, path: str, position: Position, behind: Position, end: bool, limit: int
    ) -> Iterator[Chunk[T]]:
        """The chunks of one file; the last one is at the position `behind`."""
        held: tuple[list[T], Mark] | None = None
        failed: SourceFailed | None = None
        records = self._format.read(path, position["mark"], limit)
        while True:
            try:
                following = next(records, None)
            except SourceFailed as error:
                following, failed = None, error
            if following is None:
                break
            if held is not None:
                yield Chunk(held[0], {**position, "mark": held[1]})
            held = following
        if failed is not None:
            # Records before the corruption are delivered.
            if held is not None:
                yield Chunk(held[0], {**position, "mark": held[1]})
            raise failed
        yield Chunk(held[0] if held is not None else [], behind, end=end)


class StaticFileSource(FileSource[T]):
    """The files that exist when the job starts for the first time.

    A position is `{"todo": paths, "mark": place inside the first of them}`: files that appear later are not read, and
    files may be removed once they have been read.
    """

    def start(self, parallelism: int) -> list[Position]:
        # Listed once for all channels: a file that appears in between must not shift the others.
        files = self._files()
        channels = max(1, min(parallelism, len(files)))
        return [{"todo": files[channel::channels], "mark": None} for channel in range(channels)]

    def read(self, channel: int, position: Position, limit: int) -> Iterator[Chunk[T]]:
        todo: list[str] = position["todo"]
        if not todo:
            yield Chunk([], position, end=True)
        for index, path in enumerate(todo):
            mark = position["mark"] if index == 0 else None
            behind = {"todo": todo[index + 1 :], "mark": None}
            here = {"todo": todo[index:], "mark": mark}
            yield from self._records(path, here, behind, index + 1 == len(todo), limit)

    def plan(self, channel: int, position: Position, limit: int) -> tuple[Position, bool]:
        todo: list[str] = position["todo"]
        mark: Mark | None = position["mark"]
        index = 0
        while index < len(todo) and limit > 0:
            mark, records = self._format.plan(todo[index], mark, limit)
            if mark is not None:
                return {"todo": todo[index:], "mark": mark}, False
            index += 1
            limit -= max(1, records)
        return {"todo": todo[index:], "mark": None}, index == len(todo)

    def _files(self) -> list[str]:
        files = self._listed()
        if not files:
            raise SourceFailed(
                f"{self._format.owner}there are no files below {', '.join(self._paths)}",
                way_out="put files there (names that begin with . or _ do not count), "
                "or wait for them with monitor_continuously()",
            )
        return files


class WatchedFileSource(FileSource[T]):
    """Folders that are scanned again every `interval_ms`; unbounded.

    A file must appear atomically: write it elsewhere and move it in. A position is `{"channels": n, "done": {path: size},
    "file": path or null, "mark": place in it}`; a file that was read is remembered for as long as it exists.
    """

    bounded = False

    def __init__(self, stream_format: StreamFormat[T], paths: tuple[str, ...], interval_ms: int) -> None:
        super().__init__(stream_format, paths)
        self._interval_ms = interval_ms
        self._next_look_s: dict[int, float] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_next_look_s": {}}

    def start(self, parallelism: int) -> list[Position]:
        self._listed()  # Report a missing path now, not at the first scan.
        channels = max(1, parallelism)
        return [{"channels": channels, **_at_rest({})} for _ in range(channels)]

    def read(self, channel: int, position: Position, limit: int) -> Iterator[Chunk[T]]:
        done: dict[str, int] = position["done"]
        unfinished: str | None = position["file"]
        if unfinished is not None:
            done = {**done, unfinished: file_size(unfinished)}
            yield from self._records(unfinished, position, {**position, **_at_rest(done)}, False, limit)
        if time.monotonic() < self._next_look_s.get(channel, 0.0):
            return
        sizes = self._sizes(channel, position["channels"])
        # A file that was removed from the folder cannot reappear by itself, so it need not be remembered.
        done = {path: size for path, size in done.items() if path in sizes}
        for path, size in sizes.items():
            if path in done:
                _check_unchanged(path, done[path], size)
            elif size:
                here = {**position, "done": done, "file": path, "mark": None}
                done = {**done, path: size}
                yield from self._records(path, here, {**position, **_at_rest(done)}, False, limit)
        # Set only here: a reader that stopped in between returns for the remaining files.
        self._next_look_s[channel] = time.monotonic() + self._interval_ms / 1000

    def read_again(self, channel: int, position: Position, stop: Position, limit: int) -> Iterator[Chunk[T]]:
        """Reads the files that were found the first time, whatever else is in the folder now."""
        done: dict[str, int] = position["done"]
        for path in self._between(position, stop):
            here = {**position, "done": done, "file": path, "mark": None}
            if path == position["file"]:
                here = position
            if path == stop["file"]:
                yield from self._up_to(path, here, stop, limit)
                return
            _check_unchanged(path, stop["done"][path], file_size(path))
            done = {**done, path: stop["done"][path]}
            yield from self._records(path, here, {**position, **_at_rest(done)}, False, limit)

    def _between(self, position: Position, stop: Position) -> list[str]:
        first: list[str] = [position["file"]] if position["file"] is not None else []
        ended = sorted(path for path in stop["done"] if path not in position["done"] and path not in first)
        last: list[str] = [stop["file"]] if stop["file"] is not None and stop["file"] not in first else []
        return [*first, *ended, *last]

    def _up_to(self, path: str, position: Position, stop: Position, limit: int) -> Iterator[Chunk[T]]:
        """Reads a file from its beginning up to a mark that was passed before."""
        wanted = json.dumps(stop["mark"])
        for chunk in self._records(path, position, {**position, "mark": None}, False, limit):
            yield chunk
            if json.dumps(chunk.position["mark"]) == wanted:
                return
        raise SourceFailed(
            f"the file {path} ends before {wanted}, up to which it was read",
            way_out="restore the old file; files must not change once they are in a watched folder",
        )

    def _sizes(self, channel: int, channels: int) -> dict[str, int]:
        """The channel's files with their sizes. Empty files are skipped for now: they may be about to be written."""
        found: dict[str, int] = {}
        for path in self._listed():
            if stable_hash(path) % channels == channel:
                try:
                    found[path] = os.stat(path).st_size
                except FileNotFoundError:
                    continue
        return found


def _at_rest(done: dict[str, int]) -> Position:
    return {"done": done, "file": None, "mark": None}


def _check_unchanged(path: str, read: int, size: int) -> None:
    if read != size:
        raise SourceFailed(
            f"the file {path} had {read} bytes when it was read and has {size} now; the additional data was not read",
            way_out="move only complete files into a watched folder (write elsewhere, then rename), each under a new "
            "name; to continue, put the new data into another file and remove this one",
        )


class FileSourceBuilder(Generic[T]):
    """Flink's builder; by default the source reads the existing files and ends."""

    def __init__(self, stream_format: StreamFormat[T], *paths: PathLike) -> None:
        if not paths:
            raise InvalidArgument("a file source needs a path", way_out="name at least one file or folder")
        self._format = stream_format
        self._paths = tuple(local_path(path) for path in paths)
        self._interval_ms: int | None = None

    def monitor_continuously(self, discovery_interval: Any) -> FileSourceBuilder[T]:
        """Scans for new files continuously; the interval is a `timedelta`, a `Duration` or milliseconds."""
        self._interval_ms = _milliseconds(discovery_interval)
        return self

    def process_static_file_set(self) -> FileSourceBuilder[T]:
        self._interval_ms = None
        return self

    def build(self) -> FileSource[T]:
        if self._interval_ms is None:
            return StaticFileSource(self._format, self._paths)
        return WatchedFileSource(self._format, self._paths, self._interval_ms)


def _milliseconds(interval: Any) -> int:
    # connectors must not import event_time, so a Duration is recognized by its method.
    if isinstance(interval, timedelta):
        interval = interval / timedelta(milliseconds=1)
    elif hasattr(interval, "to_milliseconds"):
        interval = interval.to_milliseconds()
    if isinstance(interval, bool) or not isinstance(interval, int | float) or interval <= 0:
        raise InvalidArgument(
            f"{interval!r} is not a discovery interval",
            way_out="write timedelta(seconds=5), Duration.seconds(5) or 5000 (milliseconds)",
        )
    return max(1, round(interval))
