"""Comparing outputs whose order is promised within a key only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def per_key(
    records: Iterable[Any], key: Callable[[Any], Any] = lambda record: record[0]
) -> dict[Any, list[Any]]:
    """Records by key, each key's in the order in which they came."""
    found: dict[Any, list[Any]] = {}
    for record in records:
        found.setdefault(key(record), []).append(record)
    return found


def unordered(records: Iterable[Any]) -> list[Any]:
    """The records in an order of their own, so that two lists with the same records are equal."""
    return sorted(records, key=lambda record: (type(record).__name__, repr(record)))
