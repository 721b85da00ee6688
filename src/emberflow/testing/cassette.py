"""Cassettes: requests to a chat model and its replies, as JSON lines that people can read and edit.

    {"format": "emberflow-cassette", "version": 1}
    {"request": {"messages": [...], "tools": ["refund"], "settings": {"model": "m"}}, "reply": {"role": "assistant", ...}}

Requests are normalized, so that the same request is found again: only the names of tools count, ids of tool calls are
numbered in order, and secrets are removed from requests and replies. Arguments of tool calls are kept, except for strings
that look like a key. Empty lines are skipped.
"""

from __future__ import annotations

import copy
import difflib
import json
import os
import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, cast

from emberflow.agents.models.chat_message import ChatMessage
from emberflow.errors import CorruptData, InvalidArgument, ResourceFailed, describe_cause, shorten
from emberflow.plan.agents.resources import Secret
from emberflow.testing.golden_run import plain

FORMAT = "emberflow-cassette"
VERSION = 1
HEADER = json.dumps({"format": FORMAT, "version": VERSION})

_SECRET_NAME = re.compile(
    r"(api[_-]?key|authorization|secret|passw(or)?d|credential|cookie|(^|[_-])(access|auth|bearer|id|refresh|session)[_-]?token$|^token$)",
    re.IGNORECASE,
)
_SECRET_TEXT = re.compile(r"(?<=\bBearer )[\w.~+/=-]{8,}|\b(?:sk|pk|rk)-[\w-]{16,}")
_HIDDEN = "***"


@dataclass(slots=True)
class Cassette:
    """The replies to each request in recorded order; `take` repeats the last one."""

    name: str
    replies: dict[str, list[ChatMessage]] = field(default_factory=dict[str, list[ChatMessage]])
    lines: dict[str, int] = field(default_factory=dict[str, int])
    """The first line of each request."""

    _taken: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, request: str, reply: ChatMessage, line: int = 0) -> None:
        self.replies.setdefault(request, []).append(reply)
        self.lines.setdefault(request, line)

    def take(self, request: str) -> ChatMessage | None:
        known = self.replies.get(request)
        if known is None:
            return None
        taken = self._taken.get(request, 0)
        self._taken[request] = taken + 1
        # A copy: the caller may modify its lists.
        return copy.deepcopy(known[min(taken, len(known) - 1)])

    def nearest(self, request: str) -> str | None:
        """The recorded request that is most similar to this one."""
        matcher = difflib.SequenceMatcher(b=request, autojunk=False)

        def likeness(other: str) -> float:
            matcher.set_seq1(other)
            return matcher.quick_ratio()

        return max(self.replies, key=likeness, default=None)


def request_text(
    messages: Sequence[ChatMessage],
    tools: Iterable[str],
    settings: dict[str, Any],
    secrets: Iterable[str] = (),
) -> str:
    """The normalized request: what a cassette stores and compares."""
    ids: dict[str, str] = {}
    for message in messages:
        for call in message.tool_calls:
            for name in ("id", "original_id"):
                if isinstance(call.get(name), str):
                    ids.setdefault(call[name], f"call-{len(ids) + 1}")
    hidden = list(secrets)
    request: dict[str, Any] = {"messages": [_clean(message.to_dict(), hidden, ids) for message in messages]}
    if named := sorted(tools):
        request["tools"] = named
    if kept := _clean(settings, hidden, {}):
        request["settings"] = kept
    return json.dumps(request, ensure_ascii=False, sort_keys=True)


def entry_line(request: str, reply: ChatMessage, secrets: Iterable[str] = ()) -> str:
    answer = json.dumps(_clean(reply.to_dict(), list(secrets), {}), ensure_ascii=False)
    return f'{{"request": {request}, "reply": {answer}}}'


def _clean(value: Any, secrets: list[str], ids: dict[str, str], inside_calls: bool = False) -> Any:
    """Plain data without secrets, with numbered ids of tool calls."""
    if isinstance(value, dict):
        # A tool's argument may be named "password": without it, the replayed call would be a different one.
        return {
            str(name): _clean(item, secrets, ids, inside_calls or name == "tool_calls")
            for name, item in cast("dict[Any, Any]", value).items()
            if inside_calls or not (_SECRET_NAME.search(str(name)) or isinstance(item, Secret))
        }
    if isinstance(value, list | tuple):
        return [_clean(item, secrets, ids, inside_calls) for item in cast("list[Any]", value)]
    if isinstance(value, Secret):
        return _HIDDEN
    if not isinstance(value, str) or isinstance(value, Enum):
        found = plain(value)
        return _clean(found, secrets, ids) if isinstance(found, str | dict | list) else found
    if value in ids:
        return ids[value]
    for secret in secrets:
        value = value.replace(secret, _HIDDEN)
    return _SECRET_TEXT.sub(_HIDDEN, value)


def read_cassette(data: bytes, name: str) -> Cassette:
    """Raises CorruptData with the line for anything but a cassette of a known version."""
    cassette = Cassette(name)
    versions = 0
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        entry = _object(line, name, number)
        if not versions:
            versions = _check_header(entry, name, number)
            continue
        if not isinstance(entry.get("request"), dict):
            raise _corrupt(name, number, "it has no 'request'")
        try:
            reply = ChatMessage.from_dict(entry.get("reply"))
            request = json.dumps(entry["request"], ensure_ascii=False, sort_keys=True)
        except InvalidArgument as error:
            raise _corrupt(name, number, f"its reply is not a message: {error.message}") from error
        except RecursionError as error:
            raise _corrupt(name, number, describe_cause(error)) from error
        cassette.add(request, reply, number)
    if not versions:
        raise _corrupt(name, 1, "it is empty")
    return cassette


def _object(line: bytes, name: str, number: int) -> dict[str, Any]:
    try:
        entry: Any = json.loads(line.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise _corrupt(name, number, describe_cause(error)) from error
    if not isinstance(entry, dict):
        raise _corrupt(name, number, f"it is not an object: {shorten(entry)}")
    return cast("dict[str, Any]", entry)


def _check_header(entry: dict[str, Any], name: str, number: int) -> int:
    if entry.get("format") != FORMAT:
        raise _corrupt(name, number, f"a cassette begins with {HEADER}")
    if entry.get("version") != VERSION:
        raise CorruptData(
            f"the cassette {name} has version {shorten(entry.get('version'))}, this release reads version {VERSION}",
            way_out="use the release that wrote it, or delete the file and record it again",
        )
    return VERSION


def _corrupt(name: str, number: int, cause: str) -> CorruptData:
    return CorruptData(
        f"line {number} of the cassette {name} cannot be read",
        cause=cause,
        way_out="delete that line if it is truncated, or delete the file and record it again",
    )


_locks: dict[str, threading.Lock] = {}
_locks_lock = threading.Lock()


def _lock_of(path: Path) -> threading.Lock:
    with _locks_lock:
        return _locks.setdefault(os.path.realpath(path), threading.Lock())


def load_cassette(path: Path, *, may_be_missing: bool) -> Cassette:
    try:
        # Not while another thread is writing a line.
        with _lock_of(path):
            data = path.read_bytes()
    except FileNotFoundError:
        if may_be_missing:
            return Cassette(str(path))
        raise ResourceFailed(
            f"there is no cassette {path}",
            way_out="record it once with mode='record' and connection=…, or give a path relative to where the job runs",
        ) from None
    except OSError as error:
        raise ResourceFailed(f"the cassette {path} cannot be read", cause=describe_cause(error)) from error
    if may_be_missing and not data:
        return Cassette(str(path))
    return read_cassette(data, str(path))


def append_entry(path: Path, line: str) -> None:
    """Safe for all writers of one process; each line is written at once."""
    with _lock_of(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a+b") as file:
                size = file.seek(0, os.SEEK_END)
                start = "" if size else f"{HEADER}\n"
                if size:
                    # An editor may have removed the last line break.
                    file.seek(size - 1)
                    start = "" if file.read(1) == b"\n" else "\n"
                file.write(f"{start}{line}\n".encode("utf-8", "surrogatepass"))
        except OSError as error:
            raise ResourceFailed(
                f"the cassette {path} cannot be written", cause=describe_cause(error)
            ) from error
