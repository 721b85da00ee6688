"""The pages of one large value, found by their index: appending a page never rewrites a list of page numbers.

Page numbers are reserved in extents of 8, 8, 16, 32, … consecutive numbers, so a value with n pages stores about log2(n)
numbers. Used by `paged_list.py`, `paged_map.py` and the timers of a scope (`operators/far_timers.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from emberflow.errors import CorruptData
from emberflow.events.codecs import decode, encode
from emberflow.state.pages import PageStore

_LOST = (
    "restore the checkpoint directory from a backup taken while the job was stopped; without one, start with an empty one"
    " and another output folder, from the last savepoint if there is one"
)
_FIRST = 3
"""The first extent has 2 ** _FIRST numbers."""


class PageRun:
    """Pages 0 to `length` - 1, in extents that begin at `bases`."""

    __slots__ = ("bases", "length")

    def __init__(self, bases: tuple[int, ...] = (), length: int = 0) -> None:
        self.bases = bases
        self.length = length

    def number(self, index: int) -> int:
        extent = (index >> _FIRST).bit_length()
        return self.bases[extent] + index - (1 << (extent + _FIRST - 1) if extent else 0)

    def extend(self, store: PageStore, length: int) -> None:
        """Makes room for `length` pages."""
        while length > self._room():
            extent = len(self.bases)
            size = 1 << (extent + _FIRST - 1 if extent else _FIRST)
            self.bases = (*self.bases, store.reserve_pages(size))
        self.length = max(self.length, length)

    def append(self, store: PageStore, content: Any) -> None:
        self.extend(store, self.length + 1)
        self.write(store, self.length - 1, content)

    def write(self, store: PageStore, index: int, content: Any) -> None:
        store.put_page(self.number(index), encode(content))

    def read(self, store: PageStore | None, index: int, what: str) -> Any:
        """The content of a page of `what`. Raises CorruptData if it is missing or damaged."""
        assert store is not None, "a scope with pages has a store"
        data = store.get_page(self.number(index))
        if data is None:
            raise CorruptData(f"page {self.number(index)} of {what} is missing", way_out=_LOST)
        try:
            return decode(data)
        except CorruptData as error:
            raise CorruptData(
                f"page {self.number(index)} of {what} cannot be decoded",
                cause=error.cause or error.message,
                way_out=_LOST,
            ) from error

    def numbers(self) -> Iterator[int]:
        return map(self.number, range(self.length))

    def remove(self, store: PageStore) -> None:
        for number in self.numbers():
            store.remove_page(number)

    def _room(self) -> int:
        extents = len(self.bases)
        return 1 << (extents + _FIRST - 1) if extents else 0
