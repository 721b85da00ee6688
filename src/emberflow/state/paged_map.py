"""A dictionary that is stored in pages: reading or writing one of its keys costs one page, whatever the number of keys.

Linear hashing: keys are spread over buckets, one page each; when there are too many keys for the buckets, buckets are
split one at a time, and only those that are split are rewritten. Every value is stored with the number of its insertion,
so iteration has the order of a plain dictionary.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from enum import Enum
from numbers import Number
from typing import Any
from uuid import UUID

from emberflow.events.key_groups import stable_hash
from emberflow.events.stored_types import stored_type
from emberflow.state.page_run import PageRun
from emberflow.state.pages import PAGE_BYTES, PageStore
from emberflow.state.sizes import measure

_ATOMS = frozenset({str, int, float, bool, bytes, type(None), date, datetime, time, timedelta, UUID})
_TUPLE_EQ: Any = getattr(tuple, "__eq__")  # noqa: B009 - a type checker cannot know it
_STR_EQ: Any = getattr(str, "__eq__")  # noqa: B009
_MISSING: Any = object()
_KEPT_BUCKETS = 16_384
"""So many buckets stay in memory after they were stored, as long as their key does."""

Bucket = dict[Any, tuple[int, Any]]
"""key -> number of its insertion, value"""


def place_of(key: Any) -> int:
    """A hash that is the same for equal keys in every process. Objects that define equality themselves share one place,
    because their fields do not tell which of them are equal."""
    kind: Any = key.__class__
    if kind is str or kind is int:
        return stable_hash(key)
    return stable_hash(key) if _is_plain(key) else 0


def _is_plain(key: Any) -> bool:
    kind: Any = key.__class__
    if kind in _ATOMS or isinstance(key, Number | Enum):
        return True
    own_eq: Any = kind.__eq__
    if own_eq is _TUPLE_EQ:
        return all(map(_is_plain, key))
    if kind.__module__ == "numpy" and hasattr(key, "item"):
        # numpy.str_("x") equals "x". A datetime64 may equal another one whose items are of another class.
        return key.item().__class__ in (str, bytes, bool)
    return own_eq is _STR_EQ


@stored_type(write=lambda mapping: mapping.record(), read=lambda _, record: PagedMap(*record))
class PagedMap:
    """`count` keys in `buckets` buckets. Buckets in memory are written when the entry is stored, if they changed."""

    __slots__ = ("_buckets", "_changed", "_count", "_held", "_inserted", "_run", "_swept", "store")

    def __init__(
        self,
        bases: tuple[int, ...] = (),
        buckets: int = 1,
        count: int = 0,
        inserted: int = 0,
        swept: int = 0,
    ) -> None:
        self.store: PageStore | None = None
        self._run = PageRun(bases, buckets if bases else 0)
        self._buckets = buckets
        self._count = count
        self._inserted = inserted
        self._swept = swept
        """The bucket at which the next cleanup begins."""
        self._held: dict[int, Bucket] = {}
        self._changed: set[int] = set()

    # as a dictionary

    def get(self, key: Any, default: Any = None) -> Any:
        found = self._bucket(self._index(place_of(key))).get(key)
        return default if found is None else found[1]

    def __getitem__(self, key: Any) -> Any:
        found = self.get(key, _MISSING)
        if found is _MISSING:
            raise KeyError(key)
        return found

    def __contains__(self, key: Any) -> bool:
        return key in self._bucket(self._index(place_of(key)))

    def __setitem__(self, key: Any, value: Any) -> None:
        index = self._index(place_of(key))
        bucket = self._bucket(index)
        found = bucket.get(key)
        if found is None:
            bucket[key] = (self._inserted, value)
            self._inserted += 1
            self._count += 1
        else:
            bucket[key] = (found[0], value)
        self._changed.add(index)

    def pop(self, key: Any, default: Any = None) -> Any:
        index = self._index(place_of(key))
        found = self._bucket(index).pop(key, None)
        if found is None:
            return default
        self._count -= 1
        self._changed.add(index)
        return found[1]

    def __delitem__(self, key: Any) -> None:
        if self.pop(key, _MISSING) is _MISSING:
            raise KeyError(key)

    def __len__(self) -> int:
        return self._count

    def items(self) -> list[tuple[Any, Any]]:
        """All keys and values in the order of insertion."""
        found = [(number, key, value) for key, (number, value) in self._all()]
        found.sort(key=lambda item: item[0])
        return [(key, value) for _, key, value in found]

    def values(self) -> list[Any]:
        return [value for _, value in self.items()]

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self.items())

    def any_order(self) -> Iterator[Any]:
        """The values bucket by bucket, for whoever needs only some of them."""
        return (value for _, (_, value) in self._all())

    def bucket_items(self, index: int) -> list[tuple[Any, Any]]:
        """The keys and values of one bucket, for whoever goes through a large map in small steps."""
        return [(key, value) for key, (_, value) in self._bucket(index).items()]

    def next_buckets(self, count: int) -> list[int]:
        """Buckets to be looked at next by whoever goes through the map again and again."""
        found = [(self._swept + step) % self._buckets for step in range(min(count, self._buckets))]
        self._swept = (found[-1] + 1) % self._buckets
        return found

    @property
    def buckets(self) -> int:
        return self._buckets

    # storing

    def flush(self, store: PageStore) -> None:
        """Writes the buckets that changed; before the entry is stored."""
        self.store = store
        if self._changed:
            self._resize()
            self._run.extend(store, self._buckets)
            for index in sorted(self._changed):
                if index < self._buckets:
                    # Also without keys: a missing page is always an error.
                    self._run.write(store, index, self._held[index])
                else:
                    store.remove_page(self._run.number(index))
                    del self._held[index]
            self._run.length = self._buckets
            self._changed.clear()
        if len(self._held) > _KEPT_BUCKETS:
            self._held.clear()

    def remove_pages(self, store: PageStore) -> None:
        self._run.remove(store)

    def whole(self) -> dict[Any, Any]:
        """The content as a plain dictionary."""
        return dict(self.items())

    def record(self) -> tuple[Any, ...]:
        """What is stored in the entry."""
        if self._changed:
            # Not flushed: only to find out whether the values can be stored.
            return self._held, self._buckets, self._count, self._inserted, self._swept
        return self._run.bases, self._buckets, self._count, self._inserted, self._swept

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PagedMap) and self.record() == other.record()

    # buckets

    def _index(self, place: int) -> int:
        return address(place, self._buckets)

    def _bucket(self, index: int) -> Bucket:
        found = self._held.get(index)
        if found is None:
            found = (
                Bucket() if index >= self._run.length else self._run.read(self.store, index, "a map state")
            )
            self._held[index] = found
        return found

    def _all(self) -> Iterator[tuple[Any, tuple[int, Any]]]:
        for index in range(self._buckets):
            held = self._held.get(index)
            if held is None and index < self._run.length:
                # Not kept: whoever reads everything need not have it in memory twice.
                held = self._run.read(self.store, index, "a map state")
            if held:
                yield from held.items()

    def _resize(self) -> None:
        """Splits buckets while they are too large on average, or starts over with fewer where most keys are gone."""
        sizes = [(len(bucket), measure(bucket)) for index in self._changed if (bucket := self._held[index])]
        keys, size = sum(count for count, _ in sizes), sum(size for _, size in sizes)
        wanted = max(1, min(self._count, self._count * size // (max(1, keys) * PAGE_BYTES)))
        if keys and wanted >= 2 * self._buckets:
            self._spread(wanted)
        elif keys and wanted > self._buckets:
            for _ in range(min(wanted - self._buckets, 2 * len(self._changed))):
                self._split()
        elif 4 * self._count < self._buckets:
            self._spread(max(1, self._count // 2))

    def _split(self) -> None:
        new = self._buckets
        old = new - (1 << (new.bit_length() - 1))
        bucket = self._bucket(old)
        self._buckets += 1
        moving = {key: cell for key, cell in bucket.items() if self._index(place_of(key)) == new}
        for key in moving:
            del bucket[key]
        self._held[new] = moving
        self._changed.update((old, new))

    def _spread(self, buckets: int) -> None:
        """Distributes all keys over another number of buckets."""
        cells = list(self._all())
        before, self._buckets = self._buckets, buckets
        self._held = {index: {} for index in range(max(before, buckets))}
        for key, cell in cells:
            self._held[self._index(place_of(key))][key] = cell
        self._changed = set(self._held)


def address(place: int, buckets: int) -> int:
    """The bucket of a place, by linear hashing."""
    mask = (1 << buckets.bit_length()) - 1
    index = place & mask
    return index if index < buckets else place & (mask >> 1)


def page_out(items: dict[Any, Any]) -> PagedMap:
    """A paged map with the content of a dictionary."""
    made = PagedMap()
    for key, value in items.items():
        made[key] = value
    return made
