"""The two expressions of schemas: a time column computed from a number, and a watermark behind a time column."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from emberflow.errors import NotSupported
from emberflow.events.types.instant import Instant

_NAME = r"(?:`(?P<quoted>[^`]+)`|(?P<plain>[A-Za-z_]\w*))"
_TO_TIMESTAMP = re.compile(
    rf"\s*TO_TIMESTAMP_LTZ\s*\(\s*{_NAME}\s*(?:\*\s*(?P<factor>\d+)\s*)?(?:,\s*(?P<precision>\d)\s*)?\)\s*",
    re.IGNORECASE,
)
_BEHIND = re.compile(
    rf"\s*{_NAME}\s*(?:-\s*INTERVAL\s*'(?P<amount>\d+(?:\.\d{{1,3}})?)'\s*(?P<unit>SECOND|MINUTE|HOUR|DAY)S?\s*)?",
    re.IGNORECASE,
)
_UNIT_MS = {"SECOND": 1_000, "MINUTE": 60_000, "HOUR": 3_600_000, "DAY": 86_400_000}


@dataclass(frozen=True, slots=True)
class ToTimestamp:
    """`TO_TIMESTAMP_LTZ(column * factor, precision)`: precision 0 counts seconds, 3 milliseconds."""

    column: str
    unit_ms: int

    def __call__(self, value: Any) -> Instant | None:
        return None if value is None else Instant.of_epoch_milli(value * self.unit_ms)


def to_timestamp(text: str, column: str) -> ToTimestamp:
    """The expression of a computed column; raises NotSupported for any other."""
    found = _TO_TIMESTAMP.fullmatch(text)
    if found is None or found.group("precision") not in (None, "0", "3"):
        raise NotSupported(
            f"the computed column {column!r} cannot be {text!r}",
            way_out="write TO_TIMESTAMP_LTZ(`column`, 3) for milliseconds, with precision 0 for seconds and optionally "
            "`column` * n; compute other columns with map() on t_env.to_data_stream(table)",
        )
    unit_ms = 1_000 if found.group("precision") == "0" else 1
    return ToTimestamp(_name(found), int(found.group("factor") or 1) * unit_ms)


@dataclass(frozen=True, slots=True)
class Behind:
    """`column - INTERVAL '5' SECOND`: how far the watermark is behind the highest time of the column."""

    column: str
    delay_ms: int


def behind(text: str, column: str) -> Behind:
    """The expression of a watermark; raises NotSupported for any other."""
    found = _BEHIND.fullmatch(text)
    if found is None or _name(found) != column:
        raise NotSupported(
            f"the watermark of the column {column!r} cannot be {text!r}",
            way_out=f"write {column}, or {column} - INTERVAL '5' SECOND (or MINUTE, HOUR, DAY); for others use "
            "assign_timestamps_and_watermarks() on t_env.to_data_stream(table)",
        )
    amount = Decimal(found.group("amount") or 0)
    return Behind(column, int(amount * _UNIT_MS[(found.group("unit") or "SECOND").upper()]))


def _name(found: re.Match[str]) -> str:
    return found.group("quoted") or found.group("plain")
