"""Time to live, with a clock that stands still in between."""

from __future__ import annotations

from typing import Any

import pytest

from emberflow.errors import InvalidArgument
from emberflow.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    StateVisibility,
    UpdateType,
    ValueStateDescriptor,
)
from emberflow.state.entry import Cursor
from emberflow.state.handles import make_handle
from emberflow.streams import AggregateFunction, Time
from emberflow.testing import ManualClock


class Total(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: int, accumulator: int) -> int:
        return accumulator + value

    def get_result(self, accumulator: int) -> int:
        return accumulator


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1000)


@pytest.fixture
def cursor(clock: ManualClock) -> Cursor:
    cursor = Cursor()
    cursor.clock = clock
    return cursor


def with_ttl(descriptor: Any, cursor: Cursor, ms: int = 100, **settings: Any) -> Any:
    descriptor.enable_time_to_live(StateTtlConfig(ms, **settings))
    return make_handle(descriptor, cursor)


def test_a_value_expires_after_its_last_write(clock: ManualClock, cursor: Cursor) -> None:
    state = with_ttl(ValueStateDescriptor("v"), cursor)
    state.update(1)
    clock.advance(99)
    assert state.value() == 1
    state.update(2)
    clock.advance(99)
    assert state.value() == 2
    clock.advance(1)
    assert state.value() is None
    assert cursor.entry == {}


def test_reading_refreshes_where_it_is_asked_to(clock: ManualClock, cursor: Cursor) -> None:
    state = with_ttl(ValueStateDescriptor("v"), cursor, update_type=UpdateType.ON_READ_AND_WRITE)
    state.update(1)
    for _ in range(5):
        clock.advance(90)
        assert state.value() == 1
    clock.advance(100)
    assert state.value() is None


def test_an_expired_value_may_be_shown_once_more(clock: ManualClock, cursor: Cursor) -> None:
    state = with_ttl(
        ValueStateDescriptor("v"), cursor, visibility=StateVisibility.RETURN_EXPIRED_IF_NOT_CLEANED_UP
    )
    state.update(1)
    clock.advance(500)
    assert state.value() == 1
    assert state.value() is None


def test_elements_of_a_list_expire_one_by_one(clock: ManualClock, cursor: Cursor) -> None:
    state = with_ttl(ListStateDescriptor("l"), cursor)
    state.add("old")
    clock.advance(60)
    state.add_all(["new", None])
    clock.advance(60)
    assert list(state.get()) == ["new", None]
    clock.advance(60)
    assert list(state) == []
    assert cursor.entry == {}
    state.update([1, 2])
    assert list(state.get()) == [1, 2]


def test_entries_of_a_map_expire_one_by_one(clock: ManualClock, cursor: Cursor) -> None:
    state = with_ttl(MapStateDescriptor("m"), cursor)
    state.put("old", 1)
    clock.advance(60)
    state["new"] = None
    clock.advance(60)
    assert state.get("old") is None
    assert not state.contains("old")
    assert state.contains("new")
    assert dict(state.items()) == {"new": None}
    assert list(state.keys()) == ["new"]
    del state["new"]
    assert state.is_empty()
    assert cursor.entry == {}


def test_reducing_and_aggregating_start_again(clock: ManualClock, cursor: Cursor) -> None:
    reducing = with_ttl(ReducingStateDescriptor("r", lambda a, b: a + b), cursor)
    aggregating = with_ttl(AggregatingStateDescriptor("a", Total()), cursor)
    for state in (reducing, aggregating):
        state.add(1)
        state.add(2)
        assert state.get() == 3
    clock.advance(100)
    for state in (reducing, aggregating):
        assert state.get() is None
        state.add(5)
        assert state.get() == 5
        state.clear()
    assert cursor.entry == {}


def test_map_reads_refresh_where_they_are_asked_to(clock: ManualClock, cursor: Cursor) -> None:
    state = with_ttl(MapStateDescriptor("m"), cursor, update_type=UpdateType.ON_READ_AND_WRITE)
    state.put("a", 1)
    clock.advance(90)
    assert state.get("a") == 1
    clock.advance(90)
    assert state.get("a") == 1


def test_the_builder_has_flinks_names() -> None:
    config = (
        StateTtlConfig.new_builder(Time.seconds(2))
        .set_update_type(StateTtlConfig.UpdateType.ON_READ_AND_WRITE)
        .set_state_visibility(StateTtlConfig.StateVisibility.RETURN_EXPIRED_IF_NOT_CLEANED_UP)
        .build()
    )
    assert config == StateTtlConfig(
        2000, UpdateType.ON_READ_AND_WRITE, StateVisibility.RETURN_EXPIRED_IF_NOT_CLEANED_UP
    )
    plain = StateTtlConfig.new_builder(5).update_ttl_on_create_and_write().never_return_expired().build()
    assert plain == StateTtlConfig(5)
    with pytest.raises(InvalidArgument, match="positive"):
        StateTtlConfig.new_builder(0)


def test_changes_mark_the_entry(cursor: Cursor) -> None:
    for descriptor, change in (
        (ValueStateDescriptor("v"), lambda state: state.update(1)),
        (ListStateDescriptor("l"), lambda state: state.add(1)),
        (MapStateDescriptor("m"), lambda state: state.put(1, None)),
    ):
        state = make_handle(descriptor, cursor)
        cursor.entry.dirty = False
        change(state)
        assert cursor.entry.dirty
        cursor.entry.dirty = False
        state.clear()
        assert cursor.entry.dirty
        cursor.entry.dirty = False
        state.clear()
        assert not cursor.entry.dirty


def test_reading_changes_nothing(cursor: Cursor) -> None:
    value = make_handle(ValueStateDescriptor("v"), cursor)
    items = make_handle(ListStateDescriptor("l"), cursor)
    mapping = make_handle(MapStateDescriptor("m"), cursor)
    assert (value.value(), list(items.get()), mapping.get("x"), list(mapping)) == (None, [], None, [])
    items.get().append("not stored")
    assert not cursor.entry.dirty
    assert cursor.entry == {}


def test_state_names() -> None:
    for wrong in ("", "$reduce"):
        with pytest.raises(InvalidArgument):
            ValueStateDescriptor(wrong)
