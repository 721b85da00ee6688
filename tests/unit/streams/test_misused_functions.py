"""Functions that a step could not use as they are given are rejected when the step is added, not when records come."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest

from emberflow.errors import InvalidArgument
from emberflow.streams import (
    AggregateFunction,
    AsyncDataStream,
    AsyncFunction,
    FilterFunction,
    MapFunction,
    ProcessFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)

FIVE_S = TumblingEventTimeWindows.of(timedelta(seconds=5))


async def later(*values: Any) -> Any:
    return values[0]


async def one_by_one(value: Any) -> AsyncIterator[Any]:
    yield value


class AsyncCallable:
    async def __call__(self, value: Any) -> Any:
        return value


class AsyncProcess(ProcessFunction[Any, Any]):
    async def process_element(self, value: Any, ctx: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return [value]


class Same(MapFunction[Any, Any]):
    def map(self, value: Any) -> Any:
        return value


class Static:
    @staticmethod
    def map(value: Any) -> Any:
        return -value


class Everything(FilterFunction[Any]):
    def filter(self, value: Any) -> bool:
        return True


class Count(AggregateFunction[Any, int, int]):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator


class Window(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        return elements


class Call(AsyncFunction[Any, Any]):
    async def async_invoke(self, value: Any) -> list[Any]:
        return [value]


def stream() -> Any:
    return StreamExecutionEnvironment.get_execution_environment(engine="local").from_collection([1, 2])


ASYNC: dict[str, Callable[[Any], Any]] = {
    "map": lambda s: s.map(later),
    "map of an object": lambda s: s.map(AsyncCallable()),
    "filter": lambda s: s.filter(later),
    "flat_map": lambda s: s.flat_map(one_by_one),
    "process": lambda s: s.process(AsyncProcess()),
    "key_by": lambda s: s.key_by(later),
    "reduce": lambda s: s.key_by(str).reduce(later),
    "map with keys": lambda s: s.key_by(str).map(later),
    "window": lambda s: s.key_by(str).window(FIVE_S).process(later),
    "window_all": lambda s: s.window_all(FIVE_S).apply(later),
    "sink": lambda s: s.add_sink(later),
}


@pytest.mark.parametrize("misuse", ASYNC.values(), ids=ASYNC.keys())
def test_a_coroutine_function_where_nothing_is_awaited(misuse: Callable[[Any], Any]) -> None:
    with pytest.raises(InvalidArgument, match="is a coroutine function") as caught:
        misuse(stream())
    assert "AsyncDataStream" in (caught.value.way_out or "")


CLASSES: dict[str, Callable[[Any], Any]] = {
    "Same(…)": lambda s: s.map(Same),
    "Everything(…)": lambda s: s.filter(Everything),
    "AsyncProcess(…)": lambda s: s.process(AsyncProcess),
    "Window(…)": lambda s: s.key_by(str).window(FIVE_S).process(Window),
    "Count(…)": lambda s: s.key_by(str).window(FIVE_S).aggregate(Count),
    "TumblingEventTimeWindows.of(…)": lambda s: s.window_all(TumblingEventTimeWindows),
    "Call(…)": lambda s: AsyncDataStream.unordered_wait(s, Call, 1000),  # pyright: ignore[reportArgumentType]
}


@pytest.mark.parametrize("made", CLASSES)
def test_a_class_instead_of_an_object(made: str) -> None:
    with pytest.raises(InvalidArgument, match="needs an object, not the class") as caught:
        CLASSES[made](stream())
    assert caught.value.way_out == f"create one: {made}"


def test_a_class_that_can_be_called_as_it_is() -> None:
    assert stream().map(Static).execute_and_collect(limit=2) == [-1, -2]
    assert stream().map(str).execute_and_collect(limit=2) == ["1", "2"]


@pytest.mark.parametrize("step", ["sum", "reduce", "window", "min_by"])
def test_a_step_that_needs_keys(step: str) -> None:
    with pytest.raises(
        AttributeError, match=rf"'DataStream' object has no {step}\(\); call key_by\(\) before it"
    ):
        getattr(stream(), step)


def test_steps_that_need_a_window_or_its_result() -> None:
    with pytest.raises(AttributeError, match=r"call key_by\(\) and window\(\), or window_all\(\), before it"):
        stream().allowed_lateness(5)
    for windows in (stream().window_all(FIVE_S), stream().key_by(str).window(FIVE_S)):
        with pytest.raises(AttributeError, match=r"call reduce\(\), aggregate\(\), apply\(\) or process\(\)"):
            windows.print()


def test_a_misspelled_step_is_an_ordinary_error() -> None:
    misspelled: Any = stream()
    with pytest.raises(AttributeError, match="'DataStream' object has no attribute 'keyby'"):
        misspelled.keyby(str)
    assert not hasattr(misspelled, "_no_such_attribute")


LATER: dict[str, Callable[[Any], Any]] = {
    "map(), flat_map() or process()": lambda s: s.connect(s).print(),
    "where()": lambda s: s.join(s).apply(max),
    "equal_to()": lambda s: s.co_group(s).where(str).window(FIVE_S),
    "window()": lambda s: s.join(s).where(str).equal_to(str).apply(max),
    "apply()": lambda s: s.join(s).where(str).equal_to(str).window(FIVE_S).print(),
}


@pytest.mark.parametrize("first", LATER)
def test_a_step_that_two_streams_offer_later(first: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(f"call {first} before it")):
        LATER[first](stream())


WRONG: dict[str, Callable[[Any], Any]] = {
    "aggregate() needs an AggregateFunction": lambda s: s.window_all(FIVE_S).aggregate(max),
    "assign_timestamps_and_watermarks() needs a WatermarkStrategy": lambda s: (
        s.assign_timestamps_and_watermarks(str)
    ),
    "get_side_output() needs an OutputTag, not 'late'": lambda s: s.get_side_output("late"),
}


@pytest.mark.parametrize("message", WRONG)
def test_an_argument_of_another_kind(message: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(message)) as caught:
        WRONG[message](stream())
    assert caught.value.way_out
