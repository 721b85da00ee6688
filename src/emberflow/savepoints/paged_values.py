"""Values on pages, in and out of savepoints: a savepoint stores them inline with their key."""

from __future__ import annotations

from typing import Any

from emberflow.state.entry import PAGED
from emberflow.state.pages import Fields, Node, PageStore


def inlined(values: dict[str, Any], pages: PageStore | None) -> dict[str, Any]:
    """A key's values with all pages inlined. The result is the caller's own copy."""
    return {name: _inline(value, pages) for name, value in values.items()}


def _inline(value: Any, pages: PageStore | None) -> Any:
    if value.__class__ is Fields:
        return _whole(value, pages)
    if value.__class__ in PAGED:
        value.store = pages
        return value.whole()
    return value


def _whole(fields: Fields, pages: PageStore | None) -> Fields:
    if fields.unread:
        fields.store = pages
        fields.load_all()
    # A copy has no pages, so it is stored as a whole.
    return Fields(dict(fields))


def to_be_paged(values: dict[str, Any]) -> None:
    """Marks all of a restored key's memory as new, so that large values go to pages when the key is first stored. Lists
    and maps need no mark: they are measured whenever their key is stored."""
    for value in values.values():
        if value.__class__ is Fields:
            _touch(value, value, "")


def _touch(fields: Fields, node: dict[str, Any], prefix: str) -> None:
    for name, value in node.items():
        if value.__class__ is Node:
            _touch(fields, value, f"{prefix}{name}.")
        else:
            fields.touch(prefix + name)
