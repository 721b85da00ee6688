"""Records as rows of a DataFrame with the user's schema. Runs in Spark's workers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from emberflow.connectors.dataframe import as_row, column_names
from emberflow.engines.spark.arrow_rows import rows_of
from emberflow.errors import NotSerializable, describe_cause, shorten
from emberflow.events.packets import decode_packet


def decode_rows(schema: str, batches: Iterator[Any]) -> Iterator[Any]:
    """`schema` is a StructType as JSON."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    struct: Any = StructType.fromJson(json.loads(schema))
    arrow = to_arrow_schema(struct)
    columns = column_names(struct)
    for batch in batches:
        for row in rows_of(batch):
            records = [as_row(value, columns) for value in decode_packet(row[4]).batch.values]
            try:
                yield pa.RecordBatch.from_pylist(records, schema=arrow)
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                raise NotSerializable(
                    f"the records {shorten(records[:3])} do not fit the schema {struct.simpleString()}",
                    cause=describe_cause(error),
                    way_out="give to_dataframe() a schema that fits the records, or map them before it",
                ) from error
