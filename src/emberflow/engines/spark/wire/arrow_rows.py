"""Packet rows as Arrow record batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from emberflow.engines.spark.wire.packet_rows import PacketRow

SCHEMA = pa.schema(
    [("kg", pa.int32()), ("dest", pa.int32()), ("n", pa.int64()), ("wm", pa.int64()), ("packet", pa.binary())]
)
_BYTES_PER_BATCH = 8 * 1024 * 1024


def record_batches(rows: list[PacketRow]) -> Iterator[Any]:
    """Rows in record batches of a few megabytes each."""
    part: list[PacketRow] = []
    size = 0
    for row in rows:
        part.append(row)
        size += len(row.packet) + 32
        if size >= _BYTES_PER_BATCH:
            yield _batch(part)
            part, size = [], 0
    if part:
        yield _batch(part)


def _batch(rows: list[PacketRow]) -> Any:
    columns = list(zip(*rows, strict=True))
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def rows_of(batch: Any) -> Iterator[PacketRow]:
    return map(PacketRow._make, zip(*(column.to_pylist() for column in batch.columns), strict=True))
