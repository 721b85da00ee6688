"""The function classes of joins and co-groups. Type parameters stand in Flink's order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from emberflow.events.output_tag import SideOutput
from emberflow.operators.joins.join_context import JoinContext
from emberflow.streams.functions.function import Function

IN1 = TypeVar("IN1", contravariant=True)
IN2 = TypeVar("IN2", contravariant=True)
OUT = TypeVar("OUT", covariant=True)


class ProcessJoinFunction(Function, Generic[IN1, IN2, OUT]):
    """Called for every pair of an interval join."""

    Context = JoinContext

    def process_element(self, left: IN1, right: IN2, ctx: JoinContext) -> Iterable[OUT | SideOutput] | None:
        """Returns or yields the results for one pair, and `(tag, value)` for side outputs."""
        raise NotImplementedError("process_element() must be overridden")


class JoinFunction(Function, Generic[IN1, IN2, OUT]):
    """One result per pair of a window join."""

    def join(self, first: IN1, second: IN2) -> OUT:
        """Returns the result for one pair."""
        raise NotImplementedError("join() must be overridden")


class FlatJoinFunction(Function, Generic[IN1, IN2, OUT]):
    """Any number of results per pair of a window join."""

    def join(self, first: IN1, second: IN2) -> Iterable[OUT | SideOutput] | None:
        """Returns or yields the results for one pair, and `(tag, value)` for side outputs."""
        raise NotImplementedError("join() must be overridden")


class CoGroupFunction(Function, Generic[IN1, IN2, OUT]):
    """Sees all records of both streams that have one key and one window, also where one of them has none."""

    def co_group(self, first: Iterable[IN1], second: Iterable[IN2]) -> Iterable[OUT | SideOutput] | None:
        """Returns or yields the results, and `(tag, value)` for side outputs."""
        raise NotImplementedError("co_group() must be overridden")
