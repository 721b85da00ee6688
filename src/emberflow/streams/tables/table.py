"""`Table`: a stream of rows with a schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emberflow.errors import InvalidArgument, shorten
from emberflow.events.types.row import Row, RowShape
from emberflow.streams.data_stream import DataStream
from emberflow.streams.tables.data_types import checked_name
from emberflow.streams.tables.expressions import Expression, col
from emberflow.streams.tables.refusals import AS_STREAM, no_attribute, refuse, refusing, words
from emberflow.streams.tables.schema import Column, Schema
from emberflow.streams.tables.table_result import TableResult, insert, select

if TYPE_CHECKING:
    from emberflow.streams.tables.table_environment import StreamTableEnvironment

_OTHERS = words(
    """
    add_columns add_or_replace_columns aggregate as_ distinct drop_columns explain fetch filter flat_aggregate flat_map
    full_outer_join group_by insert_into intersect intersect_all join join_lateral left_outer_join
    left_outer_join_lateral limit map minus minus_all offset order_by over_window print_schema rename_columns
    right_outer_join to_pandas union union_all where window
    """
)


class Table:
    """Rows with a schema; created by a `StreamTableEnvironment`. `table.name` is a column, as `col("name")` is.

    ```python
    from emberflow.streams import StreamExecutionEnvironment
    from emberflow.streams.tables import StreamTableEnvironment, col

    t_env = StreamTableEnvironment.create(
        StreamExecutionEnvironment.get_execution_environment(engine="local")
    )
    people = t_env.from_elements([(1, "Ann"), (2, "Ben")], ["id", "name"])
    with people.select(col("name")).execute().collect() as rows:
        assert sorted(row.name for row in rows) == ["Ann", "Ben"]
    ```
    """

    def __init__(
        self, t_env: StreamTableEnvironment, stream: DataStream[Row], schema: Schema, name: str
    ) -> None:
        self._t_env = t_env
        self._stream = stream
        self._schema = schema
        self._name = name

    def get_schema(self) -> Schema:
        """The columns."""
        return self._schema

    def select(self, *fields: Expression | str) -> Table:
        """Some columns, by `col()` or name. Names that the table does not have raise `InvalidArgument`, other expressions
        `NotSupported`."""
        if not fields:
            raise InvalidArgument(f"{self._name} needs a column to select", way_out="select(col('name'))")
        chosen = [_column(field) for field in fields]
        places = [self._schema.place(each.column, self._name) for each in chosen]
        columns = tuple(
            Column(each.name, self._schema.columns[place].data_type)
            for each, place in zip(chosen, places, strict=True)
        )
        names = [column.name for column in columns]
        for name in names:
            if names.count(name) > 1:
                raise InvalidArgument(
                    f"two selected columns have the name {name!r}",
                    way_out=f"rename one: col({name!r}).alias(…)",
                )
        schema = Schema(columns)
        projected = self._stream.map(Projection(tuple(places), tuple(names)), schema.row_type).name("select")
        return Table(self._t_env, projected, schema, self._name)

    def alias(self, field: str, *fields: str) -> Table:
        """The same rows with other names of their columns, in order."""
        names = [checked_name(name, "a column") for name in (field, *fields)]
        if len(names) != len(self._schema.columns):
            raise InvalidArgument(
                f"{self._name} has {len(self._schema.columns)} columns, not {len(names)}",
                way_out="give every column a name, or rename one with select(col(name).alias(new_name))",
            )
        named = zip(self._schema.names, names, strict=True)
        return self.select(*(Expression(old, new) for old, new in named))

    def execute(self) -> TableResult:
        """Starts a job with this table's rows as its result; other sinks of the program wait for `env.execute()`."""
        return select(self._stream, self._name, self._schema)

    def execute_insert(self, table_path: str, overwrite: bool = False) -> TableResult:
        """Starts a job that writes the rows to a table, by the positions of the columns. Raises `InvalidArgument` if their
        types differ."""
        if overwrite:
            refuse("execute_insert(overwrite=True)", "remove the files of the table before")
        target = self._t_env._described(table_path)
        stored = target.schema.stored
        mine = [column.data_type.type_info for column in self._schema.columns]
        if mine != [column.data_type.type_info for column in stored]:
            raise InvalidArgument(
                f"{self._name} does not fit into table {table_path!r}",
                cause=f"it has the columns {self._schema}, and the target {Schema(stored)}",
                way_out="select() the columns of the target, in its order",
            )
        return insert(self._stream, target.sink(), f"insert into {table_path}", self._schema)

    def __str__(self) -> str:
        return f"{self._name}{self._schema}"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            schema = self.__dict__.get("_schema")
            if schema is not None and name in schema.names:
                return col(name)
            if name in _OTHERS:
                return refusing("a table", name, AS_STREAM)
            raise no_attribute(self, name, (*(schema.names if schema else ()), *dir(type(self)), *_OTHERS))


class Projection:
    """Some values of a row, under names of their own."""

    def __init__(self, places: tuple[int, ...], names: tuple[str, ...]) -> None:
        self._places = places
        self._shape = RowShape(names)

    def __call__(self, row: Row) -> Row:
        return self._shape(tuple([row[place] for place in self._places]))


def _column(given: Any) -> Expression:
    if isinstance(given, Expression):
        return given
    if isinstance(given, str):
        return col(given)
    raise InvalidArgument(f"{shorten(given)} is not a column", way_out="write col('name')")
