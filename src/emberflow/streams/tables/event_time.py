"""Event time of tables: the watermark that a schema declares."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from emberflow.event_time.watermarks import WatermarkStrategy
from emberflow.events.types.instant import Instant
from emberflow.events.types.row import Row
from emberflow.streams.tables.schema import Schema

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class RowTime:
    """The time of a row: the value of its time column, in milliseconds. A wall time counts as UTC, as in Flink."""

    def __init__(self, column: str, table: str) -> None:
        self._column = column
        self._table = table

    def __call__(self, row: Row, timestamp: int) -> int:
        value: Any = row[self._column]
        if value is None:
            raise ValueError(
                f"column {self._column!r} of {self._table} is NULL, and its watermark needs a time"
            )
        if isinstance(value, Instant):
            return value.to_epoch_milli()
        return (value.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)


def watermarks_of(schema: Schema, table: str) -> WatermarkStrategy | None:
    """The strategy of a schema with a watermark."""
    if schema.event_time is None:
        return None
    # In SQL the watermark is the expression's value; a stream's watermark is 1 ms behind the bound on lateness.
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(max(schema.event_time.delay_ms - 1, 0))
    return strategy.with_timestamp_assigner(RowTime(schema.event_time.column, table))
