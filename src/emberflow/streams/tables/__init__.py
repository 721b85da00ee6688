"""Tables as streams of rows with a schema: the part of PyFlink's Table API that needs no SQL.

Built over the stream API: a table is a `DataStream` of rows, files are read by `FileSource` and written by `FileSink`.
"""

from __future__ import annotations

from emberflow.streams.tables.data_types import DataType, DataTypes
from emberflow.streams.tables.expressions import Expression, col
from emberflow.streams.tables.schema import Schema
from emberflow.streams.tables.table import Table
from emberflow.streams.tables.table_descriptor import TableDescriptor
from emberflow.streams.tables.table_environment import StreamTableEnvironment
from emberflow.streams.tables.table_result import TableResult

__all__ = [
    "DataType",
    "DataTypes",
    "Expression",
    "Schema",
    "StreamTableEnvironment",
    "Table",
    "TableDescriptor",
    "TableResult",
    "col",
]
