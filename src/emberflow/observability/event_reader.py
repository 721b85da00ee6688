"""Reads event logs: the files of all processes as one sequence ordered by time, without duplicates.

Used by `emberflow events` and the dashboard. Logs are read while they are written and after crashes: truncated lines,
lines that are not events and files that disappear are skipped and counted, never raised.
"""

from __future__ import annotations

import datetime as dt
import heapq
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, cast

from emberflow.errors import InvalidArgument
from emberflow.events.agent_events import EventType
from emberflow.observability.plain_line import VERSION, time_text

LoggedEvent: TypeAlias = dict[str, Any]
"""One line as described in `event_json`; every field is present, with an empty value if the line lacks it."""

_CHUNK = 64 * 1024
_LONGEST_LINE = 64 * 1024 * 1024
_SEGMENT = re.compile(r"(.*)-\d{6}\.jsonl")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_TEXTS = (
    "agent",
    "run",
    "kind",
    "id",
    "type",
    "upstream_id",
    "upstream_action",
    "upstream_agent",
    "action",
    "error",
)
_TYPES = {"InputEvent": EventType.InputEvent, "OutputEvent": EventType.OutputEvent}


@dataclass(slots=True, kw_only=True)
class ReadCounts:
    """What a reader encountered; updated while it reads."""

    files: int = 0
    events: int = 0
    """Events read, before any filter."""
    repeats: int = 0
    """Events that a repeated micro-batch logged again."""
    bad: int = 0
    """Lines that are not events."""
    torn: int = 0
    """Files that end with a truncated line: a process was killed, or is writing at this moment."""
    newer: int = 0
    """Lines in a format that this version does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Selects events; a field that is None is ignored."""

    agent: str | None = None
    key: Any = None
    """Compared with the displayed key: `7` matches 7 and "7"."""
    run: str | None = None
    """A run's id or a prefix of it."""
    type: str | None = None
    """An event's type; `InputEvent` and `OutputEvent` are accepted. An error has the type of its event."""
    since_ms: int | None = None
    _since: str = field(init=False, default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "_since", "" if self.since_ms is None else time_text(self.since_ms))

    def matches(self, event: LoggedEvent) -> bool:
        return (
            (self.agent is None or event["agent"] == self.agent)
            and (self.run is None or event["run"].startswith(self.run))
            and (self.type is None or event["type"] in (self.type, _TYPES.get(self.type)))
            and event["time"] >= self._since
            and (self.key is None or key_text(event["key"]) == key_text(self.key))
        )


def key_text(key: Any) -> str:
    """A key as it is displayed: strings unchanged, everything else as JSON."""
    return key if isinstance(key, str) else json.dumps(key, ensure_ascii=False, default=repr)


def read_events(
    path: str | Path,
    *,
    agent: str | None = None,
    key: Any = None,
    run: str | None = None,
    type: str | None = None,
    since: int | dt.datetime | None = None,
    counts: ReadCounts | None = None,
) -> Iterator[LoggedEvent]:
    """The events of a file, or of all logs below a directory, ordered by time. Raises only if the path does not exist."""
    root = Path(path).expanduser()
    if not root.exists():
        raise InvalidArgument(
            f"there is no event log at {str(path)!r}",
            way_out="give the directory of the agent's option 'baseLogDir', or a .jsonl file in it",
        )
    since_ms = int(since.timestamp() * 1000) if isinstance(since, dt.datetime) else since
    wanted = EventFilter(agent=agent, key=key, run=run, type=type, since_ms=since_ms)
    return _read(root, wanted, counts or ReadCounts())


def _read(root: Path, wanted: EventFilter, counts: ReadCounts) -> Iterator[LoggedEvent]:
    # The files of one process follow each other; processes run concurrently.
    chains: dict[str, list[Path]] = {}
    for file in log_files(root):
        counts.files += 1
        found = _SEGMENT.fullmatch(str(file))
        chains.setdefault(found[1] if found else str(file), []).append(file)
    streams = [_chain(files, counts) for files in chains.values()]
    seen: set[int] = set()
    for event in heapq.merge(*streams, key=_time_of):
        if wanted.matches(event) and _is_new(event, seen, counts):
            yield event


def log_files(root: Path) -> list[Path]:
    """The files of a log; those of one process in the order in which they were written."""
    try:
        return [root] if root.is_file() else sorted(path for path in root.rglob("*.jsonl") if path.is_file())
    except OSError:
        return []


def _chain(files: list[Path], counts: ReadCounts) -> Iterator[LoggedEvent]:
    for file in files:
        cursor = LineCursor(file)
        for line in cursor.lines(counts):
            event = parse_line(line, counts)
            if event is not None:
                yield event
        if cursor.tail.strip():
            # A complete event without a line break counts.
            before = counts.bad
            event = parse_line(cursor.tail, counts)
            if event is not None:
                yield event
            elif counts.bad > before:
                counts.bad = before
                counts.torn += 1


def _time_of(event: LoggedEvent) -> str:
    return event["time"]


def _is_new(event: LoggedEvent, seen: set[int], counts: ReadCounts) -> bool:
    if event["kind"] == "error":
        identity = hash((event["agent"], event["run"], event["id"], event["action"], event["error"]))
    elif event["id"]:
        identity = hash((event["agent"], event["run"], event["id"], event["kind"]))
    else:
        return True
    if identity in seen:
        counts.repeats += 1
        return False
    seen.add(identity)
    return True


class LineCursor:
    """The complete lines of a growing file, from where the last call ended.

    Keeps no file open between chunks: a log may have more files than a process may open.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._skipping = False
        self.tail = b""
        """The bytes after the last line break."""

    def lines(self, counts: ReadCounts) -> Iterator[bytes]:
        parts = [self.tail]
        size = len(self.tail)
        while chunk := self._chunk():
            first, *rest = chunk.split(b"\n")
            parts.append(first)
            size += len(first)
            if size > _LONGEST_LINE and not self._skipping:
                counts.bad += 1
                self._skipping = True
            if self._skipping:
                parts, size = [b""], 0
            if rest:
                whole = b"".join(parts)
                parts, size = [rest[-1]], len(rest[-1])
                self.tail = rest[-1]
                if not self._skipping:
                    yield whole
                self._skipping = False
                yield from rest[:-1]
        self.tail = b"".join(parts)

    def _chunk(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                chunk = file.read(_CHUNK)
        except OSError:  # Removed by rotation, or not readable for this user.
            return b""
        self._offset += len(chunk)
        return chunk


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_decoder = json.JSONDecoder(parse_constant=_refuse_constant)


def parse_line(line: bytes, counts: ReadCounts) -> LoggedEvent | None:
    """The event of a line; None, and counted, if it is not one."""
    if not line.strip():
        return None
    try:
        found: Any = _decoder.decode(line.decode())
    except (ValueError, RecursionError):
        counts.bad += 1
        return None
    fields = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    version: Any = fields.get("v")
    if type(version) is int and version > VERSION:
        counts.newer += 1
        return None
    event: LoggedEvent = {
        "v": VERSION,
        "time": "",
        "key": None,
        **dict.fromkeys(_TEXTS, ""),
        "attributes": {},
    }
    if type(version) is int and version == VERSION:
        event.update(fields)
    texts = all(isinstance(event[name], str) for name in _TEXTS)
    if not texts or not isinstance(event["attributes"], dict) or not _is_time(event["time"]):
        counts.bad += 1
        return None
    counts.events += 1
    return event


def _is_time(value: Any) -> bool:
    return isinstance(value, str) and _TIME.fullmatch(value) is not None


class EventFollower:
    """Returns what is added to a log between calls of `poll()`; finds new files and a log that is created later."""

    def __init__(self, path: str | Path, wanted: EventFilter) -> None:
        self._root = Path(path).expanduser()
        self._wanted = wanted
        self._cursors: dict[Path, LineCursor] = {}
        self._seen: set[int] = set()
        self.counts = ReadCounts()

    def poll(self, last: int | None = None) -> list[LoggedEvent]:
        """The new events ordered by time, at most the `last`; an incomplete line is kept for the next call."""
        if last is None:
            return sorted(self._new_events(), key=_time_of)
        # A log may be larger than memory; keep only what was asked for.
        return sorted(heapq.nlargest(last, self._new_events(), key=_time_of), key=_time_of)

    def _new_events(self) -> Iterator[LoggedEvent]:
        for file in log_files(self._root):
            if file not in self._cursors:
                self.counts.files += 1
                self._cursors[file] = LineCursor(file)
            for line in self._cursors[file].lines(self.counts):
                event = parse_line(line, self.counts)
                if (
                    event is not None
                    and self._wanted.matches(event)
                    and _is_new(event, self._seen, self.counts)
                ):
                    yield event
