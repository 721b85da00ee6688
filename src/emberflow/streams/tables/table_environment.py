"""`StreamTableEnvironment`: tables by name, and tables from and to streams."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from emberflow.errors import InvalidArgument, did_you_mean, shorten
from emberflow.events.types.conversion import converter_of
from emberflow.events.types.converters import TypeMismatch
from emberflow.events.types.row import Row, RowShape
from emberflow.events.types.type_information import (
    BasicTypeInfo,
    RowTypeInfo,
    SqlTimeTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from emberflow.streams.data_stream import DataStream
from emberflow.streams.environment import StreamExecutionEnvironment
from emberflow.streams.tables.data_types import DataType, checked_name, data_type_of
from emberflow.streams.tables.event_time import watermarks_of
from emberflow.streams.tables.expressions import Expression
from emberflow.streams.tables.file_tables import FileTable, file_table
from emberflow.streams.tables.inferred_types import inferred_schema
from emberflow.streams.tables.refusals import no_attribute, refuse, refusing, words
from emberflow.streams.tables.schema import Column, Schema, SchemaBuilder
from emberflow.streams.tables.table import Table
from emberflow.streams.tables.table_descriptor import TableDescriptor

_SQL = "use to_dataframe() of t_env.to_data_stream(table) and Spark SQL"
_FUNCTION = "call Python functions in map() of t_env.to_data_stream(table)"
_STREAM = "make a stream, and a table of it with t_env.from_data_stream(stream, schema)"
_OTHERS = {
    **dict.fromkeys(
        words(
            "add_statement_set create_statement_set create_view execute_plan execute_sql explain_sql sql_query"
        ),
        _SQL,
    ),
    **dict.fromkeys(
        words("""
        create_java_function create_java_temporary_function create_java_temporary_system_function
        create_temporary_function create_temporary_system_function drop_function drop_temporary_function register_function
        register_java_function
        """),
        _FUNCTION,
    ),
    **dict.fromkeys(
        words("""
        create_catalog create_table drop_table from_changelog_stream from_pandas get_catalog list_catalogs list_databases
        load_module register_catalog to_changelog_stream to_retract_stream use_catalog use_database
        """),
        _STREAM,
    ),
    "get_config": "set options on the stream environment: env.configure(…)",
}


class StreamTableEnvironment:
    """Tables of a `StreamExecutionEnvironment`. A table is a stream of rows with a schema: there is no SQL and no optimizer.

    ```python
    from emberflow.streams import StreamExecutionEnvironment
    from emberflow.streams.tables import DataTypes, Schema, StreamTableEnvironment

    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    t_env = StreamTableEnvironment.create(env)
    schema = Schema.new_builder().column("word", DataTypes.STRING()).column("n", DataTypes.INT()).build()
    words = t_env.from_data_stream(env.from_collection([("to", 1), ("be", 2)]), schema)
    rows = t_env.to_data_stream(words.select("word")).execute_and_collect(limit=2)
    assert [row.word for row in rows] == ["to", "be"]
    ```
    """

    def __init__(self, env: StreamExecutionEnvironment) -> None:
        self._env = env
        self._tables: dict[str, FileTable | Table] = {}

    @staticmethod
    def create(
        stream_execution_environment: StreamExecutionEnvironment | None = None,
        environment_settings: Any = None,
    ) -> StreamTableEnvironment:
        """An environment for tables around the stream environment, or around a new one."""
        if environment_settings is not None:
            refuse("an object with settings of the table environment", "set options with env.configure(…)")
        env = stream_execution_environment
        if env is None:
            env = StreamExecutionEnvironment.get_execution_environment()
        if not isinstance(env, StreamExecutionEnvironment):
            raise InvalidArgument(
                f"{shorten(env)} is not a StreamExecutionEnvironment",
                way_out="StreamExecutionEnvironment.get_execution_environment() creates one",
            )
        return StreamTableEnvironment(env)

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The stream environment that runs the tables."""
        return self._env

    # tables by name

    def create_temporary_table(
        self, path: str, descriptor: TableDescriptor, ignore_if_exists: bool = False
    ) -> None:
        """Names a table that a descriptor describes, to read it or to write to it. Unknown options and a name that is in use
        raise `InvalidArgument`."""
        if not isinstance(descriptor, TableDescriptor):
            raise InvalidArgument(
                f"{shorten(descriptor)} is not a table descriptor",
                way_out="TableDescriptor.for_connector('filesystem')…build()",
            )
        if not (ignore_if_exists and path in self._tables):
            self._name(path, file_table(checked_name(path, "a table"), descriptor))

    def create_temporary_view(
        self, view_path: str, table_or_data_stream: Table | DataStream[Any], schema: Schema | None = None
    ) -> None:
        """Names a table, or the table of a stream."""
        made = table_or_data_stream
        table = made if isinstance(made, Table) else self.from_data_stream(made, schema)
        self._name(view_path, Table(self, table._stream, table._schema, f"table {view_path!r}"))

    def drop_temporary_table(self, table_path: str) -> bool:
        """Forgets a name; whether there was such a table."""
        return self._tables.pop(table_path, None) is not None

    drop_temporary_view = drop_temporary_table

    def list_tables(self) -> list[str]:
        """The names of all tables."""
        return sorted(self._tables)

    list_temporary_tables = list_tables

    def from_path(self, path: str) -> Table:
        """The table with this name; one that does not exist raises `InvalidArgument`, which suggests the closest name."""
        found = self._found(path)
        return found if isinstance(found, Table) else self._read(found)

    def from_descriptor(self, descriptor: TableDescriptor) -> Table:
        """A table without a name."""
        return self._read(file_table("unnamed", descriptor))

    # rows and streams

    def from_elements(
        self,
        elements: Iterable[Any],
        schema: DataType | Sequence[str] | None = None,
        verify_schema: bool = True,
    ) -> Table:
        """A table of the given rows, with the columns of `DataTypes.ROW([…])`, or with names and the types of the values.

        A row that does not fit raises `InvalidArgument`.
        """
        rows = list(elements)
        made = (
            SchemaBuilder().from_row_data_type(schema).build()
            if isinstance(schema, DataType)
            else inferred_schema(rows, schema)
        )
        convert = converter_of(made.row_type)
        values: list[Row] = []
        for at, row in enumerate(rows):
            try:
                values.append(convert.one(row if len(made.columns) > 1 or _has_fields(row) else (row,)))
            except TypeMismatch as error:
                raise InvalidArgument(f"row {at} does not fit the columns {made}", cause=str(error)) from None
        stream = self._env.from_collection(values, made.row_type).name("table of elements")
        return Table(self, stream, made, "the table of elements")

    def from_data_stream(
        self, data_stream: DataStream[Any], *fields_or_schema: Any, schema: Schema | None = None
    ) -> Table:
        """A table of a stream's records: rows, tuples, dictionaries or objects with the columns as fields.

        Without a schema the columns are those of the stream's declared type; a single value is the column `f0`. They can be
        chosen and renamed with `col()`: by name, or, where no name is one of theirs, by position. A record that does not fit
        fails the job.
        """
        if data_stream.get_execution_environment() is not self._env:
            raise InvalidArgument(
                "the stream belongs to another environment",
                way_out="make the table environment around the stream's: StreamTableEnvironment.create(env)",
            )
        given = [each for each in (*fields_or_schema, schema) if each is not None]
        columns = [each for each in given if isinstance(each, Expression)]
        if len(columns) == len(given):
            return _chosen(Table(self, *_rows_of(data_stream), "the table of a stream"), columns)
        if any(not isinstance(each, Schema) for each in given) or len(given) > 1:
            refuse(f"from_data_stream() with {shorten(given)}", "give one Schema.new_builder()…build()")
        stream: DataStream[Any] = data_stream
        declared = data_stream.get_type()
        made: Schema = given[0]
        if isinstance(declared, RowTypeInfo) and len(declared.field_types) > len(made.stored):
            # As in Flink, a schema may name some of the fields.
            table = Table(self, stream, _declared_schema(declared), "the stream")
            stream = table.select(*(column.name for column in made.stored))._stream
        return self._completed(
            stream.map(_same, Schema(made.stored).row_type).name("rows"), made, "the table of a stream"
        )

    def to_data_stream(self, table: Table, *target: Any) -> DataStream[Row]:
        """The rows of a table, with their timestamps and watermarks."""
        if not isinstance(table, Table):
            raise InvalidArgument(f"{shorten(table)} is not a table", way_out="t_env.from_path(name)")
        if target:
            refuse("a target type of to_data_stream()", "map() the stream to what you need")
        if table._stream.get_execution_environment() is not self._env:
            raise InvalidArgument("the table belongs to another environment")
        return table._stream

    def to_append_stream(self, table: Table, type_info: Any = None) -> DataStream[Any]:
        """`to_data_stream`, converted to a type of rows or tuples, by the positions of the columns."""
        stream = self.to_data_stream(table)
        return stream if type_info is None else stream.map(_without_names, type_info)

    # inside

    def _described(self, path: str) -> FileTable:
        """A table that can be written to."""
        found = self._found(path)
        if isinstance(found, Table):
            raise InvalidArgument(
                f"{path!r} is a view, which cannot be written to",
                way_out="write to a table of create_temporary_table()",
            )
        return found

    def _found(self, path: str) -> FileTable | Table:
        if path not in self._tables:
            raise InvalidArgument(
                f"there is no table {path!r}{did_you_mean(path, self._tables)}",
                way_out="create_temporary_table(name, descriptor) or create_temporary_view(name, table) makes one",
            )
        return self._tables[path]

    def _name(self, path: str, table: FileTable | Table) -> None:
        if checked_name(path, "a table") in self._tables:
            raise InvalidArgument(
                f"there is a table {path!r} already",
                way_out="drop_temporary_table(name), or use another name",
            )
        self._tables[path] = table

    def _read(self, table: FileTable) -> Table:
        name = f"table {table.name!r}"
        stored = Schema(table.schema.stored).row_type
        stream = self._env.from_source(table.source(), source_name=name, type_info=stored)
        return self._completed(stream, table.schema, name)

    def _completed(self, stream: DataStream[Row], schema: Schema, name: str) -> Table:
        """Adds the computed columns and event time to the stored columns."""
        if any(column.computed is not None for column in schema.columns):
            stream = stream.map(Computed(schema), schema.row_type).name("computed columns")
        strategy = watermarks_of(schema, name)
        if strategy is not None:
            stream = stream.assign_timestamps_and_watermarks(strategy)
        return Table(self, stream, schema, name)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in _OTHERS:
                return refusing("a table environment", name, _OTHERS[name])
            raise no_attribute(self, name, (*dir(type(self)), *_OTHERS))


class Computed:
    """Rows of all columns from rows of the stored ones."""

    def __init__(self, schema: Schema) -> None:
        self._shape = RowShape(schema.names)
        self._columns: list[tuple[str, Any]] = [(column.name, column.computed) for column in schema.columns]

    def __call__(self, row: Row) -> Row:
        return self._shape(
            tuple(
                [
                    row[name] if compute is None else compute(row[compute.column])
                    for name, compute in self._columns
                ]
            )
        )


def _declared_schema(declared: TypeInformation[Any]) -> Schema:
    types: Sequence[TypeInformation[Any]]
    if isinstance(declared, RowTypeInfo):
        names, types = declared.get_field_names(), declared.field_types
    elif isinstance(declared, TupleTypeInfo):
        names, types = [f"f{at}" for at in range(len(declared.field_types))], declared.field_types
    elif isinstance(declared, BasicTypeInfo | SqlTimeTypeInfo):
        names, types = ["f0"], (declared,)
    else:
        raise InvalidArgument(
            "the columns of the stream are not known: its records have no declared type of rows or tuples",
            way_out="pass a schema, or declare the type of the stream: map(…, Types.ROW_NAMED([…], […]))",
        )
    typed = zip(names, types, strict=True)
    return Schema(tuple(Column(name, data_type_of(field, name)) for name, field in typed))


def _rows_of(stream: DataStream[Any]) -> tuple[DataStream[Row], Schema]:
    """The records as rows of the columns that their declared type has."""
    declared = stream.get_type()
    schema = _declared_schema(declared)
    if isinstance(declared, RowTypeInfo):
        return stream, schema
    as_row = _same if isinstance(declared, TupleTypeInfo) else Row
    return stream.map(as_row, schema.row_type).name("rows"), schema


def _chosen(table: Table, columns: Sequence[Expression]) -> Table:
    names = table.get_schema().names
    if any(column.new_name or column.column in names for column in columns):
        return table.select(*columns)
    if len(columns) > len(names):
        raise InvalidArgument(f"{table} has {len(names)} columns, not {len(columns)}")
    renamed = [Expression(old, new.column) for old, new in zip(names, columns, strict=False)]
    return table.select(*renamed) if renamed else table


def _has_fields(row: Any) -> bool:
    return isinstance(row, Row | tuple | list | dict)


def _same(value: Any) -> Any:
    return value


def _without_names(row: Row) -> Row:
    return Row.of_kind(row.get_row_kind(), *row)
