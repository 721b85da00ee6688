"""`Schema`: the columns of a table, in order, and its watermark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from emberflow.errors import InvalidArgument, did_you_mean, shorten
from emberflow.events.types.type_information import RowTypeInfo
from emberflow.streams.tables.data_types import DataType, DataTypes, Kind, checked_name, checked_type
from emberflow.streams.tables.refusals import refuse
from emberflow.streams.tables.time_expressions import Behind, ToTimestamp, behind, to_timestamp


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `computed` is the expression of one that is not stored."""

    name: str
    data_type: DataType
    computed: ToTimestamp | None = None


@dataclass(frozen=True, slots=True)
class Schema:
    """Columns and a watermark; created by `Schema.new_builder()`."""

    columns: tuple[Column, ...]
    event_time: Behind | None = None

    @staticmethod
    def new_builder() -> SchemaBuilder:
        """Starts building a schema; finish with `build()`."""
        return SchemaBuilder()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(column.name for column in self.columns)

    @property
    def stored(self) -> tuple[Column, ...]:
        """The columns that are not computed."""
        return tuple(column for column in self.columns if column.computed is None)

    @property
    def row_type(self) -> RowTypeInfo:
        """The type of the table's rows."""
        return row_type(self.columns)

    def place(self, name: str, table: str) -> int:
        """The position of a column; raises InvalidArgument, which suggests the closest name."""
        if name not in self.names:
            raise InvalidArgument(
                f"{table} has no column {name!r}{did_you_mean(name, self.names)}",
                cause=f"its columns: {', '.join(self.names)}",
            )
        return self.names.index(name)

    def __str__(self) -> str:
        shown = [f"`{column.name}` {column.data_type}" for column in self.columns]
        return f"({', '.join(shown)})"


def row_type(columns: Sequence[Column]) -> RowTypeInfo:
    """The type of rows with these columns."""
    types = tuple(column.data_type.type_info for column in columns)
    return RowTypeInfo(types, tuple(column.name for column in columns))


class SchemaBuilder:
    """Declares columns one by one."""

    def __init__(self) -> None:
        self._columns: list[Column] = []
        self._event_time: Behind | None = None

    def column(self, column_name: str, data_type: DataType | str) -> SchemaBuilder:
        """A column of the stored rows; a plain type may be given by its name in SQL, such as `BIGINT`."""
        return self._add(Column(checked_name(column_name, "a column"), checked_type(data_type)))

    def column_by_expression(self, column_name: str, expr: str) -> SchemaBuilder:
        """A column computed from another one: ``TO_TIMESTAMP_LTZ(`ts` * 1000, 3)``. Others raise `NotSupported`."""
        name = checked_name(column_name, "a column")
        given: Any = expr
        if not isinstance(given, str):
            refuse(f"the expression {shorten(given)} of column {name!r}", "write the expression as a string")
        return self._add(Column(name, DataTypes.TIMESTAMP_LTZ(3), to_timestamp(expr, name)))

    def watermark(self, column_name: str, watermark_expr: str) -> SchemaBuilder:
        """Event time is that of a column, and the watermark follows it: `rowtime - INTERVAL '5' SECOND`."""
        if self._event_time is not None:
            raise InvalidArgument(
                f"a schema has one watermark, and {self._event_time.column!r} has it already"
            )
        given: Any = watermark_expr
        if not isinstance(given, str):
            refuse(f"the watermark {shorten(given)}", "write the expression as a string")
        self._event_time = behind(watermark_expr, checked_name(column_name, "a column"))
        return self

    def from_fields(self, field_names: Sequence[str], field_data_types: Sequence[DataType]) -> SchemaBuilder:
        """A column for each name."""
        if len(field_names) != len(field_data_types):
            raise InvalidArgument(f"{len(field_names)} names were given for {len(field_data_types)} types")
        for name, data_type in zip(field_names, field_data_types, strict=True):
            self.column(name, data_type)
        return self

    def from_row_data_type(self, data_type: DataType) -> SchemaBuilder:
        """A column for each field of `DataTypes.ROW(…)`."""
        made = checked_type(data_type)
        if made.kind is not Kind.ROW:
            raise InvalidArgument(f"{made} is not the type of a row", way_out="use DataTypes.ROW([…])")
        return self.from_fields(made.names, made.parts)

    def from_schema(self, origin_schema: Schema) -> SchemaBuilder:
        """All columns of another schema, and its watermark."""
        for column in origin_schema.columns:
            self._add(column)
        self._event_time = origin_schema.event_time or self._event_time
        return self

    def column_by_metadata(self, *_: Any, **__: Any) -> NoReturn:
        """Raises `NotSupported`."""
        refuse("a column of metadata", "add it with map() on t_env.to_data_stream(table)")

    def primary_key(self, *_: Any) -> NoReturn:
        """Raises `NotSupported`: tables are streams of inserted rows."""
        refuse("a primary key", "leave it out: tables are streams of inserted rows; key_by() groups them")

    def build(self) -> Schema:
        """The schema; raises `InvalidArgument` for an expression over a column that it does not have, or no number."""
        schema = Schema(tuple(self._columns), self._event_time)
        if not self._columns:
            raise InvalidArgument("a schema needs a column", way_out="column(name, DataTypes.STRING())")
        for column in self._columns:
            if column.computed is not None:
                origin = self._columns[schema.place(column.computed.column, "the schema")]
                if origin.computed is not None or origin.data_type.kind is not Kind.WHOLE:
                    raise InvalidArgument(
                        f"column {column.name!r} is computed from {origin.name!r}, which is {origin.data_type}",
                        way_out="compute it from a column of whole numbers, such as BIGINT",
                    )
        if self._event_time is not None:
            timed = self._columns[schema.place(self._event_time.column, "the schema")]
            if timed.data_type.kind not in (Kind.TIMESTAMP, Kind.INSTANT):
                raise InvalidArgument(
                    f"the watermark needs a column of points in time, and {timed.name!r} is {timed.data_type}",
                    way_out="add one: column_by_expression('rowtime', \"TO_TIMESTAMP_LTZ(`ts`, 3)\")",
                )
        return schema

    def _add(self, column: Column) -> SchemaBuilder:
        if any(column.name == other.name for other in self._columns):
            raise InvalidArgument(f"two columns have the name {column.name!r}", way_out="rename one of them")
        self._columns.append(column)
        return self
