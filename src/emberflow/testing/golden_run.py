"""`assert_golden`: compares outputs and events of a run with a file in the repository.

    assert_golden(outputs, Path(__file__).parent / "golden" / "refunds.json")

Write the file by running the test with EMBERFLOW_UPDATE_GOLDEN=1; review it before you commit it. Records of several
keys arrive in any order: compare `per_key(outputs)` or `unordered(outputs)`.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import json
import os
import re
from collections.abc import Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePath
from typing import Any, cast
from uuid import UUID

from emberflow.events.agent_events import Event

UPDATE = "EMBERFLOW_UPDATE_GOLDEN"
_LONGEST_DIFF = 80


def assert_golden(actual: Any, path: str | Path) -> None:
    """Raises AssertionError with a diff if `actual` differs from the file, or if there is no file."""
    file = Path(path)
    rendered = render(actual)
    if os.environ.get(UPDATE, "") not in ("", "0"):
        if _stored(file) != rendered:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(rendered.encode("utf-8", "surrogatepass"))
        return
    stored = _stored(file)
    if stored is None:
        missing = "is not JSON" if file.exists() else "does not exist"
        raise AssertionError(f"the golden file {file} {missing}; to write it: {_command()}")
    if stored != rendered:
        raise AssertionError(
            f"this run differs from {file} (- stored, + now)\n{_diff(stored, rendered)}\n"
            f"if the change is intended: {_command()}"
        )


def render(value: Any) -> str:
    """The string that is compared: JSON with sorted names, the same for equal values in every process."""
    return json.dumps(plain(value), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def plain(value: Any) -> Any:
    """A value as plain data. An event becomes its type and attributes, an object `{"ItsClass": {its fields}}`; ids of
    events and memory addresses are removed."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        # JSON has no nan and infinities.
        return value if value - value == 0 else str(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal | UUID | PurePath | timedelta):
        return str(value)
    if isinstance(value, bytes | bytearray | BaseException):
        return repr(value)
    if isinstance(value, Event):
        return {"type": value.type, "attributes": _mapping(value.attributes)}
    if isinstance(value, Mapping):
        return _mapping(cast("Mapping[Any, Any]", value))
    if isinstance(value, Set):
        return sorted((plain(item) for item in cast("Set[Any]", value)), key=_sortable)
    if isinstance(value, type) or inspect.isroutine(value):
        return f"{value.__module__}.{value.__qualname__}"
    fields = _fields(value)
    if fields is not None:
        return {type(value).__name__: _mapping(fields)}
    if isinstance(value, Sequence):
        return [plain(item) for item in cast("Sequence[Any]", value)]
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def _fields(value: Any) -> Mapping[str, Any] | None:
    if dataclasses.is_dataclass(value):
        return {item.name: getattr(value, item.name) for item in dataclasses.fields(value) if item.repr}
    if hasattr(value, "model_dump"):
        return value.model_dump()
    if hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, Sequence) or type(value).__repr__ is not object.__repr__:
        # A custom repr contains what belongs in it.
        return None
    return getattr(value, "__dict__", None)


def _mapping(value: Mapping[Any, Any]) -> Any:
    named = {key if type(key) is str else _sortable(plain(key)): plain(item) for key, item in value.items()}
    if len(named) == len(value):
        return named
    # 1 and "1" are two keys here and one in JSON.
    return sorted(([plain(key), plain(item)] for key, item in value.items()), key=_sortable)


def _sortable(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _stored(file: Path) -> str | None:
    try:
        data = json.loads(file.read_bytes().decode("utf-8", "surrogatepass"))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        return None
    # Rendered again: line breaks added by a formatter are not a difference.
    return json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _diff(stored: str, rendered: str) -> str:
    lines = list(
        difflib.unified_diff(stored.splitlines(), rendered.splitlines(), "stored", "now", lineterm="", n=3)
    )
    if len(lines) > _LONGEST_DIFF:
        lines = [*lines[:_LONGEST_DIFF], f"… {len(lines) - _LONGEST_DIFF} more lines"]
    return "\n".join(lines)


def _command() -> str:
    # pytest says which test runs, as "path::name (call)".
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    return f'{UPDATE}=1 python -m pytest "{test}"' if test else f"run it again with {UPDATE}=1"
