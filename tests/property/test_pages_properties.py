"""Memory on pages: whatever is written, stored, evicted and read again equals a tree of plain dictionaries, and no page
is orphaned."""

from __future__ import annotations

import pickle
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.errors import InvalidArgument
from emberflow.state.memory import Journal, Memory
from emberflow.state.memory_object import MemoryObject
from emberflow.state.pages import PAGE_BYTES, Fields, Node, PageRef

PATHS = ("a", "b", "c.d", "c.e", "c.f.g", "c.d.x")
SMALL, LARGE = 10, PAGE_BYTES + 100


class Store:
    """Pages in a dictionary, with a count of what was written."""

    def __init__(self) -> None:
        self.pages: dict[int, bytes] = {}
        self.written = 0
        self._next = 0

    def get_page(self, number: int) -> bytes | None:
        return self.pages.get(number)

    def put_page(self, number: int | None, data: bytes) -> int:
        if number is None:
            self._next += 1
            number = self._next
        self.pages[number] = data
        self.written += len(data)
        return number

    def remove_page(self, number: int) -> None:
        del self.pages[number]

    def reserve_pages(self, count: int) -> int:
        raise NotImplementedError("memory needs no page but the next one")


def opened(root: Fields, store: Store) -> tuple[MemoryObject, Journal]:
    root.store = store
    journal = Journal()
    return MemoryObject(Memory("short-term", root, journal, 10**9, {})), journal


def pages_of(tree: Any) -> list[int]:
    """The pages that a stored tree refers to."""
    if isinstance(tree, PageRef):
        return list(tree.numbers)
    if isinstance(tree, Fields | Node):
        return [number for value in tree.values() for number in pages_of(value)]
    return []


def attempt(memory: MemoryObject, path: str, value: str) -> bool:
    """Whether the value could be set: not below another value."""
    try:
        memory.set(path, value)
    except InvalidArgument:
        return False
    return True


steps = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.sampled_from(PATHS), st.sampled_from([SMALL, LARGE])),
        st.tuples(st.just("append"), st.sampled_from(["a", "c.d"]), st.sampled_from([SMALL, LARGE, 700])),
        st.tuples(st.just("delete"), st.sampled_from([*PATHS, "c", "c.f"]), st.just(0)),
        st.tuples(st.just("get"), st.sampled_from(PATHS), st.just(0)),
        st.tuples(st.just("fail"), st.just(""), st.just(0)),
        st.tuples(st.just("end"), st.just(""), st.just(0)),
        st.tuples(st.just("store"), st.just(""), st.just(0)),
        st.tuples(st.just("store around a waiting action"), st.just(""), st.just(0)),
    ),
    max_size=40,
)


def shown(value: Any) -> Any:
    return value.to_dict() if isinstance(value, MemoryObject) else value


@settings(max_examples=300, deadline=None)
@given(steps=steps)
def test_pages_hold_what_was_written(steps: list[tuple[str, str, int]]) -> None:
    store = Store()
    root = Fields()
    memory, journal = opened(root, store)
    plain = Fields()
    model, model_journal = opened(plain, Store())
    for number, (step, path, size) in enumerate(steps):
        value = f"{number}-" + "x" * size
        if step == "set":
            assert attempt(memory, path, value) == attempt(model, path, value)
        elif step == "append":
            if model.is_exist(path) and not isinstance(model.get(path), list):
                memory.delete(path)
                model.delete(path)
            memory.append(path, value)
            model.append(path, value)
        elif step == "delete":
            assert memory.delete(path) == model.delete(path)
        elif step == "get":
            assert shown(memory.get(path)) == shown(model.get(path))
        elif step == "fail":
            journal.undo()
            model_journal.undo()
        elif step == "end":
            journal.changes.clear()
            model_journal.changes.clear()
        elif step == "store":
            journal.changes.clear()
            model_journal.changes.clear()
            root.flush(store)
            root = pickle.loads(pickle.dumps(root))
            assert sorted(pages_of(root)) == sorted(store.pages), "a page was lost or orphaned"
            memory, journal = opened(root, store)
        else:
            marks = root.marks()
            undone = journal.suspend()
            root.flush(store)
            kept = pickle.dumps(root)
            journal.proceed(undone)
            root.mark_again(marks)
            # What was stored is the state before the action; the action continues with what it wrote.
            found, _ = opened(pickle.loads(kept), store)
            undone = model_journal.suspend()
            assert found.to_dict() == model.to_dict()
            model_journal.proceed(undone)
    assert memory.to_dict() == model.to_dict()


def test_the_cost_of_a_write_depends_on_its_own_size() -> None:
    store = Store()
    root = Fields()
    memory, _ = opened(root, store)
    for number in range(200):
        memory.set(f"documents.d{number}", "x" * 5_000)
    root.flush(store)
    root = pickle.loads(pickle.dumps(root))
    memory, _ = opened(root, store)
    store.written = 0
    memory.set("documents.d7", "y" * 5_000)
    memory.set("seen", 1)
    root.flush(store)
    assert store.written < 6_000
    assert len(pickle.dumps(root)) < 200 * 100


def test_appending_does_not_rewrite_the_list() -> None:
    store = Store()
    root = Fields()
    sizes: list[int] = []
    for number in range(300):
        memory, _ = opened(root, store)
        memory.append("history", f"message {number} " + "x" * 500)
        store.written = 0
        root.flush(store)
        stored = pickle.dumps(root)
        sizes.append(store.written + len(stored))
        root = pickle.loads(stored)
    memory, _ = opened(root, store)
    assert [item.split()[1] for item in memory.get("history")] == [str(number) for number in range(300)]
    assert max(sizes) < 4 * PAGE_BYTES, "150 KB of messages, and each one costs a page or two"


def test_a_nested_object_replaces_a_page() -> None:
    store = Store()
    root = Fields()
    memory, _ = opened(root, store)
    memory.set("a.x", "y" * LARGE)
    memory.set("a.l", ["z" * LARGE])
    root.flush(store)
    memory.delete("a")
    memory.set("a.x.z", "new")
    memory.set("a.l.z", "newer")
    root.flush(store)
    root = pickle.loads(pickle.dumps(root))
    memory, _ = opened(root, store)
    assert memory.to_dict() == {"a": {"x": {"z": "new"}, "l": {"z": "newer"}}}
    assert store.pages == {}
