"""Agents' memory: a tree of named values, addressed by dot paths.

`Memory` is the tree of one key (short-term) or one run (sensory); actions use it through `memory_object.py`. Every write
is recorded in a journal, so that a failed action leaves no changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from emberflow.errors import InvalidArgument, MemoryTooLarge, NotSerializable, shorten
from emberflow.state.pages import Fields, Node, PageRef
from emberflow.state.sizes import measure


class _Missing:
    __slots__ = ()


_MISSING = _Missing()
_APPENDED = _Missing()
_NONE: list[str] = []

Change = tuple[Any, Any, Any]
"""container, name (or _APPENDED), previous value"""


Write = tuple[str, str, str, Any]
"""kind of memory, name of the method, path, value"""


class Journal:
    """What one action changed, newest last: `changes` undo it on these very objects, `writes` repeat it on other copies
    of them."""

    __slots__ = ("_lists", "changes", "reads", "writes")

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.writes: list[Write] = []
        self.reads: dict[tuple[str, str], Any] = {}
        """Kind of memory and path -> value that was read last, as JSON has it; only if reads are observed."""
        self._lists: set[int] = set()

    def wrote(self, kind: str, method: str, path: str, value: Any) -> None:
        if value.__class__ is list and method == "set":
            self._lists.add(id(value))
        self.writes.append((kind, method, path, value))

    def appended(self, kind: str, path: str, value: Any, items: list[Any]) -> None:
        """A list that this action itself has set already contains what was appended to it."""
        if id(items) not in self._lists:
            self.writes.append((kind, "append", path, value))

    def undo(self) -> None:
        """The action has failed: undoes everything."""
        self.suspend()
        self.clear()

    def clear(self) -> None:
        """The action has ended: keeps everything."""
        self.changes.clear()
        self.writes.clear()
        self._lists.clear()
        if self.reads:
            self.reads = {}

    def suspend(self) -> list[Change]:
        """Undoes everything temporarily; returns what redoes it."""
        changes, self.changes = self.changes, []
        return swap(changes)

    def proceed(self, undone: list[Change]) -> None:
        self.changes = swap(undone)


def swap(changes: list[Change]) -> list[Change]:
    """Applies changes, newest first; returns the changes that undo them."""
    back: list[Change] = []
    for container, name, before in reversed(changes):
        if name is _APPENDED:
            if before is _MISSING:
                back.append((container, _APPENDED, container.pop()))
            else:
                container.append(before)
                back.append((container, _APPENDED, _MISSING))
            continue
        back.append((container, name, container.get(name, _MISSING)))
        if before is _MISSING:
            container.pop(name, None)
        else:
            container[name] = before
    return back


class Memory:
    """One tree with its limit. `stamps` (path -> last use, in ms) is kept only with a time to live."""

    __slots__ = (
        "_clock",
        "_refresh",
        "_ttl_ms",
        "changed",
        "journal",
        "kind",
        "limit",
        "root",
        "stamps",
        "totals",
    )

    def __init__(
        self,
        kind: str,
        root: Fields,
        journal: Journal,
        limit: int,
        totals: dict[str, Any],
        changed: Callable[[], None] | None = None,
        *,
        ttl_ms: int = 0,
        refresh_on_read: bool = False,
        stamps: dict[str, int] | None = None,
        clock: Any = None,
    ) -> None:
        self.kind = kind
        self.root = root
        self.journal = journal
        self.limit = limit
        self.totals = totals
        """Holds the tree's size under `bytes`, so that the journal can restore it."""
        self.changed = changed
        self._ttl_ms = ttl_ms
        self._refresh = refresh_on_read
        self._clock = clock
        self.stamps: dict[str, int] = {} if stamps is None else stamps

    def get(self, path: str) -> Any:
        node: Any = self.root
        if "." not in path:
            found = node.get(path)
        else:
            found = None
            for part in path.split("."):
                if node.__class__ is not Node and node is not self.root:
                    return None
                found = node = node.get(part)
                if found is None:
                    return None
        if self._ttl_ms and found is not None and found.__class__ is not Node and not self._alive(path):
            return None
        return self.root.load(path) if found.__class__ is PageRef else found

    def exists(self, path: str) -> bool:
        """Whether there is a nested object or a value, which may be None."""
        node: Any = self.root
        *parts, name = path.split(".")
        for part in parts:
            node = node.get(part)
            if node.__class__ is not Node:
                return False
        return name in node and self.alive(path, node[name])

    def set(self, path: str, value: Any) -> None:
        """All or nothing: invalid writes are rejected before the tree changes."""
        root = self.root
        node: dict[str, Any] = root
        in_the_way, parts, name = "", _NONE, path
        if "." in path or not path:
            node, [*parts, name], in_the_way = self._walk(path)
        size = self._measure(path, value)
        before = _MISSING if parts else node.get(name, _MISSING)
        if before.__class__ is Node and value.__class__ is not Node:
            raise self._is_object(path, before)
        if before is _MISSING:
            size += len(name) + sum(map(len, parts))
        else:
            size -= _size(before)
        self._grow(path, size)
        if in_the_way:
            self._remove(node, parts[0], in_the_way)
        changes = self.journal.changes
        for part in parts:
            child = Node()
            changes.append((node, part, _MISSING))
            node[part] = child
            node = child
        changes.append((node, name, before))
        node[name] = value
        if before.__class__ is PageRef or before.__class__ is Node:
            root.replaces(path, before)
        root.touched[path] = None
        self.journal.wrote(self.kind, "set", path, value)
        if self._ttl_ms:
            if before.__class__ is Node:
                self._forget_stamps(path)
            self._stamp(path)
        if self.changed is not None:
            self.changed()

    def append(self, path: str, value: Any) -> None:
        items = self.get(path)
        if items is None:
            self.set(path, [value])
            return
        if items.__class__ is not list:
            raise InvalidArgument(
                f"{self.kind} memory: {path!r} contains a {type(items).__name__}, so nothing can be appended to it",
                way_out="append() to a new path, or set() a list first",
            )
        self._grow(path, self._measure(path, value))
        self.root.touch(path, len(items))
        items.append(value)
        self.journal.changes.append((items, _APPENDED, _MISSING))
        self.journal.appended(self.kind, path, value, items)
        if self._ttl_ms:
            self._stamp(path)
        if self.changed is not None:
            self.changed()

    def delete(self, path: str) -> bool:
        node: Any = self.root
        *parts, name = path.split(".")
        for part in parts:
            node = node.get(part)
            if node.__class__ is not Node:
                return False
        if name not in node:
            return False
        was_there = node[name].__class__ is Node or not self._expired(path)
        self._remove(node, name, path)
        self.journal.wrote(self.kind, "delete", path, None)
        return was_there

    def repeat(self, method: str, path: str, value: Any) -> None:
        """Applies a write of the journal to this copy of the memory."""
        if method == "delete":
            self.delete(path)
        else:
            getattr(self, method)(path, value)

    def _is_object(self, path: str, node: Any) -> InvalidArgument:
        names = ", ".join(map(repr, sorted(node)))
        return InvalidArgument(
            f"{self.kind} memory: {path!r} cannot be set, because it is a nested object",
            cause=f"it has {names}" if names else "it is empty",
            way_out=f"set its fields, or delete({path!r}) first",
        )

    def _remove(self, node: dict[str, Any], name: str, path: str) -> None:
        before = node[name]
        self._grow(path, -len(name) - _size(before))
        self.journal.changes.append((node, name, before))
        del node[name]
        self.root.replaces(path, before)
        self.root.touched[path] = None
        if self._ttl_ms:
            self._forget_stamps(path)
        if self.changed is not None:
            self.changed()

    def _walk(self, path: str) -> tuple[dict[str, Any], list[str], str]:
        """The innermost existing node on the path, the names below it, and the path of a leaf that may be replaced: it
        contains None, or has expired."""
        parts = path.split(".")
        if not all(parts):
            raise InvalidArgument(
                f"{self.kind} memory: the path {path!r} has an empty name",
                way_out="separate names by single dots: 'user.name'",
            )
        node: Any = self.root
        for depth, part in enumerate(parts[:-1]):
            child = node.get(part)
            if child.__class__ is Node:
                node = child
                continue
            if part not in node:
                return node, parts[depth:], ""
            walked = ".".join(parts[: depth + 1])
            if child is not None and not self._expired(walked):
                raise InvalidArgument(
                    f"{self.kind} memory: {path!r} cannot be set, because {walked!r} contains a value",
                    # Not read with get(): an error does not prolong the value's life.
                    cause=f"it is {shorten(self.root.load(walked) if child.__class__ is PageRef else child)}",
                    way_out=f"delete({walked!r}) first, or use another path",
                )
            return node, parts[depth:], walked
        return node, parts[-1:], ""

    def node(self, path: str) -> dict[str, Any] | None:
        """The nested object at a path; the root for an empty path."""
        if not path:
            return self.root
        found = self.get(path)
        return found if found.__class__ is Node else None

    def values(self) -> dict[str, Any]:
        """All values by path. Not a read: it neither refreshes nor removes what has a time to live."""
        return dict(self._values_below(self.root, ""))

    def _values_below(self, node: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
        for name, value in list(node.items()):
            path = prefix + name
            if value.__class__ is Node:
                yield from self._values_below(value, path + ".")
            elif not self._expired(path):
                yield path, self.root.load(path) if value.__class__ is PageRef else value

    def written(self, path: str) -> Any:
        """What is at a path that an action has written: None for a nested object, and for nothing. Not a read either."""
        node: Any = self.root
        *parts, name = path.split(".")
        for part in parts:
            node = node.get(part)
            if node.__class__ is not Node:
                return None
        found = node.get(name)
        if found.__class__ is PageRef:
            return self.root.load(path)
        return None if found.__class__ is Node else found

    def alive(self, path: str, value: Any) -> bool:
        return not self._ttl_ms or value.__class__ is Node or self._alive(path)

    def _measure(self, path: str, value: Any) -> int:
        if value.__class__ is Node:
            return 0
        try:
            return measure(value)
        except NotSerializable as error:
            raise NotSerializable(
                f"{self.kind} memory: the value for {path!r} cannot be stored: {shorten(value)}",
                cause=error.cause,
                way_out="await the call, and store its answer"
                if "'coroutine'" in error.cause
                else "store data, not locks, connections, files or generators",
            ) from error

    def _grow(self, path: str, size: int) -> None:
        before = self.totals.get("bytes", 0)
        total = before + size
        if size > 0 and total > self.limit:
            raise MemoryTooLarge(
                f"{self.kind} memory would grow to {total:,} bytes by writing {path!r}; the limit is {self.limit:,}",
                way_out="delete what is no longer needed, or raise the option 'memory.max-bytes'",
            )
        self.journal.changes.append((self.totals, "bytes", self.totals.get("bytes", _MISSING)))
        self.totals["bytes"] = max(0, total)

    def _stamp(self, path: str) -> None:
        self.journal.changes.append((self.stamps, path, self.stamps.get(path, _MISSING)))
        self.stamps[path] = self._clock.now_ms()

    def _expired(self, path: str) -> bool:
        if not self._ttl_ms:
            return False
        stamp = self.stamps.get(path)
        return stamp is not None and self._clock.now_ms() - stamp >= self._ttl_ms

    def _alive(self, path: str) -> bool:
        if self._expired(path):
            self.delete(path)
            return False
        # A value without a stamp was written before the agent had a time to live: it starts now.
        if self._refresh or path not in self.stamps:
            self._stamp(path)
            if self.changed is not None:
                self.changed()
        return True

    def _forget_stamps(self, path: str) -> None:
        inside = path + "."
        for known in [known for known in self.stamps if known == path or known.startswith(inside)]:
            self.journal.changes.append((self.stamps, known, self.stamps.pop(known)))


def _size(value: Any) -> int:
    """The size a value counts for; a nested object counts as its names and values."""
    if value.__class__ is Node:
        return tree_size(value)
    if value.__class__ is PageRef:
        return value.size
    return measure(value)


def tree_size(root: dict[str, Any]) -> int:
    return sum(len(name) + _size(value) for name, value in root.items())
