"""Large values of a key's memory, stored separately: the cost of a write depends on the field that is written.

`Fields` is a tree of names (`memory.py`). When its key is stored, values above a size move to their own pages and are
replaced by a `PageRef`; they are read again on access. A list grows by pages: appending writes only what was appended.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from emberflow.errors import CorruptData
from emberflow.events.codecs import decode, encode
from emberflow.events.stored_types import stored_type
from emberflow.state.sizes import measure

PAGE_BYTES = 2048
"""Values smaller than this stay with their key."""


class PageStore(Protocol):
    """Numbered blobs next to a scope's entries."""

    def get_page(self, number: int) -> bytes | None: ...

    def put_page(self, number: int | None, data: bytes) -> int:
        """Writes a page, a new one if `number` is None; returns its number."""
        ...

    def remove_page(self, number: int) -> None:
        """Removes a page, if there is one."""
        ...

    def reserve_pages(self, count: int) -> int:
        """Reserves consecutive numbers for new pages; returns the first one. They are never handed out again."""
        ...


@stored_type()
@dataclass(frozen=True, slots=True)
class PageRef:
    """Replaces a value that is stored in pages. A list may have a `tail` that is too small for a page."""

    numbers: tuple[int, ...]
    size: int
    is_list: bool = False
    tail: list[Any] = field(default_factory=list[Any])


@dataclass(slots=True)
class _Paged:
    """The pages of a value in memory; `covered` is the number of list items that are in pages."""

    numbers: list[int]
    covered: int = 0


@stored_type(write=dict, read=lambda _, tree: Node(tree))
class Node(dict[str, Any]):
    """A nested object. A plain dictionary in the tree is a value that an action stored as a whole."""

    __slots__ = ()


@stored_type(write=lambda fields: fields.record(), read=lambda _, record: Fields(*record))
class Fields(dict[str, Any]):
    """The root of a tree. `touched` has the paths written since the key was last stored."""

    __slots__ = ("_paged", "_replaced_trees", "store", "touched", "unread")

    def __init__(self, tree: dict[str, Any] | None = None, unread: bool = False) -> None:
        super().__init__(tree or ())
        self.unread = unread
        """Whether values may be on pages that have not been read yet."""
        self._paged: dict[str, _Paged] = {}
        self.touched: dict[str, int | None] = {}
        """path -> first appended item, or None if the value was written as a whole"""
        self._replaced_trees: set[str] = set()
        self.store: PageStore | None = None

    def touch(self, path: str, appended_at: int | None = None) -> None:
        if appended_at is None or path not in self.touched:
            self.touched[path] = appended_at

    def replaces(self, path: str, before: Any) -> None:
        """Called when a value or nested object is replaced: its pages are removed when the key is stored, unless it returns."""
        if before.__class__ is PageRef:
            self._paged[path] = _Paged(list(before.numbers), 1 if before.is_list else 0)
        elif before.__class__ is Node:
            self._replaced_trees.add(path)
            for below in list(_stored_apart(before, f"{path}.")):
                self.replaces(below, _at(before, below[len(path) + 1 :]))

    def load(self, path: str) -> Any:
        """Reads a value and puts it in its place."""
        *parents, name = path.split(".")
        node: dict[str, Any] = self
        for part in parents:
            node = node[part]
        ref: PageRef = node[name]
        node[name] = value = self._read(path, ref)
        return value

    def load_all(self) -> None:
        """Reads all pages, for callers that cannot access the store later."""
        if not self.unread:
            return
        self.unread = False
        for path in list(_stored_apart(self, "")):
            self.load(path)

    def marks(self) -> tuple[dict[str, int | None], set[str]]:
        """What is to be written; for callers that undo changes only to store the tree without them."""
        return dict.fromkeys(self.touched), set(self._replaced_trees)

    def mark_again(self, marks: tuple[dict[str, int | None], set[str]]) -> None:
        self.touched.update(marks[0])
        self._replaced_trees.update(marks[1])

    def flush(self, store: PageStore) -> None:
        """Moves large values that were touched to pages, before the key is stored."""
        self.store = store
        for path, appended_at in self.touched.items():
            self._write(store, path, appended_at)
        self.touched.clear()
        for tree in self._replaced_trees:
            for path in [known for known in self._paged if known.startswith(f"{tree}.")]:
                value = _at(self, path)
                if value is None or value.__class__ is Node:
                    self._drop(store, path)
        self._replaced_trees.clear()

    def _read(self, path: str, ref: PageRef) -> Any:
        assert self.store is not None, "a scope with pages has a store"
        parts: list[Any] = []
        for number in ref.numbers:
            data = self.store.get_page(number)
            if data is None:
                raise CorruptData(f"page {number} of the memory field {path!r} is missing")
            parts.append(decode(data))
        if not ref.is_list:
            self._paged[path] = _Paged(list(ref.numbers))
            return parts[0]
        items = [item for part in parts for item in part]
        self._paged[path] = _Paged(list(ref.numbers), len(items))
        items.extend(ref.tail)
        return items

    def _write(self, store: PageStore, path: str, appended_at: int | None) -> None:
        value = _at(self, path)
        if value.__class__ is PageRef:
            # Touched and then undone: its pages are still valid.
            return
        if value is None or value.__class__ is Node:
            self._drop(store, path)
            return
        paged = self._paged.get(path)
        if value.__class__ is list and (paged is None or paged.covered):
            keeps = paged is not None and appended_at is not None and appended_at >= paged.covered
            if paged is None or not keeps:
                self._drop(store, path)
                paged = _Paged([])
            pending = value[paged.covered :]
            if measure(pending) >= PAGE_BYTES:
                paged.numbers.append(store.put_page(None, encode(pending)))
                paged.covered = len(value)
            if paged.numbers:
                self._paged[path] = paged
        elif measure(value) >= PAGE_BYTES:
            number = paged.numbers[0] if paged is not None and not paged.covered else None
            if number is None:
                self._drop(store, path)
            self._paged[path] = _Paged([store.put_page(number, encode(value))])
        else:
            self._drop(store, path)

    def _drop(self, store: PageStore, path: str) -> None:
        paged = self._paged.pop(path, None)
        for number in paged.numbers if paged is not None else ():
            store.remove_page(number)

    def _stored(self) -> dict[str, Any]:
        """The tree with references instead of values that are in pages."""
        tree: dict[str, Any] = dict(self)
        for path, paged in self._paged.items():
            *parents, name = path.split(".")
            node = tree
            for part in parents:
                copied = Node(node[part])
                node[part] = copied
                node = copied
            value = node[name]
            if value.__class__ is PageRef:
                continue
            if paged.covered:
                ref = PageRef(tuple(paged.numbers), measure(value), True, value[paged.covered :])
            else:
                ref = PageRef(tuple(paged.numbers), measure(value))
            node[name] = ref
        return tree

    def record(self) -> tuple[dict[str, Any], bool]:
        """What is stored: the tree, and whether some of its values are on pages."""
        return self._stored() if self._paged else dict(self), bool(self._paged) or self.unread


def _stored_apart(node: dict[str, Any], prefix: str) -> Iterator[str]:
    for name, value in node.items():
        if value.__class__ is Node:
            yield from _stored_apart(value, f"{prefix}{name}.")
        elif value.__class__ is PageRef:
            yield prefix + name


def _at(node: Any, path: str) -> Any:
    """The value at a path below a nested object; None if there is none."""
    for part in path.split("."):
        if not isinstance(node, Fields | Node):
            return None
        node = node.get(part)
    return node
