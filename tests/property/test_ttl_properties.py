"""Time to live against a slow model: whatever is written, read, stored and given up, a value is visible exactly while it lives,
and in the end nothing is left of keys that never came back."""

from __future__ import annotations

from typing import Any

import hypothesis
from hypothesis import settings
from hypothesis import strategies as st

from emberflow.event_time.clock import FixedClock
from emberflow.operators.group_layout import GroupLayout
from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.operator import Step
from emberflow.operators.scope import Scope
from emberflow.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from emberflow.state.handles import make_handle
from emberflow.state.ttl_config import StateTtlConfig, UpdateType
from tests.support.cold_store import Buckets

CHANNELS = [(0, 0)]
TTL_MS = 80
LONG = "x" * 900


class Model:
    """Cells with the time of their last refresh; looks at all of them every time."""

    def __init__(self, on_read: bool) -> None:
        self.on_read = on_read
        self.cells: dict[Any, list[Any]] = {}
        """(key, state, name in the map) -> list of [value, refreshed at, has been expired]"""

    def copy(self) -> Model:
        made = Model(self.on_read)
        made.cells = {place: [list(cell) for cell in cells] for place, cells in self.cells.items()}
        return made

    def see(self, now_ms: int) -> None:
        """A cell that has once been expired may have been removed, although the clock was set back since."""
        for cells in self.cells.values():
            for cell in cells:
                cell[2] = cell[2] or now_ms - cell[1] >= TTL_MS

    def write(self, place: Any, value: Any, now_ms: int, *, appends: bool = False) -> None:
        cell = [value, now_ms, False]
        self.cells[place] = [*self.cells.get(place, ()), cell] if appends else [cell]

    def read(self, place: Any, now_ms: int, found: list[Any]) -> None:
        """Checks what was read."""
        alive = [cell for cell in self.cells.get(place, ()) if now_ms - cell[1] < TTL_MS]
        kept = [cell for cell in alive if not cell[2] or cell[0] in found]
        assert found == [cell[0] for cell in kept]
        self.cells[place] = kept
        for cell in kept if self.on_read else ():
            cell[1:] = [now_ms, False]

    def names(self, key: Any) -> list[Any]:
        return [name for owner, state, name in self.cells if (owner, state) == (key, "map")]


class Group:
    """A key group with three states, stored as on Spark."""

    def __init__(self, on_read: bool, hot_limit: int) -> None:
        self.hot: bytes | None = None
        self.cold = Buckets()
        self.hot_limit = hot_limit
        self.operator = KeyedOperator(Step("step", "step"))
        update = UpdateType.OnReadAndWrite if on_read else UpdateType.OnCreateAndWrite
        config = StateTtlConfig.new_builder(TTL_MS).set_update_type(update).build()
        descriptors = (ValueStateDescriptor("value"), ListStateDescriptor("list"), MapStateDescriptor("map"))
        for descriptor in descriptors:
            descriptor.enable_time_to_live(config)
        cursor = self.operator.cursor
        self.value, self.list, self.map = (make_handle(item, cursor) for item in descriptors)

    def open(self, now_ms: int) -> None:
        self.attempt = Buckets(self.cold.content)
        self.layout = GroupLayout(self.hot, self.attempt, "step", self.hot_limit)
        self.scope: Scope = self.layout.scope(CHANNELS, {}, FixedClock(now_ms), lambda key: True)
        self.operator.enter(self.scope)

    def select(self, key: Any) -> None:
        self.operator.cursor.key = key
        self.operator.cursor.entry = self.scope.entry(key)

    def commit(self) -> None:
        self.scope.prune(list(self.scope.entries))
        committed = self.layout.commit(self.scope)
        self.hot = self.hot if committed is None else committed
        self.cold = self.attempt


def given(value: Any) -> list[Any]:
    return [] if value is None else [value]


def step(group: Group, model: Model, what: str, key: Any, name: Any, value: str, now_ms: int) -> None:
    group.select(key)
    if what == "update":
        group.value.update(value)
        model.write((key, "value", None), value, now_ms)
    elif what == "value":
        model.read((key, "value", None), now_ms, given(group.value.value()))
    elif what == "add":
        group.list.add(value)
        model.write((key, "list", None), value, now_ms, appends=True)
    elif what == "add many":
        group.list.add_all([value] * 9)
        for _ in range(9):
            model.write((key, "list", None), value, now_ms, appends=True)
    elif what == "get":
        model.read((key, "list", None), now_ms, list(group.list.get()))
    elif what == "put":
        group.map.put(name, value)
        model.write((key, "map", name), value, now_ms)
    elif what == "put many":
        for number in range(9):
            group.map.put(number, value)
            model.write((key, "map", number), value, now_ms)
    elif what == "map get":
        model.read((key, "map", name), now_ms, given(group.map.get(name)))
    elif what == "items":
        items = dict(group.map.items())
        assert set(items) <= set(model.names(key))
        for found in model.names(key):
            model.read((key, "map", found), now_ms, given(items.get(found)))
    elif what == "clear":
        for state in (group.value, group.list, group.map):
            state.clear()
        for place in [place for place in model.cells if place[0] == key]:
            del model.cells[place]
    group.scope.prune((key,))


steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["update", "value", "add", "add many", "get", "put", "put many", "map get", "items", "clear"]
        ),
        st.integers(0, 6),
        st.integers(0, 5),
        st.sampled_from(["", LONG]),
    ),
    max_size=12,
)
batches = st.lists(
    st.tuples(
        steps,
        st.sampled_from([0, 1, 7, 40, 79, 80, 300, -60]),
        st.sampled_from([0, 1, 3, 100]),
        st.sampled_from(["commit", "commit", "commit", "crash"]),
    ),
    max_size=14,
)


@settings(max_examples=200, deadline=None)
@hypothesis.given(batches, st.booleans(), st.sampled_from([300, 4000, 10**6]))
def test_values_live_as_long_as_they_should(batches: list[Any], on_read: bool, hot_limit: int) -> None:
    group, model, now_ms, count = Group(on_read, hot_limit), Model(on_read), 1_000, 0
    for operations, passed_ms, cleaned, end in batches:
        now_ms = max(0, now_ms + passed_ms)
        group.open(now_ms)
        attempt = model.copy()
        attempt.see(now_ms)
        for what, key, name, text in operations:
            count += 1
            step(group, attempt, what, key, name, f"{count}{text}", now_ms)
        group.operator.remove_expired(cleaned)
        if end == "commit":
            group.commit()
            model = attempt
    for _ in range(3):
        # Later than any clock has been, and nobody comes back.
        now_ms += 100 * TTL_MS
        group.open(now_ms)
        group.operator.remove_expired(10_000)
        group.commit()
    group.open(now_ms)
    assert list(group.layout.all_entries()) == []
    assert group.scope.next_wake_up() is None
    assert not any(number >= 256 for number in group.cold.content), "no page is left"
