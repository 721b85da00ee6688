"""Paged lists, maps and timers: whatever is done, stored, given up and read again, they hold what a list, a dictionary and a
sorted list of timers would hold, and no page is left behind."""

from __future__ import annotations

from typing import Any

import numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK
from emberflow.events.codecs import decode, encode
from emberflow.operators.timers import TimerQueue
from emberflow.state.descriptors import ListStateDescriptor, MapStateDescriptor
from emberflow.state.entry import PAGED, Cursor, Entry
from emberflow.state.handles import make_handle


class Store:
    """Pages in a dictionary. `copy` is what a crash returns to."""

    def __init__(self, pages: dict[int, bytes] | None = None, next_page: int = 0) -> None:
        self.pages = dict(pages or {})
        self.next_page = next_page
        self.reads = 0
        self.written = 0

    def copy(self) -> Store:
        return Store(self.pages, self.next_page)

    def get_page(self, number: int) -> bytes | None:
        self.reads += 1
        return self.pages.get(number)

    def put_page(self, number: int | None, data: bytes) -> int:
        chosen = self.reserve_pages(1) if number is None else number
        assert chosen < self.next_page, "only reserved numbers are used"
        self.pages[chosen] = data
        self.written += len(data)
        return chosen

    def remove_page(self, number: int) -> None:
        self.pages.pop(number, None)

    def reserve_pages(self, count: int) -> int:
        first, self.next_page = self.next_page, self.next_page + count
        return first


def numbers(value: Any) -> set[int]:
    """The pages that a value may use."""
    return set() if value.__class__ not in PAGED else set(value._run.numbers())


class Key:
    """One key with a list and a map, stored and read as an engine does it."""

    def __init__(self) -> None:
        self.store = Store()
        self.stored = encode({})
        self.cursor = Cursor()
        self.items = make_handle(ListStateDescriptor("items"), self.cursor)
        self.table = make_handle(MapStateDescriptor("table"), self.cursor)
        self.load()

    def load(self) -> None:
        """As after a crash: what was not committed is gone."""
        self.attempt = self.store.copy()
        self.cursor.entry = Entry(decode(self.stored))
        self.cursor.entry.bind_pages(self.attempt)
        self.cursor.dropped = []

    def commit(self) -> None:
        entry = self.cursor.entry
        for value in self.cursor.dropped:
            value.remove_pages(self.attempt)
        self.cursor.dropped.clear()
        entry.write_pages(self.attempt, self.cursor.pageable)
        self.stored = encode(dict(entry))
        self.store = self.attempt
        used = {number for value in entry.values() for number in numbers(value)}
        assert set(self.store.pages) <= used, "pages of values that are gone are removed"
        self.load()


SIZES = st.sampled_from([1, 30, 700])
map_keys = st.one_of(
    st.integers(0, 60),
    st.sampled_from([True, 1.0, None, "a", "b", ("a", 1), ("a", True), frozenset({1}), b"x"]),
    st.sampled_from(
        [numpy.str_("a"), numpy.bytes_(b"x"), numpy.int8(1), numpy.bool_(True), ("a", numpy.int64(1))]
    ),
)
list_steps = st.tuples(st.sampled_from(["add", "add", "add", "add_all", "update", "clear", "get"]), SIZES)
map_steps = st.tuples(
    st.sampled_from(["put", "put", "put", "put_all", "remove", "get", "contains", "all", "clear"]),
    map_keys,
    SIZES,
)
ends = st.sampled_from(["commit", "commit", "commit", "crash"])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.lists(list_steps, max_size=20), ends), max_size=12))
def test_a_list_is_a_list(batches: list[Any]) -> None:
    key, model, count = Key(), list[str](), 0
    for steps, end in batches:
        attempt = list(model)
        for what, size in steps:
            count += 1
            text = f"{count}:".ljust(size, "x")
            if what == "add":
                key.items.add(text)
                attempt.append(text)
            elif what == "add_all":
                key.items.add_all([text] * 20)
                attempt += [text] * 20
            elif what == "update":
                key.items.update([text, *attempt[:3]])
                attempt = [text, *attempt[:3]]
            elif what == "clear":
                key.items.clear()
                attempt = []
            assert what != "get" or list(key.items.get()) == attempt
        if end == "commit":
            key.commit()
            model = attempt
        else:
            key.load()
        assert list(key.items) == model


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.lists(map_steps, max_size=25), ends), max_size=12))
def test_a_map_is_a_dictionary(batches: list[Any]) -> None:
    key, model, count = Key(), dict[Any, str](), 0
    for steps, end in batches:
        attempt = dict(model)
        for what, name, size in steps:
            count += 1
            text = f"{count}:".ljust(size, "x")
            if what == "put":
                key.table.put(name, text)
                attempt[name] = text
            elif what == "put_all":
                more = {f"{count}/{number}": text for number in range(20)}
                key.table.put_all(dict_value=more)
                attempt.update(more)
            elif what == "remove":
                key.table.remove(name)
                attempt.pop(name, None)
            elif what == "get":
                assert key.table.get(name) == attempt.get(name)
            elif what == "contains":
                assert key.table.contains(name) == (name in attempt)
            elif what == "clear":
                key.table.clear()
                attempt = {}
            else:
                assert_same(key.table, attempt)
        if end == "commit":
            key.commit()
            model = attempt
        else:
            key.load()
        assert_same(key.table, model)


def assert_same(table: Any, model: dict[Any, str]) -> None:
    assert [(type(name), name, text) for name, text in table.items()] == [
        (type(name), name, text) for name, text in model.items()
    ]
    assert list(table.keys()) == list(model)
    assert list(table.values()) == list(model.values())
    assert table.is_empty() == (not model)


# timers

KEYS: list[Any] = ["a", "b", 1, True, ("c", 1), None]
timer_steps = st.lists(
    st.one_of(
        st.tuples(st.just("register"), st.integers(0, 60), st.sampled_from(KEYS)),
        st.tuples(st.just("register many"), st.integers(0, 60), st.just(None)),
        st.tuples(
            st.just("register"), st.sampled_from([MIN_WATERMARK, MAX_WATERMARK]), st.sampled_from(KEYS)
        ),
        st.tuples(st.just("delete"), st.integers(0, 60), st.sampled_from(KEYS)),
        st.tuples(st.just("fire"), st.integers(0, 70), st.just(None)),
    ),
    max_size=30,
)
Model = dict[int, dict[Any, None]]


def apply(queue: TimerQueue, model: Model, what: str, time_ms: int, key: Any) -> None:
    if what == "register":
        queue.register(time_ms, key)
        model.setdefault(time_ms, {}).setdefault(key)
    elif what == "register many":
        for number in range(40):
            apply(queue, model, "register", time_ms + number % 20, f"{number % 7}")
    elif what == "delete":
        queue.delete(time_ms, key)
        model.get(time_ms, {}).pop(key, None)
    else:
        fired = []
        while (due := queue.pop_due(time_ms)) is not None:
            fired.append(due)
        expected = [(due, key) for due in sorted(model) if due <= time_ms for key in model.pop(due)]
        assert [(due, type(key), key) for due, key in fired] == [
            (due, type(key), key) for due, key in expected
        ]
    first = min((due for due, keys in model.items() if keys), default=None)
    found = queue.next_time()
    if first is None:
        assert found is None or queue.far is not None
    else:
        assert found is not None
        assert found <= first


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(timer_steps, ends), max_size=10), st.sampled_from([2, 8, 30]))
def test_timers_fire_as_from_a_sorted_list(batches: list[Any], limit: int) -> None:
    store, stored, model = Store(), encode(([], None)), dict[int, dict[Any, None]]()
    for steps, end in batches:
        attempt_store = store.copy()
        saved, far = decode(stored)
        if far is not None:
            far.store = attempt_store
        queue = TimerQueue(saved, far, limit)
        attempt = {time_ms: dict(keys) for time_ms, keys in model.items()}
        for step in steps:
            apply(queue, attempt, *step)
        if end == "commit":
            queue.flush(attempt_store)
            assert len(queue) <= max(limit, 1) or len(queue.saved()) == 1
            stored, store, model = encode((queue.saved(), queue.far)), attempt_store, attempt
    saved, far = decode(stored)
    if far is not None:
        far.store = store
    queue = TimerQueue(saved, far, limit)
    expected = [(time_ms, list(model[time_ms])) for time_ms in sorted(model) if model[time_ms]]
    assert queue.pending() == expected
    apply(queue, model, "fire", MAX_WATERMARK, None)
    queue.flush(store)
    assert store.pages == {}, "nothing is left of timers that have fired"
