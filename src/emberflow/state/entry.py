"""A key's state in memory, and the cursor that points at the current key.

An entry maps state names to values. Whoever changes it sets `dirty`, so that a commit writes only what changed.
"""

from __future__ import annotations

from typing import Any

from emberflow.event_time.clock import Clock, SystemClock


class Entry(dict[str, Any]):
    """State names -> values of one key. Empty means: the key has no state."""

    __slots__ = ("dirty",)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.dirty = False


class Cursor:
    """The key an operator is working on now. State handles look here, so switching the key is two assignments."""

    __slots__ = ("clock", "entry", "key")

    def __init__(self) -> None:
        self.entry: Entry = Entry()
        self.key: Any = None
        self.clock: Clock = SystemClock()
