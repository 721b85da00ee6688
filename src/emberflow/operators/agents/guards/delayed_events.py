"""Events that an agent sends to itself with a delay: kept with their key until they are due.

Each starts its own run, like an input. The key's timers in the scope determine when to check; due events are found in the
key's entry, ordered by due time and, for equal due times, in the order of sending.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from emberflow.errors import InvalidArgument, shorten
from emberflow.events.agent_events import Event
from emberflow.events.stored_types import stored_type
from emberflow.state.entry import Entry

LATER = "later"
"""Name in a key's entry."""
LONGEST_MS = 100 * 366 * 86_400_000

Due = tuple[int, Event, int | None]
"""due time, event, timestamp of the input that caused it"""


@stored_type()
@dataclass(frozen=True, slots=True)
class Delayed:
    """Among the inputs of a key: an event that is due. `early`: fired because the input has ended."""

    event: Event
    early: bool = False


def check_delay(delay_ms: Any) -> None:
    if (
        isinstance(delay_ms, bool)
        or not isinstance(delay_ms, (int, float))
        or not 0 <= delay_ms <= LONGEST_MS
    ):
        raise InvalidArgument(
            f"an event cannot be sent after {shorten(delay_ms)} ms",
            way_out="give milliseconds of 0 or more, e.g. ctx.send_event_after(60_000, event)",
        )


def keep(entry: Entry, later: list[Due]) -> None:
    """Adds events to the delayed events of the key."""
    entry[LATER] = [*entry.get(LATER, ()), *later]
    entry.dirty = True


def take_due(entry: Entry, time_ms: int) -> list[Due]:
    """Removes and returns the due events, in order."""
    kept: list[Due] = entry.get(LATER, [])
    due = sorted((item for item in kept if item[0] <= time_ms), key=lambda item: item[0])
    if due:
        left = [item for item in kept if item[0] > time_ms]
        if left:
            entry[LATER] = left
        else:
            del entry[LATER]
        entry.dirty = True
    return due
