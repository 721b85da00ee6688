"""The stored format of a key group: whatever the batches, evictions and crashes, it contains what a dictionary would."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.event_time.clock import FixedClock
from emberflow.operators.group_layout import GroupLayout
from emberflow.operators.scope import Scope
from tests.support.cold_store import Buckets

CHANNELS = [(0, 0)]


keys = st.one_of(st.integers(0, 40), st.text("abc", max_size=2), st.tuples(st.integers(0, 5), st.booleans()))
operation = st.tuples(st.sampled_from(["add", "add", "add", "clear", "read"]), keys, st.integers(0, 9))
batches = st.lists(st.tuples(st.lists(operation, max_size=25), st.booleans()), max_size=12)


def open_scope(hot: bytes | None, buckets: Buckets, limit: int) -> tuple[GroupLayout, Scope]:
    layout = GroupLayout(hot, buckets, hot_limit=limit)
    return layout, layout.scope(CHANNELS, {}, FixedClock(0), lambda key: True)


def apply(scope: Scope, kind: str, key: Any, number: int) -> Any:
    entry = scope.entry(key)
    if kind == "add":
        entry["n"] = entry.get("n", 0) + number + 1
        entry.dirty = True
    elif kind == "clear" and entry.pop("n", None) is not None:
        entry.dirty = True
    value = entry.get("n")
    if not entry:
        scope.prune((key,))
    return value


@settings(max_examples=300, deadline=None)
@given(batches, st.sampled_from([150, 400, 2000, 10**6]))
def test_it_behaves_like_a_dictionary_through_batches_and_crashes(
    batches: list[tuple[list[tuple[str, Any, int]], bool]], limit: int
) -> None:
    model: dict[Any, int] = {}
    hot: bytes | None = None
    cold: dict[int, bytes] = {}
    for operations, crashes in batches:
        buckets = Buckets(cold)
        layout, scope = open_scope(hot, buckets, limit)
        attempt = dict(model)
        for kind, key, number in operations:
            if kind == "add":
                attempt[key] = attempt.get(key, 0) + number + 1
            elif kind == "clear":
                attempt.pop(key, None)
            assert apply(scope, kind, key, number) == attempt.get(key)
        if crashes:
            continue  # nothing was committed: the next batch starts from the stored format again
        committed = layout.commit(scope)
        hot = hot if committed is None else committed
        cold = buckets.content
        model = attempt
    _, scope = open_scope(hot, Buckets(cold), limit)
    assert {key: scope.entry(key).get("n") for key in model} == model


def test_hot_keys_are_served_without_reading_cold_buckets() -> None:
    buckets = Buckets()
    layout, scope = open_scope(None, buckets, 32 * 1024)
    for key in range(20_000):
        apply(scope, "add", key, 1)
    hot = layout.commit(scope)
    assert len(buckets.content) > 200, "most keys have moved to cold buckets"

    touched = range(100, 130)
    for _ in range(3):
        layout, scope = open_scope(hot, buckets, 32 * 1024)
        buckets.reads = 0
        for key in touched:
            assert apply(scope, "add", key, 1) is not None
        hot = layout.commit(scope) or hot
    assert buckets.reads == 0


def test_a_batch_that_changes_nothing_writes_nothing() -> None:
    buckets = Buckets()
    layout, scope = open_scope(None, buckets, 1000)
    apply(scope, "add", "a", 1)
    hot = layout.commit(scope)
    layout, scope = open_scope(hot, buckets, 1000)
    apply(scope, "read", "a", 0)
    assert layout.commit(scope) is None
