"""Large lists, maps and timers on pages: what they cost, and what happens when something is wrong with them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emberflow.engines.local.checkpointing.checkpoints import Checkpoint
from emberflow.engines.local.checkpointing.sqlite_checkpoints import SqliteCheckpoints
from emberflow.errors import CheckpointUnusable, CorruptData, NotSerializable
from emberflow.event_time.clock import FixedClock
from emberflow.operators import group_layout
from emberflow.operators.group_layout import GroupLayout
from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.operator import Step
from emberflow.operators.scope import Scope
from emberflow.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from emberflow.state.handles import make_handle
from emberflow.state.paged_list import PagedList
from emberflow.state.paged_map import PagedMap
from tests.support.cold_store import Buckets

CHANNELS = [(0, 0)]


class Group:
    """A key group with one key, stored as on Spark."""

    def __init__(self) -> None:
        self.cold = Buckets()
        self.hot: bytes | None = None
        self.operator = KeyedOperator(Step("step", "step"))
        cursor = self.operator.cursor
        self.value = make_handle(ValueStateDescriptor("value"), cursor)
        self.list = make_handle(ListStateDescriptor("list"), cursor)
        self.map = make_handle(MapStateDescriptor("map"), cursor)
        self.open()

    def open(self) -> None:
        self.layout = GroupLayout(self.hot, self.cold, "step")
        self.scope = self.layout.scope(CHANNELS, {}, FixedClock(0), lambda key: True)
        self.operator.enter(self.scope)
        self.operator.cursor.key = "k"
        self.operator.cursor.entry = self.scope.entry("k")
        self.cold.reads = self.cold.writes = self.cold.written_bytes = 0

    def commit(self) -> None:
        committed = self.layout.commit(self.scope)
        self.hot = self.hot if committed is None else committed

    @property
    def entry(self) -> Any:
        return self.operator.cursor.entry


def cost(size: int, change: Callable[[Group], object]) -> tuple[int, int, int]:
    """Pages read and written, and the stored bytes, of one change."""
    group = Group()
    group.list.add_all(range(size))
    group.map.put_all({number: -number for number in range(size)})
    group.commit()
    group.open()
    change(group)
    group.commit()
    assert group.hot is not None
    return group.cold.reads, group.cold.writes, group.cold.written_bytes + len(group.hot)


@pytest.mark.parametrize(
    "change",
    [
        lambda group: group.list.add(1),
        lambda group: group.map.get(777),
        lambda group: group.map.contains(-1),
        lambda group: group.map.put(777, 0),
        lambda group: group.map.remove(777),
    ],
    ids=["append", "get", "contains", "put", "remove"],
)
def test_one_change_costs_the_same_whatever_the_size(change: Callable[[Group], object]) -> None:
    few, many = cost(2_000, change), cost(100_000, change)
    assert many[0] <= few[0] + 1 <= 2
    assert many[1] <= few[1] + 3
    assert many[2] <= 1.5 * few[2] + 4_000


def test_timers_cost_the_same_whatever_their_number() -> None:
    written: list[float] = []
    for size in (5_000, 100_000):
        group = Group()
        for number in range(size):
            group.scope.event_timers.register(10**6 + number * 7919 % size * 100, number)
        group.commit()
        total = 0
        for batch in range(20):
            group.open()
            for number in range(50):
                group.scope.event_timers.delete(10**6 + number * 7919 % size * 100, number)
                group.scope.event_timers.register(10**6 + (number * 7919 + batch + 1) % size * 100, number)
            group.commit()
            assert group.hot is not None
            assert group.cold.reads == 0, "what is not due is not read"
            total += group.cold.written_bytes + len(group.hot)
        written.append(total)
    assert written[1] <= 1.5 * written[0]


def test_a_log_of_deleted_timers_does_not_grow() -> None:
    group = Group()
    for number in range(2_000):
        group.scope.event_timers.register(number, f"other {number}")
    for number in range(60_000):
        group.scope.event_timers.delete(10**9 + number - 1, "k")
        group.scope.event_timers.register(10**9 + number, "k")
        if number % 500 == 0:
            group.commit()
            group.open()
    group.commit()
    assert sum(map(len, group.cold.content.values())) < 100_000
    assert len(group.scope.event_timers.pending()) == 2_001


def test_small_lists_and_maps_and_values_of_the_user_stay_inline() -> None:
    group = Group()
    group.value.update(["x" * 100] * 1_000)
    group.list.add_all(range(100))
    group.map.put_all({number: number for number in range(20)})
    group.commit()
    assert [type(item) for item in group.entry.values()] == [list, list, dict]
    assert group.cold.content == {}


def test_one_large_value_does_not_spread_a_map() -> None:
    group = Group()
    for number in range(12):
        group.map.put(number, "x" * 1_000_000)
        group.commit()
        group.open()
    paged: Any = group.entry["map"]
    assert isinstance(paged, PagedMap)
    assert paged.buckets <= 12
    assert [key for key, _ in group.map.items()] == list(range(12))


def test_a_map_shrinks_when_most_of_it_is_gone() -> None:
    group = Group()
    group.map.put_all(dict.fromkeys(range(5000), "x" * 100))
    group.commit()
    for start in range(0, 5_000, 500):
        group.open()
        for number in range(start, min(start + 500, 4_990)):
            group.map.remove(number)
        group.commit()
    group.open()
    assert list(group.map.keys()) == list(range(4_990, 5_000))
    assert group.cold.reads <= 20
    assert len(group.cold.content) <= 20


def test_a_cleared_list_leaves_no_page() -> None:
    group = Group()
    group.list.add_all(range(5_000))
    group.commit()
    assert isinstance(group.entry["list"], PagedList)
    group.open()
    group.list.clear()
    group.list.add("new")
    group.commit()
    assert group.cold.content == {}


@pytest.mark.parametrize("what", ["list", "map", "timers"])
@pytest.mark.parametrize("damage", ["missing", "damaged"])
def test_a_page_that_is_lost_is_an_error(what: str, damage: str) -> None:
    group = Group()
    group.list.add_all(range(5_000))
    group.map.put_all({number: number for number in range(5_000)})
    for number in range(5_000):
        group.scope.event_timers.register(number, number)
    group.commit()
    for number in list(group.cold.content):
        if damage == "missing":
            del group.cold.content[number]
        else:
            group.cold.content[number] = b"\x01 no pickle"
    group.open()
    reading: dict[str, Callable[[], object]] = {
        "list": group.list.get,
        "map": lambda: group.map.get(7),
        "timers": lambda: list(iter(lambda: group.scope.event_timers.pop_due(10_000), None)),
    }
    with pytest.raises(CorruptData, match=r"page \d+ of .* (is missing|cannot be decoded)"):
        reading[what]()


def fill_with_a_lock(group: Any) -> None:
    group.list.add_all(range(5_000))
    group.list.add(threading.Lock())


def test_what_cannot_be_stored_is_named() -> None:
    group = Group()
    fill_with_a_lock(group)
    with pytest.raises(NotSerializable, match="step 'step': the state 'list' of key 'k' contains"):
        group.commit()
    group = Group()
    group.map.put_all({number: number for number in range(5_000)})
    group.commit()
    group.open()
    group.map.put("lock", threading.Lock())
    with pytest.raises(NotSerializable, match="step 'step': the state 'map' of key 'k' contains"):
        group.commit()


def test_what_cannot_be_stored_is_named_by_the_local_engine(tmp_path: Path) -> None:
    store, group = SqliteCheckpoints(tmp_path), Group()
    scope = Scope(channels=CHANNELS, idle_ms={}, clock=FixedClock(0), pages=store.pages())
    group.operator.enter(scope)
    group.operator.cursor.entry = scope.entry("k")
    fill_with_a_lock(group)
    with pytest.raises(NotSerializable, match="step 'uid': the state 'list' of key 'k' contains"):
        store.save(Checkpoint(epoch=0, scopes={"uid": [scope.saved()]}), {"uid": [scope]})
    store.close()


def test_the_last_page_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_layout, "_LAST_PAGE", 300)
    group = Group()
    group.list.add_all(range(100_000))
    with pytest.raises(CheckpointUnusable, match=r"page numbers[\s\S]*savepoint"):
        group.commit()
