"""Agents' memory against a model of plain nested dictionaries: any sequence of calls, reverted at any moment."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from emberflow.errors import InvalidArgument, MemoryTooLarge
from emberflow.events.codecs import decode, encode
from emberflow.state.memory import Journal, Memory, swap
from emberflow.state.memory_object import MemoryObject
from emberflow.state.pages import Fields, Node
from emberflow.state.sizes import measure
from emberflow.testing import ManualClock

TTL_MS = 10
NAMES = st.sampled_from(["a", "b", "long"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(".".join)
PREFIXES = st.sampled_from(["", "", "a", "a.b"])
VALUES = st.one_of(
    st.integers(0, 9),
    st.none(),
    st.text("xyz", max_size=5),
    st.lists(st.integers(0, 9), max_size=3),
    st.dictionaries(NAMES, st.integers(0, 9), max_size=2),
    st.tuples(st.integers(0, 9)),
)
BAD_PATHS = st.sampled_from(["", ".", "a.", ".a", "new..b", "new.b."])
CALLS = st.one_of(
    st.tuples(st.just("set"), PREFIXES, st.one_of(PATHS, PATHS, PATHS, BAD_PATHS), VALUES),
    st.tuples(st.just("append"), PREFIXES, PATHS, VALUES),
    st.tuples(st.just("delete"), PREFIXES, PATHS, st.none()),
    st.tuples(st.just("new_object"), PREFIXES, PATHS, st.booleans()),
    st.tuples(st.just("get"), PREFIXES, PATHS, st.none()),
    st.tuples(st.just("is_exist"), PREFIXES, PATHS, st.none()),
    st.tuples(st.just("keys"), PREFIXES, st.just(""), st.none()),
)
ENDS = st.sampled_from(["end", "fail", "save"])


class Object(dict[str, Any]):
    """A nested object of the model; everything else in it is a `Leaf`."""


class Leaf:
    def __init__(self, value: Any, stamp: int) -> None:
        self.value = value
        self.stamp = stamp


class Model:
    def __init__(self, clock: ManualClock, ttl_ms: int = 0, refresh: bool = False) -> None:
        self.tree = Object()
        self._clock = clock
        self._ttl_ms = ttl_ms
        self._refresh = refresh

    def live(self, node: Object, name: str, *, read: bool = True) -> Any:
        """What counts as existing; reading may refresh it."""
        found = node.get(name)
        if not isinstance(found, Leaf):
            return found
        if self._ttl_ms and self._clock.now_ms() - found.stamp >= self._ttl_ms:
            return None
        if read and self._refresh:
            found.stamp = self._clock.now_ms()
        return found

    def find(self, path: str) -> Any:
        node: Any = self.tree
        *parts, name = path.split(".")
        for part in parts:
            node = self.live(node, part, read=False)
            if not isinstance(node, Object):
                return None
        return self.live(node, name)

    def get(self, path: str) -> Any:
        found = self.find(path)
        return found.value if isinstance(found, Leaf) else None if found is None else "an object"

    def put(self, path: str, value: Any) -> None:
        *parts, name = path.split(".")
        if not all([*parts, name]):
            raise InvalidArgument("empty name")
        node: Any = self.tree
        for part in parts:
            child = self.live(node, part, read=False)
            if isinstance(child, Leaf) and child.value is not None:
                raise InvalidArgument("a value is in the way")
            if not isinstance(child, Object):
                break
            node = child
        node = self.tree
        for part in parts:
            child = node.get(part)
            if not isinstance(child, Object):
                child = node[part] = Object()
            node = child
        node[name] = value

    def set(self, path: str, value: Any) -> None:
        node: Any = self.tree
        *parts, name = path.split(".")
        for part in parts:
            node = node.get(part) if isinstance(node, Object) else None
        if isinstance(node, Object) and isinstance(node.get(name), Object):
            raise InvalidArgument("a nested object is there")
        self.put(path, Leaf(copy.deepcopy(value), self._clock.now_ms()))

    def append(self, path: str, value: Any) -> None:
        found = self.find(path)
        if found is None or (isinstance(found, Leaf) and found.value is None):
            self.set(path, [value])
        elif not isinstance(found, Leaf) or type(found.value) is not list:
            raise InvalidArgument("not a list")
        else:
            found.value.append(value)
            found.stamp = self._clock.now_ms()

    def delete(self, path: str) -> bool:
        node: Any = self.tree
        *parts, name = path.split(".")
        for part in parts:
            node = node.get(part)
            if not isinstance(node, Object):
                return False
        there = self.live(node, name, read=False) is not None
        node.pop(name, None)
        return there

    def new_object(self, path: str, overwrite: bool) -> None:
        found = self.find(path)
        taken = isinstance(found, Leaf) and found.value is not None
        if taken and not overwrite:
            raise InvalidArgument("a value is there")
        if not isinstance(found, Object):
            self.put(path, Object())

    def keys(self, prefix: str) -> set[str]:
        node = self.find(prefix) if prefix else self.tree
        if not isinstance(node, Object):
            return set()
        return {name for name in node if self.live(node, name) is not None}

    def to_dict(self, node: Object | None = None) -> dict[str, Any]:
        node = self.tree if node is None else node
        found = {name: self.live(node, name) for name in node}
        return {
            name: self.to_dict(item) if isinstance(item, Object) else item.value
            for name, item in found.items()
            if item is not None
        }


def size_of(node: dict[str, Any]) -> int:
    """The size that the tree counts, computed from scratch."""
    return sum(
        len(name) + (size_of(value) if value.__class__ is Node else measure(value))
        for name, value in node.items()
    )


def call(memory: MemoryObject, model: Model, name: str, prefix: str, path: str, argument: Any) -> None:
    """The same call on both; they agree on its result, or on its error."""
    inside = f"{prefix}." if prefix else ""
    place = MemoryObject(memory._memory, inside)
    expected: Any = None
    refused = False
    try:
        match name:
            case "set":
                model.set(inside + path, argument)
            case "append":
                model.append(inside + path, argument)
            case "delete":
                expected = model.delete(inside + path)
            case "new_object":
                model.new_object(inside + path, argument)
            case "get":
                expected = model.get(inside + path)
            case "is_exist":
                expected = model.find(inside + path) is not None
            case _:
                expected = model.keys(prefix)
    except InvalidArgument:
        refused = True
    try:
        match name:
            case "set" | "append":
                ref = getattr(place, name)(path, copy.deepcopy(argument))
                assert ref.path == inside + path
                found = None
            case "new_object":
                place.new_object(path, argument)
                found = None
            case "get":
                found = place.get(path)
                found = "an object" if isinstance(found, MemoryObject) else found
            case "keys":
                found = set(place.keys())
            case _:
                found = getattr(place, name)(path)
        assert not refused, (name, prefix, path, argument)
        assert found == expected, (name, prefix, path)
    except InvalidArgument:
        assert refused, (name, prefix, path, argument)


@example(actions=[([("set", "", "b", None), ("is_exist", "", "b", None)], "end")])
@settings(max_examples=250, deadline=None)
@given(actions=st.lists(st.tuples(st.lists(CALLS, max_size=8), ENDS), max_size=6))
def test_any_calls_match_nested_dictionaries(actions: list[tuple[list[Any], str]]) -> None:
    root = Fields()
    totals: dict[str, Any] = {}
    journal = Journal()
    memory = MemoryObject(Memory("short-term", root, journal, 10**6, totals))
    model = Model(ManualClock())
    for calls, end in actions:
        before, before_size = copy.deepcopy(root), totals.get("bytes", 0)
        before_model = copy.deepcopy(model.tree)
        for item in calls:
            call(memory, model, *item)
            assert memory.to_dict() == model.to_dict()
            assert totals.get("bytes", 0) == size_of(root)
        now, now_totals = copy.deepcopy(root), dict(totals)
        if end == "end":
            other = Memory("short-term", copy.deepcopy(before), Journal(), 10**6, {"bytes": before_size})
            for _, method, path, value in decode(encode(journal.writes)):
                other.repeat(method, path, value)
            assert other.root == root, "its writes, repeated on a copy, lead to the same"
            journal.clear()
        elif end == "fail":
            journal.undo()
            assert (root, totals.get("bytes", 0)) == (before, before_size)
            model.tree = before_model
        else:
            undone = journal.suspend()
            assert (root, totals.get("bytes", 0)) == (before, before_size)
            journal.changes = swap(undone)
            assert (root, totals) == (now, now_totals)
            # What was redone can still be undone.
            journal.changes = swap(journal.suspend())
            assert (root, totals) == (now, now_totals)
            journal.undo()
            assert (root, totals.get("bytes", 0)) == (before, before_size)
            model.tree = before_model


TICKS = st.tuples(st.just("tick"), st.integers(1, TTL_MS + 2))
# The error names the value that is in the way; naming it is no read that prolongs its life.
ERROR_WITHIN_THE_LIFE: list[Any] = [
    ("append", "", "a", 1),
    ("tick", 5),
    ("set", "", "a.a", 2),
    ("tick", 5),
    ("get", "", "a", None),
]


@example(steps=ERROR_WITHIN_THE_LIFE, refresh=True)
@settings(max_examples=250, deadline=None)
@given(
    steps=st.lists(st.one_of(CALLS, CALLS, TICKS, st.just(("look",)), st.just(("fail",))), max_size=30),
    refresh=st.booleans(),
)
def test_time_to_live_matches_a_model_with_timestamps(steps: list[Any], refresh: bool) -> None:
    clock = ManualClock()
    root = Fields()
    totals: dict[str, Any] = {}
    journal = Journal()
    tree = Memory(
        "short-term", root, journal, 10**6, totals, ttl_ms=TTL_MS, refresh_on_read=refresh, clock=clock
    )
    memory = MemoryObject(tree)
    model = Model(clock, TTL_MS, refresh)
    kept = copy.deepcopy(model.tree)
    for step in steps:
        if step[0] == "tick":
            clock.advance(step[1])
        elif step[0] == "look":
            assert memory.to_dict() == model.to_dict()
            journal.changes.clear()
            kept = copy.deepcopy(model.tree)
        elif step[0] == "fail":
            journal.undo()
            model.tree = copy.deepcopy(kept)
        else:
            call(memory, model, *step)
        assert totals.get("bytes", 0) == size_of(root) >= 0
        leaves = {path for path, value in flat(root) if value.__class__ is not Node}
        assert leaves <= set(tree.stamps), "a value without a stamp"
        assert set(tree.stamps) <= {path for path, _ in flat(root)}, "a stamp without a value"


def flat(node: dict[str, Any], inside: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in node.items():
        found.append((inside + name, value))
        if value.__class__ is Node:
            found.extend(flat(value, f"{inside}{name}."))
    return found


@settings(max_examples=150, deadline=None)
@given(calls=st.lists(CALLS, max_size=25), limit=st.integers(1, 60))
def test_the_limit_is_never_exceeded_and_a_rejected_write_changes_nothing(
    calls: list[Any], limit: int
) -> None:
    root = Fields()
    totals: dict[str, Any] = {}
    memory = MemoryObject(Memory("short-term", root, Journal(), limit, totals))
    for name, prefix, path, argument in calls:
        if name not in {"set", "append", "delete", "new_object"}:
            continue
        inside = f"{prefix}.{path}" if prefix else path
        before = copy.deepcopy(root)
        try:
            getattr(memory, name)(*([inside] if name == "delete" else [inside, copy.deepcopy(argument)]))
        except (InvalidArgument, MemoryTooLarge):
            assert root == before
        assert totals.get("bytes", 0) == size_of(root)
        assert size_of(root) <= limit
