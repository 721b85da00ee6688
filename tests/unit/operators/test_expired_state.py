"""Cleanup of expired state: nothing is left of keys that never come back, a few of them at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from emberflow.event_time.clock import FixedClock
from emberflow.operators.group_layout import GroupLayout
from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.operator import Step
from emberflow.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from emberflow.state.handles import make_handle
from emberflow.state.ttl_config import StateTtlConfig
from emberflow.streams import KeyedProcessFunction, RuntimeContext
from emberflow.testing import OperatorHarness
from tests.support.cold_store import Buckets

TTL_MS = 1_000
KEYS = 3_000


class Remember(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        config = StateTtlConfig.new_builder(TTL_MS).build()
        last, kept = ValueStateDescriptor("last"), ValueStateDescriptor("kept")
        last.enable_time_to_live(config)
        self._last = runtime_context.get_state(last)
        self._kept = runtime_context.get_state(kept)

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield value, self._last.value()
        self._last.update(value)
        if value == "kept":
            self._kept.update(value)


def test_keys_that_do_not_come_back_are_removed() -> None:
    harness = OperatorHarness(lambda stream: stream.key_by(lambda value: value).process(Remember()))
    harness.send(["a", "b", "kept"])
    harness.advance_clock(TTL_MS // 2)
    harness.send(["b"])
    harness.advance_clock(TTL_MS // 2 + TTL_MS // 8)
    assert harness.scope is not None
    assert sorted(harness.scope.entries) == ["b", "kept"]
    harness.advance_clock(TTL_MS)
    assert dict(harness.scope.entries) == {"kept": {"kept": "kept"}}
    assert harness.scope.next_wake_up() is None
    harness.send(["b"])
    assert harness.values == [("a", None), ("b", None), ("kept", None), ("b", "b"), ("b", None)]


def test_cold_keys_are_removed_a_few_at_a_time() -> None:
    cold, hot = Buckets(), None
    operator = KeyedOperator(Step("step", "step"))
    descriptor = ValueStateDescriptor("value")
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(TTL_MS).build())
    value = make_handle(descriptor, operator.cursor)

    def batch(now_ms: int, keys: Iterable[int], cleaned: int) -> None:
        nonlocal hot
        layout = GroupLayout(hot, cold, "step")
        operator.enter(layout.scope([(0, 0)], {}, FixedClock(now_ms), lambda key: True))
        for key in keys:
            operator.cursor.key = key
            operator.cursor.entry = operator.scope.entry(key)
            value.update("x" * 50)
        cold.reads = 0
        operator.remove_expired(cleaned)
        hot = layout.commit(operator.scope) or hot

    for start in range(0, KEYS, 500):
        batch(start, range(start, start + 500), 0)
    assert len(cold.content) > 200, "most keys are in cold buckets"
    now_ms, batches = KEYS + 2 * TTL_MS, 0
    while operator.scope.next_wake_up() is not None:
        batch(now_ms, (), 100)
        # A bucket of each key, those that tombstones leave for, and a page of the queue.
        assert cold.reads <= 100 + 256 + 20
        batches += 1
        assert batches <= KEYS // 100 + 1
    layout = GroupLayout(hot, cold, "step")
    assert list(layout.all_entries()) == []
    assert sum(map(len, cold.content.values())) < 20_000, "few keys wait for their bucket to be read again"


def test_a_large_map_and_a_large_list_lose_their_expired_elements() -> None:
    cold, hot = Buckets(), None
    operator = KeyedOperator(Step("step", "step"))
    table, items = MapStateDescriptor("table"), ListStateDescriptor("items")
    for descriptor in (table, items):
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(TTL_MS).build())
    table_state, items_state = make_handle(table, operator.cursor), make_handle(items, operator.cursor)
    sizes: list[int] = []
    for round_number in range(60):
        now_ms = round_number * TTL_MS // 4
        layout = GroupLayout(hot, cold, "step")
        operator.enter(layout.scope([(0, 0)], {}, FixedClock(now_ms), lambda key: True))
        operator.remove_expired(10)
        operator.cursor.key = "k"
        operator.cursor.entry = operator.scope.entry("k")
        for number in range(300):
            table_state.put((round_number, number), number)
            items_state.add(number)
        hot = layout.commit(operator.scope) or hot
        assert hot is not None
        sizes.append(sum(map(len, cold.content.values())) + len(hot))
    # 18,000 elements of each, of which 1,500 live: what is stored does not grow with those that were written.
    assert max(sizes[30:]) < 1.5 * max(sizes[15:30])
    assert len(list(items_state.get())) == 1_200
