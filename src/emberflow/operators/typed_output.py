"""The output of a step with declared types: records are converted once, before any receiver gets them.

A step without declared types has a plain `Output`, so it pays nothing.
"""

from __future__ import annotations

from typing import Any

from emberflow.errors import StepFailed
from emberflow.events.batch import Batch
from emberflow.events.isolation import COPIES, REUSED_OBJECTS, Isolation
from emberflow.events.types.conversion import converter_of
from emberflow.events.types.converters import Converter, TypeMismatch
from emberflow.operators.operator import Output, Step
from emberflow.plan.graphs.stream_graph import StreamNode


def output_of(node: StreamNode, step: Step) -> Output:
    """The output of a step, converting where it declares types."""
    main, side = node.output_type, node.side_types
    output = Output() if main is None and not side else TypedOutput(step, main, dict(side))
    output.isolation = isolation_of(node)
    return output


def isolation_of(node: StreamNode) -> Isolation:
    """How the step passes on records that can be changed."""
    return REUSED_OBJECTS if node.reuses_objects else COPIES


class TypedOutput(Output):
    """Converts the records of the main output and of side outputs to their declared types."""

    def __init__(self, step: Step, main: Any, side: dict[str, Any]) -> None:
        super().__init__()
        self._step = step
        self._converter = None if main is None else converter_of(main)
        self._side_converters = {tag_id: converter_of(declared) for tag_id, declared in side.items()}

    def batch(self, batch: Batch) -> None:
        if self._converter is not None and batch.values and self.main:
            batch = self._converted(batch, self._converter)
        super().batch(batch)

    def aside(self, tag_id: str, batch: Batch) -> None:
        converter = self._side_converters.get(tag_id)
        if converter is not None and tag_id in self.side:
            batch = self._converted(batch, converter)
        super().aside(tag_id, batch)

    def _converted(self, batch: Batch, converter: Converter) -> Batch:
        try:
            values = converter.column(batch.values)
        except TypeMismatch as error:
            raise self._failed(batch, converter, error) from None
        return Batch(values, batch.timestamps, batch.watermarks, batch.keys, batch.origins)

    def _failed(self, batch: Batch, converter: Converter, error: TypeMismatch) -> StepFailed:
        value: Any = error.value
        for value in batch.values:
            try:
                converter.one(value)
            except TypeMismatch as found:
                error = found
                break
        return self._step.misfit(value, converter.expected, error)
