"""Paged lists, maps and timers that were stored by this format: all of it is found, and continues."""

from __future__ import annotations

import shutil
from pathlib import Path

from emberflow.engines.local.checkpointing.checkpoints import Checkpoint
from emberflow.engines.local.checkpointing.sqlite_checkpoints import SqliteCheckpoints
from emberflow.operators.group_layout import VERSION
from emberflow.operators.scope import Scope
from tests.golden.group_state import read
from tests.golden.large_state import (
    ITEMS,
    KEYS,
    NOW_MS,
    TIMERS,
    TTL_MS,
    UID,
    Group,
    layout_of,
    local_scope,
    scope_of,
)

FILES = Path(__file__).parent / f"v{VERSION}"


def check_content(group: Group, scope: Scope, *, deleted: int) -> None:
    group.enter(scope)
    group.select("ann")
    assert list(group.items.get()) == list(range(ITEMS))
    assert group.table.get("k7") == 7
    assert list(group.table.items()) == [(f"k{number}", number) for number in range(ITEMS)]
    assert group.living.get(ITEMS - 1) == str(ITEMS - 1)
    group.items.add("more")
    group.table.put("k7", "changed")
    for key in KEYS:
        group.select(key)
        assert group.value.value() == f"value of {key}"
    fired = []
    while (due := scope.event_timers.pop_due(10_000)) is not None:
        fired.append(due)
    assert fired == [(2_000 + number, KEYS[number % len(KEYS)]) for number in range(TIMERS - deleted)]
    assert len(scope.processing_timers.pending()) == TIMERS


def check_expiry(group: Group, scope: Scope) -> None:
    """What was not changed expires, and is removed without being asked for."""
    group.enter(scope)
    for _ in range(40):
        group.operator.remove_expired(1_000)
    group.select("ann")
    assert (list(group.items.get())[-1], group.table.get("k7")) == ("more", "changed")
    assert "living" not in group.operator.cursor.entry
    assert not scope.entry(("b", 2))


def test_a_key_group() -> None:
    hot, cold = read(FILES / "large_group.json")
    layout, group = layout_of(hot, cold), Group()
    scope = scope_of(layout)
    check_content(group, scope, deleted=2)
    layout = layout_of(layout.commit(scope), cold)
    scope = scope_of(layout, NOW_MS + 2 * TTL_MS)
    check_expiry(group, scope)
    assert layout.commit(scope) is not None


def test_a_local_database(tmp_path: Path) -> None:
    shutil.copytree(FILES / "large-sqlite", tmp_path / "job")
    store, group = SqliteCheckpoints(tmp_path / "job"), Group()
    scope = local_scope(store, store.load())
    check_content(group, scope, deleted=2)
    checkpoint = Checkpoint(epoch=2, scopes={UID: [scope.saved()]})
    store.save(checkpoint, {UID: [scope]})
    check_expiry(group, local_scope(store, store.load(), NOW_MS + 2 * TTL_MS))
    store.close()
