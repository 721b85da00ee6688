"""Which functions give their state a time to live, as far as their code shows."""

from __future__ import annotations

from typing import Any

import pytest

from emberflow.plan.specs import KeyedProcessSpec, ReduceSpec
from emberflow.plan.state_use import enables_ttl
from emberflow.state.descriptors import ValueStateDescriptor
from emberflow.state.ttl_config import StateTtlConfig
from emberflow.streams import KeyedProcessFunction, ReduceFunction

HOUR = StateTtlConfig.new_builder(3_600_000).build()


def living(name: str) -> ValueStateDescriptor[int]:
    made: ValueStateDescriptor[int] = ValueStateDescriptor(name)
    made.enable_time_to_live(HOUR)
    return made


class InOpen(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        descriptor = ValueStateDescriptor("v")
        descriptor.enable_time_to_live(HOUR)

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value


class ByAFunction(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield self.make()

    def make(self) -> Any:
        return [living(name) for name in "ab"]


class InAField(KeyedProcessFunction):
    def __init__(self) -> None:
        self.descriptor = living("v")

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value


class Inherited(InOpen):
    pass


class Without(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("v"))
        self.me = self

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value


class Sums(ReduceFunction):
    def open(self, runtime_context: Any) -> None:
        runtime_context.get_state(living("v"))

    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1


@pytest.mark.parametrize(
    "function", [InOpen(), ByAFunction(), InAField(), Inherited(), lambda value: living("x")]
)
def test_a_time_to_live_is_found(function: Any) -> None:
    assert enables_ttl(function)


@pytest.mark.parametrize("function", [Without(), len, None, lambda value: value])
def test_other_functions_have_none(function: Any) -> None:
    assert not enables_ttl(function)


def test_such_a_step_has_timers() -> None:
    """On Spark a key group without input is only served by a timer."""
    assert KeyedProcessSpec(function=InOpen(), calls=()).traits.sets_timers
    assert not KeyedProcessSpec(function=Without(), calls=()).traits.sets_timers
    assert ReduceSpec(function=Sums(), combine=max).traits.sets_timers
