"""Agents' memory: paths, values, limits and what is said when something does not fit."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from emberflow.errors import InvalidArgument, MemoryTooLarge, NotSerializable
from emberflow.state.memory import Journal, Memory, tree_size
from emberflow.state.memory_object import MemoryObject, MemoryRef, MemoryType
from emberflow.state.pages import Fields, Node
from emberflow.testing import ManualClock


def memory_of(limit: int = 10_000, **settings: Any) -> MemoryObject:
    return MemoryObject(Memory("short-term", Fields(), Journal(), limit, {}, **settings))


def tree_of(memory: MemoryObject) -> Memory:
    return memory._memory


def test_paths_make_nested_objects() -> None:
    memory = memory_of()
    memory.set("user.name.first", "Ann")
    memory.set("user.age", 40)
    assert memory.to_dict() == {"user": {"name": {"first": "Ann"}, "age": 40}}
    user = memory.get("user")
    assert isinstance(user, MemoryObject)
    assert user.get("name.first") == "Ann"
    assert user.keys() == user.get_field_names() == ["age", "name"]
    assert "age" in user
    assert not user.is_exist("name.last")
    assert memory.get("user.phone", "none") == "none"


def test_a_plain_dictionary_is_a_value_as_a_whole() -> None:
    memory = memory_of()
    memory.set("settings", {"a": {"b": 1}})
    assert memory.get("settings") == {"a": {"b": 1}}
    assert memory.get("settings.a") is None
    assert not memory.delete("settings.a")
    with pytest.raises(InvalidArgument) as caught:
        memory.set("settings.a", 2)
    assert "short-term memory: 'settings.a' cannot be set, because 'settings' contains a value" in str(
        caught.value
    )
    assert "delete('settings') first, or use another path" in str(caught.value)


def test_lists_grow_by_append() -> None:
    memory = memory_of()
    memory.append("log", 1)
    memory.append("log", 2)
    assert memory.get("log") == [1, 2]
    memory.set("name", "Ann")
    with pytest.raises(InvalidArgument, match="'name' contains a str, so nothing can be appended to it"):
        memory.append("name", 1)


def test_lists_that_were_handed_out_stay_as_they_are() -> None:
    memory, mine = memory_of(), [1]
    memory.set("log", mine)
    before = memory.get("log")
    everything = memory.to_dict()
    memory.append("log", 2)
    assert (mine, before, everything) == ([1], [1], {"log": [1]})
    before.append(9)
    assert memory.get("log") == [1, 2]


def test_delete_says_whether_there_was_something() -> None:
    memory = memory_of()
    memory.set("a.b", 1)
    assert memory.delete("a.b")
    assert not memory.delete("a.b")
    assert not memory.delete("x.y")
    assert memory.delete("a")
    assert memory.to_dict() == {}


def test_new_objects() -> None:
    memory = memory_of()
    memory.new_object("user").set("name", "Ann")
    assert memory.new_object("user").get("name") == "Ann", "an existing one is kept"
    memory.set("other", 1)
    with pytest.raises(InvalidArgument) as caught:
        memory.new_object("other")
    assert "'other' already contains a value" in str(caught.value)
    assert "new_object(path, overwrite=True)" in str(caught.value)
    assert memory.new_object("other", overwrite=True).to_dict() == {}
    with pytest.raises(InvalidArgument, match="cannot be set to a memory object"):
        memory.set("copy", memory.get("user"))


@pytest.mark.parametrize("path", ["", ".", "a.", ".a", "a..b"])
def test_empty_names_are_refused_before_anything_changes(path: str) -> None:
    memory = memory_of()
    with pytest.raises(InvalidArgument, match="has an empty name"):
        memory.set(path, 1)
    assert memory.to_dict() == {}
    assert memory.get(path) is None


def test_a_refused_write_leaves_no_empty_objects() -> None:
    memory = memory_of(limit=10)
    with pytest.raises(MemoryTooLarge):
        memory.set("a.b", "x" * 20)
    with pytest.raises(NotSerializable):
        memory.set("c.d", (number for number in [1]))
    assert memory.to_dict() == {}


def test_objects_that_come_and_go_do_not_fill_memory() -> None:
    memory = memory_of(limit=100)
    for _ in range(200):
        memory.new_object("conversation").set("text", "hello")
        memory.delete("conversation")
        memory.set("value", None)
        memory.set("value.deep", 1)
        memory.delete("value")
    assert tree_of(memory).totals == {"bytes": 0}


def test_names_of_objects_count_as_well() -> None:
    memory = memory_of(limit=100)
    for number in range(10):
        memory.new_object(f"an object{number}")
    assert tree_size(tree_of(memory).root) == 100
    with pytest.raises(MemoryTooLarge):
        memory.new_object("b")


def test_the_limit_is_explained() -> None:
    memory = memory_of(limit=50)
    memory.set("text", "x" * 40)
    memory.set("text", "y" * 45)
    with pytest.raises(MemoryTooLarge) as caught:
        memory.set("more", "z" * 10)
    text = str(caught.value)
    assert "short-term memory would grow to 63 bytes by writing 'more'; the limit is 50" in text
    assert "delete what is no longer needed, or raise the option 'memory.max-bytes'" in text
    memory.set("text", "")


def test_references() -> None:
    memory = memory_of()
    ref = memory.get("user") or memory.new_object("user").set("name", "Ann")
    assert ref == MemoryRef("short-term", "user.name")
    assert memory.get(ref) == "Ann"
    assert hash(ref) == hash(pickle.loads(pickle.dumps(ref)))
    assert repr(ref) == "MemoryRef('short-term', 'user.name')"
    assert "user" in repr(memory)


def test_the_tree_survives_pickling_with_its_objects() -> None:
    memory = memory_of()
    memory.set("user.name", "Ann")
    memory.set("plain", {"a": 1})
    root = pickle.loads(pickle.dumps(tree_of(memory).root))
    again = MemoryObject(Memory("short-term", root, Journal(), 1_000, {}))
    assert root["user"].__class__ is Node
    assert again.get("user.name") == "Ann"
    assert again.get("plain.a") is None


def test_undo_and_redo() -> None:
    memory = memory_of()
    memory.set("a.b", 1)
    journal = tree_of(memory).journal
    journal.changes.clear()
    memory.append("log", 1)
    memory.append("log", 2)
    memory.delete("a")
    memory.set("a", 5)
    undone = journal.suspend()
    assert memory.to_dict() == {"a": {"b": 1}}
    journal.proceed(undone)
    assert memory.to_dict() == {"log": [1, 2], "a": 5}
    journal.undo()
    assert memory.to_dict() == {"a": {"b": 1}}


def test_an_expired_value_is_not_in_the_way() -> None:
    clock = ManualClock()
    memory = memory_of(ttl_ms=10, clock=clock)
    memory.set("user", "Ann")
    clock.advance(10)
    memory.set("user.name", "Bob")
    assert memory.to_dict() == {"user": {"name": "Bob"}}
    clock.advance(10)
    assert not memory.delete("user.name")
    assert memory.keys() == ["user"]


def test_values_from_before_there_was_a_time_to_live_begin_to_age_now() -> None:
    clock = ManualClock(1_000)
    memory = MemoryObject(
        Memory("short-term", Fields({"old": 1}), Journal(), 1_000, {}, ttl_ms=10, clock=clock)
    )
    assert memory.get("old") == 1
    clock.advance(9)
    assert memory.get("old") == 1
    clock.advance(1)
    assert memory.get("old") is None


@pytest.mark.parametrize(("refresh", "alive"), [(True, True), (False, False)])
def test_reading_may_keep_a_value_alive(refresh: bool, alive: bool) -> None:
    clock = ManualClock()
    memory = memory_of(ttl_ms=10, refresh_on_read=refresh, clock=clock)
    memory.set("a", 1)
    clock.advance(6)
    assert memory.get("a") == 1
    clock.advance(6)
    assert memory.is_exist("a") is alive


def test_values_do_not_replace_nested_objects() -> None:
    memory = memory_of()
    memory.set("user.name", "Ann")
    with pytest.raises(ValueError, match="'user' cannot be set, because it is a nested object") as caught:
        memory.set("user", 5)
    assert "it has 'name'" in str(caught.value)
    assert memory.to_dict() == {"user": {"name": "Ann"}}
    memory.delete("user")
    memory.set("user", 5)
    assert memory.get("user") == 5


def test_fields_names_and_none_as_in_flink_agents() -> None:
    memory = memory_of()
    memory.set("user.name", "Ann")
    memory.set("nothing", None)
    assert memory.get_fields() == {"nothing": None, "user": "NestedObject"}
    assert memory.get_field_names() == ["nothing", "user"]
    assert (memory.is_exist("nothing"), "user.name" in memory, "user.age" in memory) == (True, True, False)
    assert not memory.is_exist("nothing.more")


def test_references_have_types_and_the_shape_of_models() -> None:
    memory = memory_of()
    ref = memory.set("user.name", "Ann")
    assert ref == MemoryRef.create(MemoryType.SHORT_TERM, "user.name") == MemoryRef(path="user.name")
    assert ref.model_dump() == {"memory_type": "short_term", "path": "user.name"}
    assert MemoryRef.model_validate(ref.model_dump()) == ref
    assert memory.get(ref.model_dump()) == "Ann"  # pyright: ignore[reportArgumentType]
    assert MemoryRef.create(MemoryType.SENSORY, "a").memory_type is MemoryType.SENSORY
    assert MemoryRef.create(MemoryType.SENSORY, "a") != MemoryRef.create("short_term", "a")
    with pytest.raises(InvalidArgument, match="did you mean 'sensory'"):
        MemoryRef.create("sensry", "a")
    with pytest.raises(InvalidArgument, match="needs a field 'path'"):
        MemoryRef.model_validate({})
