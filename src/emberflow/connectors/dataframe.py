"""Tables as sources and sinks: Spark DataFrames on Spark, any table-like object on `local`.

A record is a dictionary, column name -> value. The Spark engine reads and writes DataFrames itself; the methods here
serve the local engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from emberflow.connectors.arrow_records import arrow_records
from emberflow.connectors.sink import Sink
from emberflow.connectors.source import Chunk, Source
from emberflow.connectors.table_rows import plain_values
from emberflow.errors import InvalidArgument, shorten
from emberflow.events.types.object_types import ObjectTypeInfo
from emberflow.events.types.schemas import has_fields, table_schema
from emberflow.events.types.type_information import RowTypeInfo, TypeInformation


class DataFrameSource(Source[Any]):
    """Rows of a table as dictionaries."""

    ordered = False

    def __init__(self, dataframe: Any) -> None:
        self.dataframe = dataframe
        self.bounded = not getattr(dataframe, "isStreaming", False)

    def __getstate__(self) -> dict[str, Any]:
        # A plan with this source may be shipped to workers; the table stays with the engine.
        return {"dataframe": None, "bounded": self.bounded}

    def describe(self) -> str:
        return type(self.dataframe).__name__

    def read(self, channel: int, position: int, limit: int) -> Iterator[Chunk[Any]]:
        chunk: list[Any] = []
        for number, row in enumerate(_rows(self.dataframe)):
            if number < position:
                continue
            chunk.append(row)
            if len(chunk) >= limit:
                position += len(chunk)
                yield Chunk(chunk, position)
                chunk = []
        yield Chunk(chunk, position + len(chunk), end=True)


def _rows(table: Any) -> Iterator[dict[str, Any]]:
    if hasattr(table, "toArrow"):
        yield from arrow_records(table.toArrow())
    elif hasattr(table, "to_pylist"):
        yield from arrow_records(table)
    elif hasattr(table, "to_dict") and hasattr(table, "columns"):
        yield from table.to_dict("records")
    elif isinstance(table, Iterable):
        for row in table:  # pyright: ignore[reportUnknownVariableType]
            yield _as_dict(row)
    else:
        raise InvalidArgument(
            f"{shorten(table)} is not a table", way_out="pass rows as dictionaries or named tuples"
        )


def _as_dict(row: Any) -> dict[str, Any]:
    if isinstance(row, dict):
        return row  # pyright: ignore[reportUnknownVariableType]
    for method in ("asDict", "_asdict"):
        convert = getattr(row, method, None)
        if convert is not None:
            return convert()
    raise InvalidArgument(
        f"the row {shorten(row)} has no column names", way_out="pass rows as dictionaries or named tuples"
    )


class DataFrameSink(Sink[Any]):
    """The end of a stream that becomes a table with this schema."""

    to_client = True

    def __init__(self, schema: Any) -> None:
        self.schema = schema


class LocalFrame:
    """A small table: the result of `to_dataframe` on the local engine."""

    def __init__(self, columns: Sequence[str], rows: list[dict[str, Any]]) -> None:
        self.columns = list(columns)
        self._rows = rows

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def collect(self) -> list[dict[str, Any]]:
        return list(self._rows)

    def to_pandas(self) -> Any:
        import pandas

        return pandas.DataFrame(plain_values(self._rows), columns=self.columns)

    def to_arrow(self) -> Any:
        import pyarrow

        table: Any = pyarrow
        return table.Table.from_pylist(plain_values(self._rows))

    def __repr__(self) -> str:
        return f"LocalFrame({', '.join(self.columns)}; {len(self)} rows)"


def schema_of(schema: Any, declared: TypeInformation[Any] | None) -> Any:
    """A schema as engines read it: a DDL string for types and classes; the declared type's if none is given."""
    wanted: Any = declared if schema is None else schema
    if wanted is None:
        raise InvalidArgument(
            "to_dataframe() needs a schema: the records have no declared type",
            way_out='pass one, such as "user string, total long", or declare output_type in the step before',
        )
    if isinstance(wanted, ObjectTypeInfo):
        wanted = wanted.kind  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return table_schema(wanted) if isinstance(wanted, TypeInformation) or has_fields(wanted) else wanted


def check_record_type(declared: Any) -> None:
    """Raises InvalidArgument for a type that is not made of the columns of a table."""
    if declared is not None and not isinstance(declared, RowTypeInfo) and not has_fields(declared):
        raise InvalidArgument(
            f"the rows of a table cannot be of the type {declared!r}",
            way_out="use Types.ROW_NAMED(...), a dataclass, a NamedTuple or a Pydantic model",
        )


def column_names(schema: Any) -> list[str]:
    """The column names of a DDL string ("user string, total long"), a StructType or a plain list of names."""
    if isinstance(schema, str):
        return [_name_of(part.strip()) for part in _split_fields(schema) if part.strip()]
    names = getattr(schema, "fieldNames", None)
    if names is not None:
        return list(names())
    return list(schema)


def _name_of(field: str) -> str:
    if field.startswith("`"):
        # A backtick inside a quoted name is doubled.
        return field[1:].replace("``", "\0").split("`")[0].replace("\0", "`")
    return field.split()[0].split(":")[0]


def _split_fields(ddl: str) -> list[str]:
    """Splits at the commas outside <>, () and quoted names."""
    fields, depth, start, quoted = list[str](), 0, 0, False
    for position, letter in enumerate(ddl):
        if letter == "`":
            quoted = not quoted
        elif quoted:
            continue
        elif letter in "<(":
            depth += 1
        elif letter in ">)":
            depth -= 1
        elif letter == "," and depth == 0:
            fields.append(ddl[start:position])
            start = position + 1
    return [*fields, ddl[start:]]
