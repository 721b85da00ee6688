"""A scope: everything one key group (on Spark) or one subtask (locally) of a keyed step remembers.

Engines make scopes from what they stored, hand them to the keyed operator, and store them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from emberflow.event_time.clock import Clock
from emberflow.events.batch import MIN_WATERMARK
from emberflow.events.stored_types import stored_type
from emberflow.operators.timers import TimerQueue
from emberflow.operators.watermark_merge import ChannelClock, ChannelId, SavedChannel
from emberflow.state.entry import Entry
from emberflow.state.pages import PageStore


class EntryLoader(Protocol):
    """Finds a key's stored state when it is not in memory."""

    def load(self, key: Any) -> Entry | None: ...


class NothingStored:
    """The loader of a scope whose entries are all in memory."""

    def load(self, key: Any) -> Entry | None:
        return None


@stored_type()
@dataclass(slots=True, kw_only=True)
class SavedScope:
    """A scope without its entries, as plain data."""

    watermark: int = MIN_WATERMARK
    channels: list[SavedChannel] = field(default_factory=list[SavedChannel])
    event_timers: list[tuple[int, list[Any]]] = field(default_factory=list[tuple[int, list[Any]]])
    processing_timers: list[tuple[int, list[Any]]] = field(default_factory=list[tuple[int, list[Any]]])
    ended: bool = False
    parked: list[tuple[Any, str]] = field(default_factory=list[tuple[Any, str]])
    """Keys with work that has begun, each with the name of the action that is to go on."""

    def __setstate__(self, state: Any) -> None:
        # As pickle does it for slots; earlier versions had fewer.
        self.parked = []
        for name, value in state[1].items():
            setattr(self, name, value)


class Scope:
    __slots__ = (
        "channels",
        "clock",
        "ended",
        "entries",
        "event_timers",
        "loader",
        "owns",
        "pages",
        "parked",
        "processing_timers",
        "removed",
        "watermark",
        "work",
    )

    def __init__(
        self,
        *,
        channels: Iterable[ChannelId],
        idle_ms: dict[int, int],
        clock: Clock,
        saved: SavedScope | None = None,
        entries: dict[Any, Entry] | None = None,
        loader: EntryLoader | None = None,
        pages: PageStore | None = None,
        owns: Callable[[Any], bool] = lambda key: True,
    ) -> None:
        saved = saved or SavedScope()
        self.clock = clock
        self.owns = owns
        self.entries: dict[Any, Entry] = {} if entries is None else entries
        self.loader: EntryLoader = loader or NothingStored()
        self.pages = pages
        self.watermark = saved.watermark
        self.channels = ChannelClock(channels, idle_ms, saved.channels, clock.now_ms())
        self.event_timers = TimerQueue(saved.event_timers)
        self.processing_timers = TimerQueue(saved.processing_timers)
        self.ended = saved.ended
        self.parked: dict[Any, str] = dict(saved.parked)
        self.removed: set[Any] = set()
        self.work: Any = None
        """What an operator has in flight here; never stored as it is."""

    def entry(self, key: Any) -> Entry:
        """The key's entry: from memory, from the store, or a new empty one."""
        entry = self.entries.get(key)
        if entry is None:
            if key in self.removed:
                # The stored state is stale until the next commit removes or overwrites it.
                self.removed.discard(key)
                entry = Entry()
                entry.dirty = True
            else:
                entry = self.loader.load(key)
                if entry is None:
                    entry = Entry()
            self.entries[key] = entry
        return entry

    def prune(self, keys: Iterable[Any]) -> None:
        """Forgets keys whose state has become empty."""
        for key in keys:
            entry = self.entries.get(key)
            if entry is not None and not entry:
                del self.entries[key]
                if entry.dirty:
                    self.removed.add(key)

    def saved(self) -> SavedScope:
        return SavedScope(
            watermark=self.watermark,
            channels=self.channels.saved(),
            event_timers=self.event_timers.saved(),
            processing_timers=self.processing_timers.saved(),
            ended=self.ended,
            parked=list(self.parked.items()),
        )
