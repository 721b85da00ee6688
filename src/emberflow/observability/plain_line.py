"""The common case of a log line, an event of small plain values, written without copying it.

`event_json.py` writes all other lines, and would produce the same bytes for these.
"""

from __future__ import annotations

import datetime as dt
import functools
import importlib
import json
import math
from collections.abc import Callable, Iterable
from typing import Any, cast

from emberflow.events.agent_events import Event
from emberflow.observability.event_record import EventRecord
from emberflow.rendering.secret_names import is_hidden

VERSION = 1
_FEW_VALUES = 64
SMALLEST_INT, LARGEST_INT = -(2**63), 2**63 - 1
_LAST_SECOND = 253_402_300_799  # 9999-12-31T23:59:59Z

# Prefixes of JSON inside a string, or of a header's `Bearer …`.
MAY_HOLD_SECRETS = ("{", "[", "B", "b")


def _orjson_dumps() -> Callable[[Any], bytes] | None:
    try:
        return importlib.import_module("orjson").dumps
    except ImportError:
        return None


fast_dumps = _orjson_dumps()
_unicode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))
_quoted = json.encoder.encode_basestring


def _json_text(value: Any) -> str:
    if fast_dumps is not None:
        return fast_dumps(value).decode()
    return "".join(_chunks(value, 0)) if _chunks is not None else _unicode.encode(value)


def _chunk_encoder() -> Callable[[Any, int], Iterable[str]] | None:
    """The C encoder behind `json`, created once: `json.dumps` creates a new one for every value."""
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return None
    return make(None, _unicode.default, _quoted, None, ":", ",", False, False, False)


_chunks = _chunk_encoder()


@functools.lru_cache(maxsize=16)
def _second_text(second: int) -> str:
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=second)
    return moment.isoformat(timespec="seconds")


def time_text(time_ms: int) -> str:
    """UTC with milliseconds; strings sort like the times."""
    second, millisecond = divmod(int(time_ms), 1000)
    second = min(max(second, 0), _LAST_SECOND)
    return f"{_second_text(second)}.{millisecond:03d}Z"


class PlainLines:
    """Used by one thread at a time."""

    def __init__(self, max_string: int, max_items: int, max_depth: int) -> None:
        self._max_string = max_string
        self._max_items = max_items
        self._max_depth = max_depth
        self._left = 0
        self._harmless_names: set[str] = set()
        self._head_of: tuple[int, str, str] = (-1, "", "")
        self._origins: dict[tuple[str, str], tuple[str, str]] = {}

    def line(self, record: EventRecord) -> bytes | None:
        """The line of an event of small plain values; None for all others."""
        event, key = record.event, record.key
        if (
            event is None
            or record.kind != "event"
            or record.origin is not None
            or type(key) not in (str, int)
        ):
            return None
        attributes = event.attributes
        # The check must not cost more than writing: a structure may contain itself many times over.
        self._left = _FEW_VALUES
        if not self._is_plain(key, 0) or not self._is_plain(attributes, 0):
            return None
        try:
            return (
                f'{self._head(record)}"key":{_quoted(key) if type(key) is str else key},"run":{_quoted(record.run_id)},'
                f'"kind":"event","id":{_quoted(event.__dict__.get("id", ""))},{self._origin(event)}"attributes":{_json_text(attributes)}}}\n'
            ).encode()
        except (TypeError, ValueError, RuntimeError):
            # An unpaired surrogate, a subclass of str, or a dict that the agent is changing right now.
            return None

    def _head(self, record: EventRecord) -> str:
        """The line up to the agent; consecutive lines share it."""
        if record.time_ms != self._head_of[0] or record.agent != self._head_of[1]:
            time = time_text(record.time_ms)
            head = f'{{"v":{VERSION},"time":"{time}","agent":{_quoted(record.agent)},'
            self._head_of = (record.time_ms, record.agent, head)
        return self._head_of[2]

    def _origin(self, event: Event) -> str:
        """Type and origin of the event; an agent has few combinations."""
        kind = (event.type, event.upstream_action_name or "")
        fixed = self._origins.get(kind)
        if fixed is None:
            if len(self._origins) >= 1_000:
                self._origins.clear()
            fixed = self._origins[kind] = (_quoted(kind[0]), _quoted(kind[1]))
        return f'"type":{fixed[0]},"upstream_id":{_quoted(event.upstream_event_id or "")},"upstream_action":{fixed[1]},'

    def _is_plain(self, value: Any, depth: int) -> bool:
        """Whether JSON accepts the value unchanged: nothing to truncate, mask or convert."""
        kind = cast("Any", type(value))
        if kind is str:
            return len(value) <= self._max_string and value[:1] not in MAY_HOLD_SECRETS
        if kind is int:
            return SMALLEST_INT <= value <= LARGEST_INT
        if kind is bool or value is None:
            return True
        if kind is float:
            return math.isfinite(value)
        if depth >= self._max_depth or kind not in (dict, list, tuple):
            return False
        self._left -= len(value)
        if self._left < 0:
            return False
        if kind is dict:
            names = self._harmless_names
            for name, item in list(value.items()):
                if name not in names and not self._is_harmless(name):
                    return False
                if not self._is_plain(item, depth + 1):
                    return False
            return True
        return len(value) <= self._max_items and all(self._is_plain(item, depth + 1) for item in list(value))

    def _is_harmless(self, name: Any) -> bool:
        """Whether a field of this name is never masked or truncated."""
        if type(name) is not str or len(name) > min(self._max_string, 100) or is_hidden(name, "value"):
            return False
        if len(self._harmless_names) < 1_000:
            self._harmless_names.add(name)
        return True
