"""How a key group's scope is stored where every access is a round trip (Spark's state store).

One *hot* blob per group holds event time, the next timers and the keys used lately: it is read and written once per
batch, whatever the number of keys. When it grows too large, the least recently used keys move to *cold* buckets, which
are read only when one of their keys is needed again. Later timers and large values are in *pages*. So the cost of a batch
depends on what it accesses, not on the size of the group.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from emberflow.errors import CheckpointUnusable, CorruptData, NotSerializable
from emberflow.event_time.clock import Clock
from emberflow.events.codecs import encode
from emberflow.events.key_groups import stable_hash
from emberflow.operators.scope import SavedScope, Scope
from emberflow.operators.watermarks.watermark_merge import ChannelId
from emberflow.state.blame import decode_state, unserializable_state
from emberflow.state.entry import Entry

VERSION = 3
"""1 had no pages, 2 had pages for agents' memory only."""
HOT_LIMIT_BYTES = 32 * 1024
HOT_TIMERS = 512
"""The approximate number of timers of a kind in the hot blob."""
_MOST_TOMBSTONES = 256
"""With more of them, keys are removed from the buckets at hand."""
_LAST_PAGE = 2**31 - 1
"""Page numbers are 32-bit integers in Spark's state."""
BUCKETS = 256


_Changes = dict[int, dict[Any, dict[str, Any] | None]]
"""bucket -> key -> its values, None if the key is removed"""


class ColdStore(Protocol):
    """Buckets of one group by number."""

    def get(self, bucket: int) -> bytes | None: ...

    def put(self, bucket: int, data: bytes) -> None: ...

    def remove(self, bucket: int) -> None: ...


class GroupLayout:
    """One group's stored form, from load to commit."""

    def __init__(
        self, hot: bytes | None, cold: ColdStore, step: str = "", hot_limit: int = HOT_LIMIT_BYTES
    ) -> None:
        self._step = step
        self._cold = cold
        self._hot_limit = hot_limit
        self._buckets: dict[int, dict[Any, dict[str, Any]]] = {}
        self._tombstones: set[Any] = set()
        self._has_cold = False
        self._next_page = BUCKETS
        self._paged = False
        """Whether lists or maps of some key are in pages."""
        self._saved: SavedScope | None = None
        self._hot: dict[Any, Entry] = {}
        self.armed_ms: int | None = None
        """The engine's own timer for the group's next processing-time timer, if one is set."""
        if hot is not None:
            version, *body = decode_state(hot, step, _hot_entries)
            if version not in (1, 2, VERSION):
                raise CorruptData(
                    f"keyed state of format {version} cannot be read", way_out="update emberflow"
                )
            if version >= 3:
                self._paged = body.pop()
            if version >= 2:
                self._next_page = body.pop()
            self._saved, self._has_cold, self.armed_ms, entries, tombstones = body
            self._hot = {key: self._entry(values) for key, values in entries.items()}
            self._tombstones = set(tombstones)
        self._from_cold: set[Any] = set()

    def scope(self, channels: list[ChannelId], idle_ms: dict[int, int], clock: Clock, owns: Any) -> Scope:
        return Scope(
            channels=channels,
            idle_ms=idle_ms,
            clock=clock,
            saved=self._saved,
            entries=self._hot,
            loader=self,
            pages=self,
            owns=owns,
            timer_limit=HOT_TIMERS,
        )

    def load(self, key: Any) -> Entry | None:
        """A key that is not hot."""
        if not self._has_cold or key in self._tombstones:
            return None
        found = self._bucket(_bucket_of(key)).get(key)
        if found is None:
            return None
        self._from_cold.add(key)
        return self._entry(found)

    def _entry(self, values: dict[str, Any]) -> Entry:
        entry = Entry(values)
        if self._paged:
            entry.bind_pages(self)
        return entry

    @property
    def saved(self) -> SavedScope | None:
        """The group's scope as it was stored; None if it never was."""
        return self._saved

    def all_entries(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Every key of the group, hot or cold, for example for a savepoint."""
        yield from self._hot.items()
        for number in range(BUCKETS) if self._has_cold else ():
            for key, values in self._bucket(number).items():
                if key not in self._hot and key not in self._tombstones:
                    yield key, values

    # pages share the numbers of the cold store with its buckets

    def get_page(self, number: int) -> bytes | None:
        return self._cold.get(number)

    def put_page(self, number: int | None, data: bytes) -> int:
        chosen = self._next_page if number is None else number
        self._next_page = max(self._next_page, chosen + 1)
        self._cold.put(chosen, data)
        return chosen

    def remove_page(self, number: int) -> None:
        self._cold.remove(number)

    def reserve_pages(self, count: int) -> int:
        first = self._next_page
        if first + count > _LAST_PAGE:
            raise CheckpointUnusable(
                f"step {self._step!r} has used all page numbers of a key group",
                way_out="start the job from a savepoint, in a new checkpoint directory: pages are numbered from the"
                " beginning again",
                committed="nothing of the current batch was committed",
            )
        self._next_page += count
        self._paged = True
        return first

    def commit(self, scope: Scope) -> bytes | None:
        """Writes cold buckets as needed; returns the new hot blob, or None if nothing changed."""
        entries = scope.entries
        touched = [key for key, entry in entries.items() if entry.dirty]
        timers = (scope.event_timers, scope.processing_timers, scope.cleanup)
        moved = scope.channels.changed or any(queue.changed for queue in timers)
        if moved or scope.dropped:
            scope.flush(self)
        saved = scope.saved()
        if not touched and not scope.removed and not moved and saved == self._saved:
            return None
        self._put_touched(scope, touched)
        if self._has_cold:
            self._tombstones.update(scope.removed)
        scope.removed.clear()
        for key in self._from_cold:
            entries.pop(key, None)
        self._from_cold.clear()
        for key in [key for key, entry in entries.items() if not entry]:
            del entries[key]
        if len(self._tombstones) > _MOST_TOMBSTONES:
            self._bury()
        data = self._encode(saved, entries)
        if len(data) > self._hot_limit and (len(entries) > 1 or self._tombstones):
            # What is not in entries cannot leave with them.
            size = len(data) - len(encode(saved))
            if size > self._hot_limit:
                self._cool_down(entries, size)
                data = self._encode(saved, entries)
        self._saved = saved
        return data

    def _put_touched(self, scope: Scope, touched: list[Any]) -> None:
        entries, pageable = scope.entries, scope.pageable
        for key in touched:
            # Most recently used last. Another key may be equal but not identical (1 and True): keep the entry.
            entry = entries.pop(key)
            entry.dirty = False
            try:
                entry.write_pages(self, pageable)
            except NotSerializable as error:
                raise unserializable_state(self._step, {key: entry}, error) from error
            if entry:
                entries[key] = entry
                self._from_cold.discard(key)
                self._tombstones.discard(key)
            elif self._has_cold:
                self._tombstones.add(key)

    def _encode(self, saved: SavedScope, entries: dict[Any, Entry]) -> bytes:
        plain = {key: dict(entry) for key, entry in entries.items()}
        try:
            tombstones = list(self._tombstones)
            body = (saved, self._has_cold, self.armed_ms, plain, tombstones, self._next_page, self._paged)
            return encode((VERSION, *body))
        except NotSerializable as error:
            raise unserializable_state(self._step, plain, error) from error

    def _cool_down(self, entries: dict[Any, Entry], size: int) -> None:
        """Moves all but the most recent quarter of the limit to cold buckets."""
        keep = min(len(entries) // 2, max(1, len(entries) * (self._hot_limit // 4) // size))
        leaving = list(entries)[: len(entries) - keep]
        self._has_cold = True
        changed: _Changes = {}
        for key in leaving:
            changed.setdefault(_bucket_of(key), {})[key] = dict(entries.pop(key))
        for key in self._tombstones:
            changed.setdefault(_bucket_of(key), {})[key] = None
        self._tombstones.clear()
        self._change_buckets(changed)

    def _bury(self) -> None:
        """Removes keys from buckets that have been read anyway, so that little is kept of many removed keys."""
        changed: _Changes = {}
        for key in self._tombstones:
            number = _bucket_of(key)
            if number in self._buckets:
                changed.setdefault(number, {})[key] = None
        self._tombstones.difference_update(key for keys in changed.values() for key in keys)
        self._change_buckets(changed)

    def _change_buckets(self, changed: _Changes) -> None:
        for number, items in changed.items():
            bucket = self._bucket(number)
            for key, values in items.items():
                if values is None:
                    bucket.pop(key, None)
                else:
                    bucket[key] = values
            if bucket:
                self._cold.put(number, encode(bucket))
            else:
                self._cold.remove(number)

    def _bucket(self, number: int) -> dict[Any, dict[str, Any]]:
        found = self._buckets.get(number)
        if found is None:
            data = self._cold.get(number)
            found = self._buckets[number] = {} if data is None else decode_state(data, self._step, _as_is)
        return found


def _hot_entries(blob: Any) -> Any:
    return blob[4]


def _as_is(bucket: Any) -> Any:
    return bucket


def _bucket_of(key: Any) -> int:
    # Different bits than those that select the group, or a group's keys would share few buckets.
    return (stable_hash(key) * 0x9E3779B1 & 0xFFFFFFFF) >> 24
