"""State with everything that is paged: a large list, large maps, values that expire and more timers than are kept near, as a
key group of Spark's state store and as a `state.db` of the local engine hold it.

`python -m tests.golden.large_state FOLDER` writes both with the version that is imported.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from emberflow.engines.local.checkpointing.checkpoints import Checkpoint
from emberflow.engines.local.checkpointing.sqlite_checkpoints import SqliteCheckpoints
from emberflow.event_time.clock import FixedClock
from emberflow.operators.group_layout import GroupLayout
from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.operator import Step
from emberflow.operators.scope import Scope
from emberflow.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from emberflow.state.handles import make_handle
from emberflow.state.ttl_config import StateTtlConfig
from tests.golden.group_state import Cold, as_text

UID = "large"
CHANNELS = [(0, 0)]
NOW_MS = 1_000_000
TTL_MS = 60_000
ITEMS = 900
TIMERS = 700
KEYS = ["ann", ("b", 2), *range(300)]


class Group:
    """The states of a step, for the scope that is entered."""

    def __init__(self) -> None:
        self.operator = KeyedOperator(Step(UID, UID))
        config = StateTtlConfig.new_builder(TTL_MS).build()
        living, value = MapStateDescriptor[int, str]("living"), ValueStateDescriptor[str]("value")
        for descriptor in (living, value):
            descriptor.enable_time_to_live(config)
        cursor = self.operator.cursor
        self.items = make_handle(ListStateDescriptor("items"), cursor)
        self.table = make_handle(MapStateDescriptor("table"), cursor)
        self.living = make_handle(living, cursor)
        self.value = make_handle(value, cursor)

    def enter(self, scope: Scope) -> None:
        self.operator.enter(scope)

    def select(self, key: Any) -> None:
        self.operator.cursor.key = key
        self.operator.cursor.entry = self.operator.scope.entry(key)

    def fill(self) -> None:
        scope = self.operator.scope
        for key in KEYS:
            self.select(key)
            self.value.update(f"value of {key}")
        self.select("ann")
        for number in range(ITEMS):
            self.items.add(number)
            self.table.put(f"k{number}", number)
            self.living.put(number, str(number))
        for number in range(TIMERS):
            scope.event_timers.register(2_000 + number, KEYS[number % len(KEYS)])
            scope.processing_timers.register(NOW_MS + 5_000 + number, "ann")
        # One that is in a page by now, or near.
        scope.event_timers.delete(2_000 + TIMERS - 1, KEYS[(TIMERS - 1) % len(KEYS)])


def layout_of(hot: bytes | None, cold: Cold) -> GroupLayout:
    return GroupLayout(hot, cold, UID, 4_000)


def scope_of(layout: GroupLayout, now_ms: int = NOW_MS) -> Scope:
    return layout.scope(CHANNELS, {}, FixedClock(now_ms), lambda key: True)


def local_scope(store: SqliteCheckpoints, checkpoint: Checkpoint | None, now_ms: int = NOW_MS) -> Scope:
    return Scope(
        channels=CHANNELS,
        idle_ms={},
        clock=FixedClock(now_ms),
        saved=None if checkpoint is None else checkpoint.scopes[UID][0],
        loader=store.loader(UID),
        pages=store.pages(),
        timer_limit=64,
    )


def write(folder: Path) -> None:
    group, cold = Group(), Cold()
    hot: bytes | None = None
    for _ in range(2):
        layout = layout_of(hot, cold)
        scope = scope_of(layout)
        group.enter(scope)
        if hot is None:
            group.fill()
        else:
            scope.event_timers.delete(2_000 + TIMERS - 2, KEYS[(TIMERS - 2) % len(KEYS)])
        hot = layout.commit(scope)
    assert hot is not None
    (folder / "large_group.json").write_text(as_text(hot, cold))
    store = SqliteCheckpoints(folder / "large-sqlite")
    scope = local_scope(store, None)
    group.enter(scope)
    group.fill()
    for epoch in range(2):
        checkpoint = Checkpoint(epoch=epoch, scopes={UID: [scope.saved()]})
        store.save(checkpoint, {UID: [scope]})
        scope.event_timers.delete(2_000 + TIMERS - 2, KEYS[(TIMERS - 2) % len(KEYS)])
    store.close()


if __name__ == "__main__":
    write(Path(sys.argv[1]))
