"""Time to live, with a clock that stands still in between."""

from __future__ import annotations

from typing import Any

import pytest

from emberflow.errors import InvalidArgument
from emberflow.event_time.clock import to_ms
from emberflow.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from emberflow.state.entry import Cursor
from emberflow.state.handles import make_handle
from emberflow.state.ttl_config import StateTtlConfig, StateVisibility, UpdateType
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


def with_ttl(
    descriptor: Any,
    cursor: Cursor,
    update_type: UpdateType = UpdateType.OnCreateAndWrite,
    visibility: StateVisibility = StateVisibility.NeverReturnExpired,
) -> Any:
    builder = StateTtlConfig.new_builder(100).set_update_type(update_type).set_state_visibility(visibility)
    descriptor.enable_time_to_live(builder.build())
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
    state = with_ttl(ValueStateDescriptor("v"), cursor, update_type=UpdateType.OnReadAndWrite)
    state.update(1)
    for _ in range(5):
        clock.advance(90)
        assert state.value() == 1
    clock.advance(100)
    assert state.value() is None


def test_an_expired_value_may_be_shown_once_more(clock: ManualClock, cursor: Cursor) -> None:
    state = with_ttl(
        ValueStateDescriptor("v"), cursor, visibility=StateVisibility.ReturnExpiredIfNotCleanedUp
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
    state = with_ttl(MapStateDescriptor("m"), cursor, update_type=UpdateType.OnReadAndWrite)
    state.put("a", 1)
    clock.advance(90)
    assert state.get("a") == 1
    clock.advance(90)
    assert state.get("a") == 1


def test_the_builder_has_flinks_names() -> None:
    config = (
        StateTtlConfig.new_builder(Time.seconds(2))
        .set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)
        .set_state_visibility(StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp)
        .set_ttl_time_characteristic(StateTtlConfig.TtlTimeCharacteristic.ProcessingTime)
        .cleanup_full_snapshot()
        .cleanup_incrementally(10, run_cleanup_for_every_record=True)
        .cleanup_in_rocksdb_compact_filter(1000, Time.days(1))
        .build()
    )
    assert to_ms(config.get_ttl()) == config.ttl_ms == 2000
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
    assert config.get_ttl_time_characteristic() is StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
    assert config.is_enabled()
    chosen = config.get_cleanup_strategies()
    assert chosen.is_cleanup_in_background()
    assert chosen.in_full_snapshot()
    assert chosen.in_rocksdb_compact_filter()
    incremental = chosen.get_incremental_cleanup_strategy()
    assert incremental is not None
    assert (incremental.get_cleanup_size(), incremental.run_cleanup_for_every_record()) == (10, True)
    filtered = chosen.get_rocksdb_compact_filter_cleanup_strategy()
    assert filtered is not None
    assert filtered.get_query_time_after_num_entries() == 1000
    assert filtered.get_periodic_compaction_time() is not None
    with pytest.raises(InvalidArgument, match="positive"):
        StateTtlConfig.new_builder(0)


def test_what_is_chosen_by_default() -> None:
    config = StateTtlConfig.Builder(5).update_ttl_on_create_and_write().never_return_expired().build()
    assert config == StateTtlConfig.new_builder(5).use_processing_time().build()
    assert config.get_cleanup_strategies().cleans_in_background
    assert not config.get_cleanup_strategies().in_full_snapshot()
    disabled = StateTtlConfig.new_builder(5).disable_cleanup_in_background()
    strategies = disabled.build().get_cleanup_strategies()
    assert not strategies.is_cleanup_in_background()
    assert not strategies.cleans_in_background
    assert strategies.get_incremental_cleanup_strategy() is None
    assert strategies.get_rocksdb_compact_filter_cleanup_strategy() is None
    # As in Flink, a strategy that was chosen stays.
    assert disabled.cleanup_incrementally(1, False).build().get_cleanup_strategies().cleans_in_background


def test_disabled_means_that_nothing_expires(clock: ManualClock, cursor: Cursor) -> None:
    state = with_ttl(ValueStateDescriptor("v"), cursor, UpdateType.Disabled)
    state.update(1)
    clock.advance(1_000_000)
    assert state.value() == 1
    assert cursor.entry == {"v": 1}


def test_a_clock_that_is_set_back_keeps_values_longer(cursor: Cursor) -> None:
    state = with_ttl(ValueStateDescriptor("v"), cursor)
    items = with_ttl(ListStateDescriptor("l"), cursor)
    state.update(1)
    items.add("before")
    cursor.clock = clock = ManualClock(500)
    items.add("after")
    clock.advance(150)
    assert state.value() == 1
    assert list(items.get()) == ["before"]
    clock.advance(450)
    assert state.value() is None
    assert list(items.get()) == []
    assert cursor.entry == {}


def test_contains_refreshes_where_reading_does(clock: ManualClock, cursor: Cursor) -> None:
    state = with_ttl(MapStateDescriptor("m"), cursor, UpdateType.OnReadAndWrite)
    state.put("a", 1)
    state.put("b", 1)
    clock.advance(90)
    assert state.contains("a")
    clock.advance(90)
    assert dict(state.items()) == {"a": 1}
    clock.advance(90)
    assert not state.is_empty()


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
