"""A key's state in memory, and the cursor that points to the current key.

An entry maps state names to values. Code that changes it sets `dirty`, so that a commit writes only what changed.
"""

from __future__ import annotations

from typing import Any

from emberflow.event_time.clock import Clock, SystemClock
from emberflow.state.pages import Fields, PageStore


class Entry(dict[str, Any]):
    """State names -> values of one key. An empty entry means that the key has no state."""

    __slots__ = ("dirty",)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.dirty = False

    def write_pages(self, store: PageStore) -> None:
        """Moves large values to pages; called before the entry is stored."""
        for value in self.values():
            if value.__class__ is Fields and value.touched:
                value.flush(store)


class Cursor:
    """The key an operator is processing. State handles read it, so changing the key takes two assignments."""

    __slots__ = ("clock", "entry", "key")

    def __init__(self) -> None:
        self.entry: Entry = Entry()
        self.key: Any = None
        self.clock: Clock = SystemClock()
