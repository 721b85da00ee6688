"""A key's state in memory, and the cursor that points at the current key.

An entry maps state names to values. Whoever changes it sets `dirty`, so that a commit writes only what changed.
"""

from __future__ import annotations

from typing import Any

from emberflow.event_time.clock import Clock, SystemClock
from emberflow.state.pages import Fields, PageStore


class Entry(dict[str, Any]):
    """State names -> values of one key. Empty means: the key has no state."""

    __slots__ = ("dirty",)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.dirty = False

    def write_pages(self, store: PageStore) -> None:
        """Large values that keep pages of their own go there; called before the entry is stored."""
        for value in self.values():
            if value.__class__ is Fields and value.touched:
                value.flush(store)


class Cursor:
    """The key an operator is working on now. State handles look here, so switching the key is two assignments."""

    __slots__ = ("clock", "entry", "key")

    def __init__(self) -> None:
        self.entry: Entry = Entry()
        self.key: Any = None
        self.clock: Clock = SystemClock()
