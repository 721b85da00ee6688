"""A key's state in memory, and the cursor that points to the current key.

An entry maps state names to values. Code that changes it sets `dirty`, so that a commit writes only what changed.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import Any, Protocol

from emberflow.errors import NotSerializable
from emberflow.event_time.clock import Clock, SystemClock
from emberflow.events.stored_types import stored_type
from emberflow.state import paged_list, paged_map
from emberflow.state.forms import StateForms
from emberflow.state.paged_list import PagedList
from emberflow.state.paged_map import PagedMap
from emberflow.state.pages import PAGE_BYTES, Fields, PageStore
from emberflow.state.sizes import measure

PAGED = frozenset({PagedList, PagedMap})
_CONTAINERS = frozenset({Fields, PagedList, PagedMap, list, dict})
_FEW_ITEMS = 8
"""Lists and maps with fewer items stay with their key, whatever their size."""
_INLINE_BYTES = 2 * PAGE_BYTES
"""Smaller lists and maps stay with their key."""


@stored_type(write=lambda key: key.value, read=lambda _, name: SharedKey(name))
class SharedKey(Enum):
    """Entries that every scope of a step has, with equal values; no key of a user's equals one."""

    BROADCAST = "broadcast"


class Entry(dict[str, Any]):
    """State names -> values of one key. An empty entry means that the key has no state."""

    __slots__ = ("dirty",)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.dirty = False

    def write_pages(self, store: PageStore, pageable: Collection[str] = ()) -> None:
        """Moves large values to pages; called before the entry is stored. `pageable` has the names of list and map
        states: a list in a value state belongs to the user and stays what it is."""
        for name, value in self.items():
            kind = value.__class__
            if kind not in _CONTAINERS:
                continue
            if kind is Fields:
                if value.touched:
                    value.flush(store)
            elif kind in PAGED:
                value.flush(store)
            elif name in pageable and len(value) >= _FEW_ITEMS and _is_large(value):
                made = paged_list.page_out(value) if kind is list else paged_map.page_out(value)
                made.flush(store)
                self[name] = made

    def bind_pages(self, store: PageStore) -> None:
        """Tells paged lists and maps where their pages are; after the entry was read."""
        for value in self.values():
            if value.__class__ in PAGED:
                value.store = store


def _is_large(items: Any) -> bool:
    """By the last item first: most lists and maps have items of similar size, and most are small."""
    last = items[-1] if items.__class__ is list else next(reversed(items.items()))
    try:
        return measure(last) * len(items) >= _INLINE_BYTES // 4 and measure(items) >= _INLINE_BYTES
    except NotSerializable:
        return False  # Whoever stores the entry tells what is wrong.


class CleanupQueue(Protocol):
    """Keys by the time at which they are to be looked at."""

    def register(self, time_ms: int, key: Any) -> None: ...


class NoCleanup:
    """For handles outside of a scope."""

    def register(self, time_ms: int, key: Any) -> None:
        pass


class Cursor:
    """The key an operator is processing. State handles read it, so changing the key takes two assignments."""

    __slots__ = ("cleanup", "clock", "dropped", "entry", "expiring", "forms", "key", "pageable")

    def __init__(self, step: str = "") -> None:
        self.entry: Entry = Entry()
        self.key: Any = None
        self.clock: Clock = SystemClock()
        self.forms = StateForms(step)
        self.pageable: set[str] = set()
        """The names of list and map states."""
        self.dropped: list[Any] = []
        """Paged values that were cleared or replaced; their pages are removed when the scope is stored."""
        self.expiring: dict[str, Any] = {}
        """The time to live of each state that is cleaned up in the background."""
        self.cleanup: CleanupQueue = NoCleanup()
