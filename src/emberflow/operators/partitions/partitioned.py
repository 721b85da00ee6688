"""The head of a partitioned stage: an operator per numbered task, without keys.

It merges the watermarks of its channels as a keyed operator does, and passes records on to the first step behind the
partitioner. What it keeps of its own belongs to the task, not to a key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from emberflow.event_time.clock import Clock
from emberflow.events.batch import MIN_WATERMARK, Batch, marks_of
from emberflow.operators.contexts import PlainContext
from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.operator import Step, close_function, open_function
from emberflow.operators.partitions.operator_state import TaskState
from emberflow.operators.scope import Scope


class NumberedTask(KeyedOperator):
    """What heads a partitioned stage: no keys, but perhaps operator state."""

    has_keys = False
    task_state: TaskState | None = None

    def enter(self, scope: Scope) -> None:
        super().enter(scope)
        if self.task_state is not None:
            self.task_state.entered(scope)

    def enter_unfilled(self, scope: Scope) -> None:
        super().enter(scope)

    def before_save(self) -> None:
        if self.task_state is not None:
            self.task_state.snapshot()


class PartitionedHead(NumberedTask):
    """Stands before the first step of a partitioned stage."""

    def process(self, batch: Batch, watermarks: Sequence[int] | None, input_index: int) -> None:
        marks: list[int] | None = None
        if watermarks is not None:
            current = self.scope.watermark
            marks = []
            for mark in watermarks:
                if mark > current:
                    current = mark
                marks.append(current)
            self.scope.watermark = current
        elif self.scope.watermark != MIN_WATERMARK:
            # For the steps of the chain, which do not remember it.
            marks = [self.scope.watermark] * len(batch)
        self.output.batch(Batch(batch.values, batch.timestamps, marks, None, batch.origins))


class CoProcessOperator(NumberedTask):
    """Two inputs without keys: one function object per task sees the records of both."""

    def __init__(
        self, step: Step, function: Any, calls: Sequence[Callable[[Any, Any], Any]], clock: Clock
    ) -> None:
        super().__init__(step)
        self.function = function
        self._calls = calls
        context = PlainContext(step.name, clock)
        self._contexts: tuple[Any, Any] = (context, context)
        """By input."""

    def open(self, context: Any) -> None:
        open_function(self.function, context)

    def close(self) -> None:
        close_function(self.function)

    def process(self, batch: Batch, watermarks: Sequence[int] | None, input_index: int) -> None:
        call, context, current = self._calls[input_index], self._contexts[input_index], self.scope.watermark
        stamps = batch.stamps()
        marks = marks_of(watermarks, batch)
        context._watermark = current
        value: Any = None
        try:
            for value, stamp, mark in zip(batch.values, stamps, marks, strict=True):
                if mark > current:
                    self.scope.watermark = context._watermark = current = mark
                context._element_timestamp = stamp
                results = call(value, context)
                if results is not None:
                    self.collect(results, stamp, current)
        except BaseException as error:
            raise self.step.failed(value, error) from error
