"""Records as rows of a DataFrame with the user's schema. Runs in Spark's workers.

A naive datetime in a `timestamp` column is interpreted in the session's time zone, as everywhere in Spark; an aware one is
that instant. Values are never rounded or truncated silently: a value that does not fit is an error that names the record
and the column.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from emberflow.connectors.table_rows import as_row
from emberflow.engines.spark.wire.arrow_rows import rows_of
from emberflow.engines.spark.wire.frame_types import zone_of
from emberflow.engines.spark.worker.column_values import Convert, Misfit, converter, plain_types
from emberflow.errors import NotSerializable, describe_cause, shorten
from emberflow.events.packets import decode_packet


@dataclass(frozen=True, slots=True)
class _Column:
    field: Any
    """The field of the Spark schema."""
    arrow: Any
    convert: Convert | None
    plain: frozenset[type]
    """Types of values that need no conversion."""

    def array(self, values: list[Any]) -> Any:
        """Raises Misfit, or pyarrow's errors."""
        if self.convert is not None and not self.plain.issuperset(map(type, values)):
            values = [self.convert(value) for value in values]
        if not self.field.nullable and any(value is None for value in values):
            raise Misfit("None, but the column is not null")
        return pa.array(values, self.arrow.type)


_MISFITS = (Misfit, pa.ArrowException, OverflowError, TypeError, ValueError, AttributeError)


class RowEncoder:
    """Encodes records for one schema, a StructType, and the time zone of the session."""

    def __init__(self, struct: Any, time_zone: str) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema

        # Spark accepts any time zone here: it is a label, the values are instants.
        self._arrow = to_arrow_schema(struct, timezone="UTC")
        self._struct = struct
        self._names: list[str] = struct.names
        zone = zone_of(time_zone)
        self._columns = [
            _Column(field, arrow, converter(field.dataType, zone), plain_types(field.dataType))
            for field, arrow in zip(struct.fields, self._arrow, strict=True)
        ]

    def encode(self, records: Sequence[Any]) -> Any:
        """A record batch."""
        names = frozenset(self._names)
        rows: list[dict[str, Any]] = [
            record if type(record) is dict and record.keys() == names else as_row(record, self._names)
            for record in records
        ]
        arrays: list[Any] = []
        for column in self._columns:
            name = column.field.name
            try:
                arrays.append(column.array([row[name] for row in rows]))
            except _MISFITS as error:
                raise self._blame(column, records, rows, error) from error
        return pa.RecordBatch.from_arrays(arrays, schema=self._arrow)

    def _blame(
        self, column: _Column, records: Sequence[Any], rows: list[dict[str, Any]], error: Exception
    ) -> NotSerializable:
        """The error of the first record whose value does not fit the column."""
        record = records[0]
        for candidate, row in zip(records, rows, strict=True):
            try:
                column.array([row[column.field.name]])
            except _MISFITS as alone:
                record, error = candidate, alone
                break
        return NotSerializable(
            f"the record {shorten(record)} does not fit the column {column.field.name!r} "
            f"({column.field.dataType.simpleString()})",
            cause=str(error) if isinstance(error, Misfit) else describe_cause(error),
            way_out="give to_dataframe() a schema that matches the records, or map them before it",
        )


def decode_rows(schema: str, time_zone: str, batches: Iterator[Any]) -> Iterator[Any]:
    """`schema` is a StructType as JSON."""
    from pyspark.sql.types import StructType

    encoder = RowEncoder(StructType.fromJson(json.loads(schema)), time_zone)
    for batch in batches:
        for row in rows_of(batch):
            yield encoder.encode(decode_packet(row.packet).batch.values)
