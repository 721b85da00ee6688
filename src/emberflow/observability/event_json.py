"""Renders a record of the event log as one line of JSON. Works for any value; never raises.

Line format 1, in this order: `v time agent key run kind id type upstream_id upstream_action attributes`, for errors
`action error`, and `upstream_agent` before the attributes of an event that another agent caused. Values that JSON lacks are converted: dataclasses and Pydantic models to objects, enums to their
values, times to ISO strings, everything else to its repr.

Runs on the log's writer thread while the agent continues: containers are copied before they are traversed.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import json
import math
import pathlib
import sys
import uuid
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from enum import Enum
from typing import Any, cast

from emberflow.errors import describe_cause
from emberflow.events.agent_events import Event
from emberflow.observability.event_record import VERBOSE, EventLogSettings, EventRecord
from emberflow.observability.plain_line import (
    LARGEST_INT,
    MAY_HOLD_SECRETS,
    SMALLEST_INT,
    VERSION,
    PlainLines,
    fast_dumps,
    time_text,
)
from emberflow.rendering.secret_names import MASK, is_hidden, scrub, shown_forms, without_values

# Bounds for every level: structures that contain themselves many times over must not fill the disk.
_DEEPEST = 100
_MOST_VALUES = 1_000_000
_MOST_VALUES_STANDARD = 2_000


_AS_TEXT = (uuid.UUID, decimal.Decimal, pathlib.PurePath, dt.timedelta)


_unicode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))
_ascii = json.JSONEncoder(ensure_ascii=True, allow_nan=False, check_circular=False, separators=(",", ":"))


def encode(content: dict[str, Any]) -> bytes:
    """Plain data as JSON without a line break; both encoders produce the same values."""
    if fast_dumps is not None:
        try:
            return fast_dumps(content)
        except TypeError:  # An unpaired surrogate, which orjson rejects.
            return _ascii.encode(content).encode()
    try:
        return _unicode.encode(content).encode()
    except UnicodeEncodeError:
        return _ascii.encode(content).encode()


class EventJson:
    """Renders records with one log's settings; used by one thread at a time."""

    def __init__(self, settings: EventLogSettings) -> None:
        self._settings = settings
        self._by_level: dict[str, EventJson] = {"": self, settings.level: self}
        everything = settings.level == VERBOSE
        self._max_string = sys.maxsize if everything else settings.max_string
        self._max_items = sys.maxsize if everything else settings.max_items
        self._max_depth = _DEEPEST if everything else min(settings.max_depth, _DEEPEST)
        self._max_values = _MOST_VALUES if everything else _MOST_VALUES_STANDARD
        self._left = self._max_values
        self._path: set[int] = set()
        self._secrets: tuple[str, ...] = ()
        """The values to mask in the current line."""
        self._plain = PlainLines(self._max_string, self._max_items, self._max_depth)

    def line(self, record: EventRecord) -> bytes:
        """The record as JSON with a line break."""
        if record.level:
            return self._at(record.level)._line(record)
        return self._line(record)

    def _at(self, level: str) -> EventJson:
        found = self._by_level.get(level)
        if found is None:
            found = self._by_level[level] = EventJson(replace(self._settings, level=level))
        return found

    def _line(self, record: EventRecord) -> bytes:
        try:
            ready = self._plain.line(record)
            if ready is not None and not (record.secrets and _may_contain(ready, record.secrets)):
                return ready
            self._secrets = shown_forms(record.secrets) if record.secrets else ()
            self._left = self._max_values
            self._path.clear()
            return encode(self._content(record)) + b"\n"
        except Exception as error:
            return encode(_unwritable(record, error)) + b"\n"

    def _content(self, record: EventRecord) -> dict[str, Any]:
        event = record.event
        content = {
            "v": VERSION,
            "time": time_text(record.time_ms),
            "agent": _exact(record.agent),
            "key": self._key(record.key),
            "run": _exact(record.run_id),
            "kind": _exact(record.kind),
            "id": "" if event is None else _exact(event.__dict__.get("id", "")),
            "type": "" if event is None else _exact(event.type),
            "upstream_id": "" if event is None else _exact(event.upstream_event_id or ""),
            "upstream_action": "" if event is None else _exact(event.upstream_action_name or ""),
        }
        if record.origin is not None:
            content["upstream_agent"], content["upstream_id"] = map(_exact, record.origin)
        if record.kind == "error":
            content["action"] = _exact(record.action)
            content["error"] = self._text(_exact(record.error), clean=True)
        elif event is not None:
            content["attributes"] = self._mapping(event.attributes, 0)
        return content

    def _key(self, key: Any) -> Any:
        # Never truncated: readers filter by it.
        if type(key) is str:
            return without_values(key, self._secrets)
        if type(key) is bool or key is None:
            return key
        if type(key) in (int, float):
            return self.value(key, 0)
        if type(key) in (list, tuple, dict):
            whole = EventJson(_EVERYTHING)
            whole._secrets = self._secrets
            return whole.value(key, 0)
        return scrub(without_values(_repr(key), self._secrets))

    def value(self, value: Any, depth: int) -> Any:
        """Converts any value to plain data."""
        kind = cast("Any", type(value))
        if kind is str:
            plain = len(value) <= self._max_string and value[:1] not in MAY_HOLD_SECRETS and not self._secrets
            return value if plain else self._text(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return value if SMALLEST_INT <= value <= LARGEST_INT else self._text(_digits(value))
        if kind is float:
            return value if math.isfinite(value) else repr(value)
        if kind is dict:
            return self._mapping(value, depth)
        if kind is list or kind is tuple:
            return self._sequence(value, value, depth)
        try:
            return self._other(value, depth)
        except Exception:
            return self._text(_repr(value), clean=True)

    def _other(self, value: Any, depth: int) -> Any:
        kind = cast("Any", type(value))
        if isinstance(value, Enum):
            return self.value(value.value, depth)
        if isinstance(value, str | int | float):
            exact: Any = next(plain for plain in (str, int, float) if isinstance(value, plain))
            return self.value(_base_form(exact, value), depth)
        if isinstance(value, Event):
            return self._mapping({"type": value.type, "attributes": value.attributes}, depth, value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [field.name for field in dataclasses.fields(value) if field.repr]
            return self._mapping({name: getattr(value, name, None) for name in names}, depth, value)
        if isinstance(getattr(kind, "model_fields", None), Mapping):
            return self._mapping(_fields_of_model(value), depth, value)
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return self._mapping(dict(zip(kind._fields, cast("Any", value), strict=False)), depth, value)
        if isinstance(value, Mapping):
            return self._mapping(dict(cast("Mapping[Any, Any]", value)), depth, value)
        if isinstance(value, list | tuple | set | frozenset | deque):
            return self._sequence(_ordered(cast("Any", value)), value, depth)
        if isinstance(value, dt.date | dt.time):
            return value.isoformat()
        if isinstance(value, bytes | bytearray | memoryview):
            return self._bytes(bytes(cast("Any", value)))
        if isinstance(value, BaseException):
            return self._text(describe_cause(value), clean=True)
        if isinstance(value, _AS_TEXT):
            return self._text(str(value))
        if kind.__module__ == "numpy" and getattr(value, "ndim", None) == 0:
            return self.value(cast("Any", value).item(), depth)
        return self._text(_repr(value), clean=True)

    def _mapping(self, value: dict[Any, Any], depth: int, owner: Any = None) -> Any:
        # One C call, so that no other thread can change the dict in between.
        pairs = list(value.items())
        if depth >= self._max_depth and pairs:
            return f"… ({len(pairs)} {'entry' if len(pairs) == 1 else 'entries'})"
        identity = id(value if owner is None else owner)
        if identity in self._path:
            return "… (contains itself)"
        self._path.add(identity)
        shown: dict[str, Any] = {}
        for position, (name, item) in enumerate(pairs):
            if self._left <= 0:
                shown["…"] = f"… (+{len(pairs) - position} entries)"
                break
            self._left -= 1
            full = without_values(name if type(name) is str else _name(name), self._secrets)
            text = full if len(full) <= self._max_string else self._text(full)
            if text in shown:  # 1 and "1", or two long names with the same prefix.
                text = f"{text} ({position})"
            shown[text] = MASK if is_hidden(full, item) else self.value(item, depth + 1)
        self._path.discard(identity)
        return shown

    def _sequence(self, items: Iterable[Any], owner: Any, depth: int) -> Any:
        copy: list[Any] = list(items)
        if depth >= self._max_depth and copy:
            return f"… ({len(copy)} item{'' if len(copy) == 1 else 's'})"
        if id(owner) in self._path:
            return "… (contains itself)"
        self._path.add(id(owner))
        room = min(self._max_items, max(self._left, 0))
        shown: list[Any] = []
        for item in copy[:room]:
            self._left -= 1
            shown.append(self.value(item, depth + 1))
        if len(copy) > room:
            shown.append(f"… (+{len(copy) - room} items)")
        self._path.discard(id(owner))
        return shown

    def _text(self, text: str, *, clean: bool = False) -> str:
        # Before truncation: half of a secret would not be recognized.
        text = without_values(text, self._secrets)
        cut = text[: self._max_string]
        # After truncation, so that the pattern sees no more than a line may hold; it handles strings that end in a value.
        if clean or cut[:1] in MAY_HOLD_SECRETS:
            cut = scrub(cut)
        more = len(text) - self._max_string
        return cut if more <= 0 else f"{cut}… (+{more} chars)"

    def _bytes(self, value: bytes) -> str:
        for secret in self._secrets:
            value = value.replace(secret.encode(errors="surrogatepass"), MASK.encode())
        limit = self._max_string if self._max_string == sys.maxsize else self._max_string // 4 * 3
        more = len(value) - limit
        text = "base64:" + base64.b64encode(value[:limit]).decode()
        return text if more <= 0 else f"{text}… (+{more} bytes)"


_EVERYTHING = EventLogSettings(
    directory="", level=VERBOSE, max_string=1, max_items=1, max_depth=1, max_file_bytes=1, max_files=1
)


def _may_contain(line: bytes, secrets: Collection[str]) -> bool:
    """Whether a line of JSON may contain one of these values; says yes for those that JSON escapes."""
    return any(
        not (secret.isascii() and secret.isprintable())
        or '"' in secret
        or "\\" in secret
        or secret.encode() in line
        for secret in tuple(secrets)
    )


def _exact(value: Any) -> str:
    return value if type(value) is str else _base_form(str, value) if isinstance(value, str) else _repr(value)


def _name(name: Any) -> str:
    return _exact(name) if isinstance(name, str) else scrub(_repr(name))


def _base_form(kind: Any, value: Any) -> Any:
    # The plain value of a subclass, whatever its str() and int() return.
    if kind is str:
        return str.__str__(value)
    return int.__int__(value) if kind is int else float.__float__(value)


def _digits(value: int) -> str:
    return str(value) if value.bit_length() < 10_000 else hex(value)


def _repr(value: Any) -> str:
    try:
        return str.__str__(repr(value))
    except Exception as error:
        return f"<{type(value).__name__}, repr() raised {type(error).__name__}>"


def _ordered(items: Any) -> Any:
    if not isinstance(items, set | frozenset):
        return items
    copy: list[Any] = list(cast("Any", items))
    try:
        return sorted(copy)
    except Exception:
        return copy


def _fields_of_model(model: Any) -> dict[str, Any]:
    kind = cast("Any", type(model))
    fields: Mapping[str, Any] = kind.model_fields
    shown = {
        name: getattr(model, name, None) for name, field in fields.items() if getattr(field, "repr", True)
    }
    extra: Any = getattr(model, "model_extra", None)
    return {**shown, **extra} if isinstance(extra, dict) else shown


def _attribute(event: Any, name: str) -> str:
    try:
        return _exact(getattr(event, name, ""))
    except Exception:
        return ""


def _unwritable(record: EventRecord, error: Exception) -> dict[str, Any]:
    return {
        "v": VERSION,
        "time": time_text(record.time_ms if type(record.time_ms) is int else 0),
        "agent": _exact(record.agent),
        "key": None,
        "run": _exact(record.run_id),
        "kind": _exact(record.kind),
        "id": _attribute(record.event, "id"),
        "type": _attribute(record.event, "type"),
        "upstream_id": "",
        "upstream_action": "",
        "attributes": {"…": f"could not be written: {_exact(type(error).__name__)}"},
    }
