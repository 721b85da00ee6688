"""The keyed-state job that several benchmarks measure: one ValueState read and written per record."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from emberflow.streams import KeyedProcessFunction, RuntimeContext, ValueState, ValueStateDescriptor

KEYS = 5_000


def record(index: int) -> tuple[str, int]:
    return "k%d" % (index % KEYS), index  # noqa: UP031  the quickest way to make the key, and this is not measured code


def key_of(value: tuple[str, int]) -> str:
    return value[0]


class RunningSum(KeyedProcessFunction):
    """Reads the key's sum, adds the record, writes it back, emits it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._sum: ValueState[Any] = runtime_context.get_state(ValueStateDescriptor("sum"))

    def process_element(self, value: tuple[str, int], ctx: Any) -> Iterable[Any]:
        total = (self._sum.value() or 0) + value[1]
        self._sum.update(total)
        yield value[0], total
