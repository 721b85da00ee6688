"""A scope: the state of one key group (on Spark) or one subtask (locally) of a keyed step.

Engines create scopes from stored state, pass them to the keyed operator, and store them again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from emberflow.errors import shorten
from emberflow.event_time.clock import Clock
from emberflow.events.batch import MIN_WATERMARK
from emberflow.events.stored_types import stored_type
from emberflow.operators.far_timers import NEVER, FarTimers
from emberflow.operators.timers import TimerQueue
from emberflow.operators.watermarks.watermark_merge import ChannelClock, ChannelId, SavedChannel
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
    """Keys with work in flight, each with the name of the action to continue."""
    cleanup: list[tuple[int, list[Any]]] | None = None
    """When to look for expired state of which keys."""
    far_event_timers: FarTimers | None = None
    far_processing_timers: FarTimers | None = None
    far_cleanup: FarTimers | None = None
    waiting: list[tuple[Any, Any, int | None]] = field(default_factory=list[tuple[Any, Any, int | None]])
    """Records (key, value, timestamp) that another input has to come before."""
    forms: dict[str, str] | None = None
    """The form of each state by name (`state/forms.py`); None in scopes of earlier versions."""

    def __setstate__(self, state: Any) -> None:
        # As pickle does it for slots; earlier versions had fewer.
        self.parked = []
        self.cleanup = None
        self.far_event_timers = self.far_processing_timers = self.far_cleanup = None
        self.waiting = []
        self.forms = None
        for name, value in state[1].items():
            setattr(self, name, value)


class Scope:
    __slots__ = (
        "channels",
        "cleanup",
        "clock",
        "dropped",
        "ended",
        "entries",
        "event_timers",
        "forms",
        "loaded_at",
        "loader",
        "owns",
        "pageable",
        "pages",
        "parked",
        "processing_timers",
        "removed",
        "waiting",
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
        timer_limit: int = NEVER,
    ) -> None:
        """`timer_limit` says about how many timers of a kind are stored with the scope; others go to `pages`."""
        saved = saved or SavedScope(forms={})
        self.clock = clock
        self.owns = owns
        self.entries: dict[Any, Entry] = {} if entries is None else entries
        self.loader: EntryLoader = loader or NothingStored()
        self.pages = pages
        self.watermark = self.loaded_at = saved.watermark
        self.channels = ChannelClock(channels, idle_ms, saved.channels, clock.now_ms())
        limit = NEVER if pages is None else timer_limit
        self.event_timers = TimerQueue(saved.event_timers, saved.far_event_timers, limit)
        self.processing_timers = TimerQueue(saved.processing_timers, saved.far_processing_timers, limit)
        self.cleanup = TimerQueue(saved.cleanup or (), saved.far_cleanup, limit)
        """When to look for expired state of which keys."""
        for far in (saved.far_event_timers, saved.far_processing_timers, saved.far_cleanup):
            if far is not None:
                far.store = pages
        self.pageable: Collection[str] = ()
        """The names of list and map states, which may be paged."""
        self.dropped: list[Any] = []
        """Paged values whose pages are to be removed."""
        self.ended = saved.ended
        self.parked: dict[Any, str] = dict(saved.parked)
        self.waiting: list[tuple[Any, Any, int | None]] = list(saved.waiting)
        self.removed: set[Any] = set()
        self.forms: dict[str, str] | None = None if saved.forms is None else dict(saved.forms)
        self.work: Any = None
        """What an operator has in flight here; never stored directly."""

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
                if is_nan(key):
                    raise ValueError(
                        f"the key {shorten(key)} does not equal itself, so its state would not be found again; return another "
                        "key for NaN, such as None, from the function given to key_by()"
                    )
                entry = self.loader.load(key)
                if entry is None:
                    entry = Entry()
            self.entries[key] = entry
        return entry

    def prune(self, keys: Iterable[Any]) -> None:
        """Drops keys whose state has become empty."""
        for key in keys:
            entry = self.entries.get(key)
            if entry is not None and not entry:
                del self.entries[key]
                if entry.dirty:
                    self.removed.add(key)

    def next_wake_up(self) -> int | None:
        """When there is something to do without input: a processing-time timer, or expired state."""
        timer, cleanup = self.processing_timers.next_time(), self.cleanup.next_time()
        if timer is None or cleanup is None:
            return cleanup if timer is None else timer
        return min(timer, cleanup)

    def flush(self, store: PageStore) -> None:
        """Moves what is too large to pages, and removes the pages of dropped values; before the scope is stored."""
        for value in self.dropped:
            value.remove_pages(store)
        self.dropped.clear()
        for timers in (self.event_timers, self.processing_timers, self.cleanup):
            if timers.changed:
                timers.flush(store)

    def saved(self) -> SavedScope:
        return SavedScope(
            watermark=self.watermark,
            channels=self.channels.saved(),
            event_timers=self.event_timers.saved(),
            processing_timers=self.processing_timers.saved(),
            ended=self.ended,
            parked=list(self.parked.items()),
            cleanup=self.cleanup.saved() or None,
            far_event_timers=self.event_timers.far,
            far_processing_timers=self.processing_timers.far,
            far_cleanup=self.cleanup.far,
            waiting=list(self.waiting),
            forms=None if self.forms is None else dict(self.forms),
        )


def is_nan(key: Any) -> bool:
    """Whether a key is NaN, or a tuple that contains it."""
    if key.__class__ is tuple:
        return any(map(is_nan, key))
    return bool(key != key)


def gather_timers(saved: SavedScope, pages: PageStore | None, leftovers: list[Any]) -> SavedScope:
    """The same scope with all its timers in memory; what had them in pages is added to `leftovers`."""

    def whole(near: list[tuple[int, list[Any]]] | None, far: FarTimers | None) -> list[tuple[int, list[Any]]]:
        if far is None:
            return near or []
        far.store = pages
        leftovers.append(far)
        return [*(near or ()), *far.all()]

    return replace(
        saved,
        event_timers=whole(saved.event_timers, saved.far_event_timers),
        processing_timers=whole(saved.processing_timers, saved.far_processing_timers),
        cleanup=whole(saved.cleanup, saved.far_cleanup),
        far_event_timers=None,
        far_processing_timers=None,
        far_cleanup=None,
    )
