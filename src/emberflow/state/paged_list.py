"""A list that is stored in pages: appending writes what was appended, whatever the length of the list.

A list state begins as a plain list in its key's entry. When the entry is stored and the list is large, `page_out`
replaces it; handles use both alike (`append`, `len`, iteration). Reading the list reads all its pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from emberflow.events.stored_types import stored_type
from emberflow.state.page_run import PageRun
from emberflow.state.pages import PAGE_BYTES, PageStore
from emberflow.state.sizes import measure

_PAGE_LIMIT_BYTES = 8 * PAGE_BYTES
"""A list that grows a lot at once gets pages of this size, so that it is read in fewer steps."""


@stored_type(write=lambda items: items.record(), read=lambda _, record: PagedList(*record))
class PagedList:
    """Pages of items, and a `tail` that is too small for a page."""

    __slots__ = ("_covered", "_dropped", "_first", "_run", "store", "tail")

    def __init__(
        self,
        tail: list[Any] | None = None,
        bases: tuple[int, ...] = (),
        pages: int = 0,
        covered: int = 0,
        first: int = 0,
    ) -> None:
        self.tail: list[Any] = [] if tail is None else tail
        self.store: PageStore | None = None
        self._run = PageRun(bases, pages)
        self._covered = covered
        """The number of items in pages."""
        self._first = first
        """Pages before this one were dropped."""
        self._dropped: list[int] = []

    def append(self, item: Any) -> None:
        self.tail.append(item)

    def __len__(self) -> int:
        return self._covered + len(self.tail)

    def __iter__(self) -> Iterator[Any]:
        for index in range(self._first, self._run.length):
            yield from self._page(index)
        yield from self.tail

    @property
    def pages(self) -> int:
        return self._run.length - self._first

    def first_page(self) -> list[Any]:
        """The items of the first page, or the tail if there are no pages."""
        return self._page(self._first) if self._first < self._run.length else self.tail

    def drop_first_page(self) -> bool:
        """Removes the items of the first page, or of the tail; False if nothing is left."""
        if self._first < self._run.length:
            self._covered -= len(self._page(self._first))
            self._dropped.append(self._run.number(self._first))
            self._first += 1
        else:
            self.tail = []
        return len(self) > 0

    def flush(self, store: PageStore) -> None:
        """Moves the tail to pages, if it is worth a page; before the entry is stored."""
        self.store = store
        for number in self._dropped:
            store.remove_page(number)
        self._dropped.clear()
        if not self.tail or measure(self.tail) < PAGE_BYTES:
            return
        for part in _parts(self.tail):
            self._run.append(store, part)
            self._covered += len(part)
        self.tail = []

    def remove_pages(self, store: PageStore) -> None:
        for index in range(self._first, self._run.length):
            store.remove_page(self._run.number(index))
        for number in self._dropped:
            store.remove_page(number)

    def whole(self) -> list[Any]:
        """The items as a plain list."""
        return list(self)

    def record(self) -> tuple[Any, ...]:
        """What is stored in the entry."""
        return self.tail, self._run.bases, self._run.length, self._covered, self._first

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PagedList) and self.record() == other.record()

    def _page(self, index: int) -> list[Any]:
        return self._run.read(self.store, index, "a list state")


def _parts(items: list[Any]) -> Iterator[list[Any]]:
    start, size = 0, 0
    for index, item in enumerate(items):
        size += measure(item)
        if size >= _PAGE_LIMIT_BYTES:
            yield items[start : index + 1]
            start, size = index + 1, 0
    if start < len(items):
        yield items[start:]


def page_out(items: list[Any]) -> PagedList:
    """A paged list with the content of a list."""
    return PagedList(items)
