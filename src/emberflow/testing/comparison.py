"""Compares outputs whose order is guaranteed only within a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def per_key(
    records: Iterable[Any], key: Callable[[Any], Any] = lambda record: record[0]
) -> dict[Any, list[Any]]:
    """Records by key, each key's in order of arrival."""
    found: dict[Any, list[Any]] = {}
    for record in records:
        found.setdefault(key(record), []).append(record)
    return found


def unordered(records: Iterable[Any]) -> list[Any]:
    """The records in a canonical order, so that two lists with the same records are equal."""
    return sorted(records, key=lambda record: (type(record).__name__, repr(record)))
