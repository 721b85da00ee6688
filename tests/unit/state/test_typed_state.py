"""State of a declared type: what is written is converted, what does not fit is refused with the name of the state."""

from __future__ import annotations

from typing import Any

import pytest

from emberflow.event_time.clock import FixedClock
from emberflow.events.types.converters import TypeMismatch
from emberflow.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from emberflow.state.entry import Cursor
from emberflow.state.handles import ListState, MapState, ValueState, make_handle
from emberflow.streams import AggregateFunction, Row, StateTtlConfig, Time, Types

WORD = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])


class Total(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator + value

    def get_result(self, accumulator: Any) -> Any:
        return accumulator


@pytest.fixture(params=["lasting", "with time to live"])
def handle(request: pytest.FixtureRequest) -> Any:
    def make(descriptor: StateDescriptor) -> Any:
        if request.param != "lasting":
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
        cursor = Cursor()
        cursor.clock = FixedClock(1000)
        return make_handle(descriptor, cursor)

    return make


def test_a_value(handle: Any) -> None:
    state = handle(ValueStateDescriptor("last", WORD))
    assert isinstance(state, ValueState)
    assert state.value() is None
    state.update(("a", 1.0))
    assert state.value() == Row(word="a", n=1)
    with pytest.raises(
        TypeMismatch, match=r"field 'n' of state 'last': the value 'x' is not of the type Integer"
    ):
        state.update(("a", "x"))
    assert state.value() == Row(word="a", n=1)
    state.update(None)
    assert state.value() is None
    state.update(Row("b", None))
    state.clear()
    assert state.value() is None


def test_a_list(handle: Any) -> None:
    state = handle(ListStateDescriptor("seen", Types.DOUBLE()))
    assert isinstance(state, ListState)
    state.add(1)
    state.add_all([2, 3.5])
    assert (list(state.get()), list(state)) == ([1.0, 2.0, 3.5], [1.0, 2.0, 3.5])
    with pytest.raises(TypeMismatch, match="state 'seen': the value 'x' is not of the type Double"):
        state.update([4, "x"])
    assert list(state.get()) == [1.0, 2.0, 3.5]
    state.update([True])
    assert [type(item) for item in state.get()] == [float]
    state.clear()
    assert list(state.get()) == []


def test_a_map(handle: Any) -> None:
    state = handle(MapStateDescriptor("rows", Types.TUPLE([Types.STRING(), Types.INT()]), WORD))
    assert isinstance(state, MapState)
    state.put(("a", 1), ("a", 1))
    state.put_all({("b", 2): {"word": "b", "n": 2}})
    state["c", True] = Row("c", 3)
    row = Row(word="a", n=1)
    assert (state.get(("a", 1)), state["a", 1], state.get(["a", 1])) == (row, row, row)
    assert (state.contains(["b", 2]), ("z", 1) in state, state.is_empty()) == (True, False, False)
    assert sorted(state.keys()) == sorted(state) == [("a", 1), ("b", 2), ("c", 1)]
    assert {value.n for value in state.values()} == {value.n for _, value in state.items()} == {1, 2, 3}
    state.remove(["a", 1])
    del state["b", 2]
    assert list(state.keys()) == [("c", 1)]
    with pytest.raises(TypeMismatch, match="a key of state 'rows'"):
        state.put("a", row)
    with pytest.raises(TypeMismatch, match="field 'n' of state 'rows'"):
        state.put(("a", 1), ("a", "x"))
    state.clear()
    assert state.is_empty()


def test_reducing_and_aggregating(handle: Any) -> None:
    largest = handle(ReducingStateDescriptor("largest", max, Types.DOUBLE()))
    largest.add(1)
    largest.add(3)
    assert (largest.get(), type(largest.get())) == (3.0, float)
    total = handle(AggregatingStateDescriptor("total", Total(), Types.INT()))
    total.add(1.5)
    total.add(1.5)
    assert total.get() == 2
    with pytest.raises(TypeMismatch, match="state 'first': the value 'x'"):
        handle(ReducingStateDescriptor("first", max, Types.DOUBLE())).add("x")


def test_undeclared_and_plain_types_convert_nothing(handle: Any) -> None:
    for declared in (None, int, Types.PICKLED_BYTE_ARRAY()):
        state = handle(ValueStateDescriptor("any", declared))
        state.update("text")
        assert state.value() == "text"
        assert not type(state).__name__.startswith("Typed")
