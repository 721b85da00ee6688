"""State handles with a time to live: values are stored as (value, refreshed at) pairs and expire one by one.

Expired values are removed when they are read. Keys that do not come back are removed by `expire`: whoever writes a value
registers its key once in the scope's cleanup queue, and the operator calls `expire` when that time has come.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from emberflow.events.batch import MAX_WATERMARK
from emberflow.state.descriptors import ListStateDescriptor, MapStateDescriptor, StateDescriptor
from emberflow.state.entry import PAGED, Cursor, Entry
from emberflow.state.handles import ListState, MapState, ValueState
from emberflow.state.paged_list import PagedList
from emberflow.state.paged_map import PagedMap
from emberflow.state.ttl_config import StateTtlConfig, StateVisibility, UpdateType

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
Cell = tuple[Any, int]
"""A value and when it was last refreshed."""

CLEANUP_AT = "$ttl"
"""In an entry: the time at which its key is registered in the cleanup queue."""
_GRAINS = 8
"""Cleanup times are rounded up to an eighth of the time to live, so that keys share them."""
_PAGES_AT_ONCE = 32
"""So many pages of one value, and at least a sixteenth of them, are looked at each time its key is cleaned up."""


class Ttl:
    """Decides when the values of one state expire."""

    __slots__ = ("_cleans", "_cursor", "_grain_ms", "_hide", "_on_read", "ttl_ms")

    def __init__(self, config: StateTtlConfig, cursor: Cursor, *, cleans: bool) -> None:
        """`cleans` says whether keys are registered for cleanup in the background."""
        self.ttl_ms = config.ttl_ms
        self._on_read = config.update_type is UpdateType.OnReadAndWrite
        self._hide = config.state_visibility is StateVisibility.NeverReturnExpired
        self._cleans = cleans
        self._grain_ms = max(1, self.ttl_ms // _GRAINS)
        self._cursor = cursor

    def wrap(self, value: Any) -> Cell:
        cursor = self._cursor
        now_ms = cursor.clock.now_ms()
        if self._cleans:
            self.schedule(now_ms + self.ttl_ms)
        return (value, now_ms)

    def schedule(self, expiry_ms: int) -> None:
        """Registers the current key for cleanup, unless it is registered for an earlier time already, or never expires."""
        cursor = self._cursor
        due_ms = (expiry_ms // self._grain_ms + 1) * self._grain_ms
        if due_ms > MAX_WATERMARK:
            return
        registered_ms = cursor.entry.get(CLEANUP_AT)
        if registered_ms is None or due_ms < registered_ms:
            cursor.entry[CLEANUP_AT] = due_ms
            cursor.cleanup.register(due_ms, cursor.key)

    def expired(self, cell: Cell) -> bool:
        return self._cursor.clock.now_ms() - cell[1] >= self.ttl_ms

    def shown(self, cell: Cell) -> bool:
        """Whether a cell, expired or not, may be returned."""
        return not (self._hide and self.expired(cell))

    def refreshed(self, cell: Cell) -> Cell:
        """The cell after it was read; the same one unless reading refreshes it."""
        return self.wrap(cell[0]) if self._on_read and not self.expired(cell) else cell


class TtlValueState(ValueState[T]):
    __slots__ = ("_ttl",)

    def __init__(self, name: str, cursor: Cursor, ttl: Ttl) -> None:
        super().__init__(name, cursor)
        self._ttl = ttl

    def value(self) -> T | None:
        cell: Any = super().value()
        if cell is None:
            return None
        shown = self._ttl.shown(cell)
        if self._ttl.expired(cell):
            self.clear()
        else:
            fresh: Any = self._ttl.refreshed(cell)
            if fresh is not cell:
                super().update(fresh)
        return cell[0] if shown else None

    def update(self, value: T | None) -> None:
        super().update(None if value is None else self._ttl.wrap(value))  # pyright: ignore[reportArgumentType]

    def clear(self) -> None:
        super().clear()
        forget_cleanup(self._cursor.entry)


class TtlListState(ListState[T]):
    """Every element has its own time to live."""

    __slots__ = ("_ttl",)

    def __init__(self, name: str, cursor: Cursor, ttl: Ttl) -> None:
        super().__init__(name, cursor)
        self._ttl = ttl

    def get(self) -> Iterable[T]:
        cells: Any = super().get()
        shown = [cell[0] for cell in cells if self._ttl.shown(cell)]
        kept = [self._ttl.refreshed(cell) for cell in cells if not self._ttl.expired(cell)]
        if len(kept) < len(cells) or any(new is not old for new, old in zip(kept, cells, strict=True)):
            super().clear()
            if kept:
                self._cursor.entry[self._name] = kept
            else:
                forget_cleanup(self._cursor.entry)
        return shown

    def add(self, value: T) -> None:
        super().add(self._ttl.wrap(value))  # pyright: ignore[reportArgumentType]

    def clear(self) -> None:
        super().clear()
        forget_cleanup(self._cursor.entry)


class TtlMapState(MapState[K, V]):
    """Every entry has its own time to live."""

    __slots__ = ("_ttl",)

    def __init__(self, name: str, cursor: Cursor, ttl: Ttl) -> None:
        super().__init__(name, cursor)
        self._ttl = ttl

    def _map(self) -> dict[Any, Any]:
        """All values that may be shown. Expired ones are removed, others refreshed where reading does that."""
        cells: Any = super()._map()
        shown: dict[Any, Any] = {}
        for key, cell in list(cells.items()):
            if self._ttl.shown(cell):
                shown[key] = cell[0]
            self._read(cells, key, cell)
        return shown

    def get(self, key: K) -> V | None:
        cells: Any = super()._map()
        cell = cells.get(key)
        if cell is None:
            return None
        shown = self._ttl.shown(cell)
        self._read(cells, key, cell)
        return cell[0] if shown else None

    def contains(self, key: K) -> bool:
        cells: Any = super()._map()
        cell = cells.get(key)
        if cell is None:
            return False
        shown = self._ttl.shown(cell)
        self._read(cells, key, cell)
        return shown

    def is_empty(self) -> bool:
        cells: Any = super()._map()
        found = cells.any_order() if cells.__class__ is PagedMap else cells.values()
        return not any(map(self._ttl.shown, found))

    def put(self, key: K, value: V) -> None:
        super().put(key, self._ttl.wrap(value))  # pyright: ignore[reportArgumentType]

    def remove(self, key: K) -> None:
        cells: Any = super()._map()
        if cells.pop(key, None) is not None:
            self._cursor.entry.dirty = True
            if not cells:
                self.clear()

    def clear(self) -> None:
        super().clear()
        forget_cleanup(self._cursor.entry)

    def _read(self, cells: Any, key: Any, cell: Cell) -> None:
        if self._ttl.expired(cell):
            self.remove(key)
            return
        fresh = self._ttl.refreshed(cell)
        if fresh is not cell:
            cells[key] = fresh
            self._cursor.entry.dirty = True


def make_handle(descriptor: StateDescriptor, cursor: Cursor, config: StateTtlConfig, *, lasting: bool) -> Any:
    """The handle for a descriptor with a time to live."""
    cleans = lasting and config.cleanup_strategies.cleans_in_background
    ttl = Ttl(config, cursor, cleans=cleans)
    if cleans:
        cursor.expiring[descriptor.name] = ttl
    if isinstance(descriptor, ListStateDescriptor):
        return TtlListState[Any](descriptor.name, cursor, ttl)
    if isinstance(descriptor, MapStateDescriptor):
        return TtlMapState[Any, Any](descriptor.name, cursor, ttl)
    return TtlValueState[Any](descriptor.name, cursor, ttl)


def forget_cleanup(entry: Entry) -> None:
    """An entry with nothing but its cleanup time has no state. The key stays in the queue, where it does no harm."""
    if len(entry) == 1 and CLEANUP_AT in entry:
        del entry[CLEANUP_AT]
        entry.dirty = True


def expire(cursor: Cursor, due_ms: int) -> None:
    """Removes what has expired of the current key, and registers it again if something is left."""
    entry = cursor.entry
    if entry.get(CLEANUP_AT) != due_ms:
        return  # The key had no state in between, or was registered for an earlier time.
    entry.dirty = True
    del entry[CLEANUP_AT]
    for name, ttl in cursor.expiring.items():
        value = entry.get(name)
        if value is None:
            continue
        kept, next_ms = _purged(value, name in cursor.pageable, ttl, cursor.clock.now_ms())
        if kept is None:
            del entry[name]
            if value.__class__ in PAGED:
                cursor.dropped.append(value)
            continue
        entry[name] = kept
        ttl.schedule(next_ms)


def _purged(value: Any, is_collection: bool, ttl: Ttl, now_ms: int) -> tuple[Any, int]:
    """What is left of a state, None if it is nothing, and when to look again."""
    if value.__class__ is PagedList:
        return _purged_pages(value, ttl, now_ms)
    if value.__class__ is PagedMap:
        return _swept(value, ttl, now_ms)
    if not is_collection:
        return (None, 0) if ttl.expired(value) else (value, value[1] + ttl.ttl_ms)
    if value.__class__ is dict:
        kept: Any = {key: cell for key, cell in value.items() if not ttl.expired(cell)}
        stamps = [cell[1] for cell in kept.values()]
    else:
        kept = [cell for cell in value if not ttl.expired(cell)]
        stamps = [cell[1] for cell in kept]
    return (kept, min(stamps) + ttl.ttl_ms) if kept else (None, 0)


def _purged_pages(items: PagedList, ttl: Ttl, now_ms: int) -> tuple[Any, int]:
    """Elements are older in front, so pages are dropped there, until one has an element that is still alive."""
    for _ in range(max(_PAGES_AT_ONCE, items.pages // 16)):
        alive = [cell[1] for cell in items.first_page() if not ttl.expired(cell)]
        if alive:
            return items, max(alive) + ttl.ttl_ms
        if not items.drop_first_page():
            return None, 0
    return items, now_ms


def _swept(cells: PagedMap, ttl: Ttl, now_ms: int) -> tuple[Any, int]:
    """Looks at some buckets each time, and at all of them in about twice the time to live."""
    for index in cells.next_buckets(max(_PAGES_AT_ONCE, cells.buckets // 16)):
        for key, cell in cells.bucket_items(index):
            if ttl.expired(cell):
                cells.pop(key)
    if not len(cells):
        return None, 0
    return cells, now_ms
