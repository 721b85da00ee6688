"""Schemas of tables from declared types, dataclasses, named tuples and Pydantic models, as DDL strings.

`to_dataframe` uses it for the schema of its table, `from_dataframe` for the fields of the objects it creates.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Union, get_args, get_origin, get_type_hints

from emberflow.errors import InvalidArgument
from emberflow.events.types.instant import Instant
from emberflow.events.types.type_information import (
    ArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    MapTypeInfo,
    RowTypeInfo,
    SqlTimeType,
    SqlTimeTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)

_DECLARED: dict[Any, str] = {
    BasicType.STRING: "string",
    BasicType.CHAR: "string",
    BasicType.BYTE: "tinyint",
    BasicType.SHORT: "smallint",
    BasicType.INT: "int",
    BasicType.LONG: "bigint",
    BasicType.FLOAT: "float",
    BasicType.DOUBLE: "double",
    BasicType.BOOLEAN: "boolean",
    BasicType.BIG_INT: "decimal(38,0)",
    BasicType.BIG_DEC: "decimal(38,18)",
    BasicType.INSTANT: "timestamp",
    SqlTimeType.DATE: "date",
    SqlTimeType.TIME: "time",
    SqlTimeType.TIMESTAMP: "timestamp_ntz",
}
_HINTED: dict[Any, str] = {
    str: "string",
    int: "bigint",
    float: "double",
    bool: "boolean",
    bytes: "binary",
    bytearray: "binary",
    Decimal: "decimal(38,18)",
    date: "date",
    datetime: "timestamp",
    time: "time",
    Instant: "timestamp",
}
Columns = list[tuple[str, str]]
"""names and types"""


def has_fields(kind: Any) -> bool:
    """Whether a class is a dataclass, a named tuple or a Pydantic model."""
    return isinstance(kind, type) and (
        hasattr(kind, "__dataclass_fields__")
        or hasattr(kind, "model_fields")
        or (issubclass(kind, tuple) and hasattr(kind, "_fields"))  # pyright: ignore[reportUnknownArgumentType]
    )


def hints_of(kind: type[Any]) -> dict[str, Any]:
    """The fields of such a class and their types; raises InvalidArgument where they cannot be found out."""
    models: Any = getattr(kind, "model_fields", None)
    if models is not None:
        return {name: field.annotation for name, field in models.items()}
    names: Any = getattr(kind, "_fields", None)
    if names is None:
        names = [field.name for field in dataclasses.fields(kind) if field.init]
    try:
        hints = get_type_hints(kind)
    except NameError as error:
        raise InvalidArgument(
            f"the types of the fields of {kind.__qualname__} cannot be found: {error}",
            way_out="define the classes it refers to at the top of a module",
        ) from error
    return {name: hints.get(name, Any) for name in names}


def table_schema(declared: Any) -> str:
    """The DDL of a table whose records have this type; raises InvalidArgument for a type that no column has."""
    return ", ".join([f"`{name.replace('`', '``')}` {kind}" for name, kind in _columns(declared)])


def _columns(declared: Any) -> Columns:
    if isinstance(declared, RowTypeInfo):
        named = zip(declared.get_field_names(), declared.field_types, strict=True)
        return [(name, _of_declared(field, name)) for name, field in named]
    if isinstance(declared, TupleTypeInfo):
        return [(f"f{at}", _of_declared(field, f"f{at}")) for at, field in enumerate(declared.field_types)]
    if isinstance(declared, TypeInformation):
        return [("f0", _of_declared(declared, "f0"))]  # pyright: ignore[reportUnknownArgumentType]
    return [(name, _of_hint(hint, name)) for name, hint in hints_of(declared).items()]


def _struct(columns: Columns) -> str:
    fields = [f"`{name.replace('`', '``')}`: {kind}" for name, kind in columns]
    return f"struct<{', '.join(fields)}>"


def _of_declared(declared: TypeInformation[Any], column: str) -> str:
    if isinstance(declared, RowTypeInfo | TupleTypeInfo):
        return _struct(_columns(declared))
    if isinstance(declared, ArrayTypeInfo):
        return "binary" if declared.is_bytes else f"array<{_of_declared(declared.element_type, column)}>"
    if isinstance(declared, MapTypeInfo):
        return f"map<{_of_declared(declared.key_type, column)}, {_of_declared(declared.value_type, column)}>"
    if isinstance(declared, BasicTypeInfo):
        return _DECLARED[declared.basic_type]
    if isinstance(declared, SqlTimeTypeInfo):
        return _DECLARED[declared.time_type]
    raise _no_column(declared, column)


def _of_hint(hint: Any, column: str) -> str:
    if hint in _HINTED:
        return _HINTED[hint]
    if has_fields(hint):
        return _struct(_columns(hint))
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        inner = [argument for argument in arguments if argument is not type(None)]
        if len(inner) == 1:
            return _of_hint(inner[0], column)
    elif origin is tuple and arguments and arguments[-1] is not Ellipsis:
        return _struct([(f"f{at}", _of_hint(argument, column)) for at, argument in enumerate(arguments)])
    elif isinstance(origin, type) and issubclass(origin, Mapping) and len(arguments) == 2:
        return f"map<{_of_hint(arguments[0], column)}, {_of_hint(arguments[1], column)}>"
    elif isinstance(origin, type) and issubclass(origin, Sequence) and arguments:
        return f"array<{_of_hint(arguments[0], column)}>"
    raise _no_column(hint, column)


def _no_column(found: Any, column: str) -> InvalidArgument:
    return InvalidArgument(
        f"the column {column!r} cannot have the type {found!r}",
        way_out="declare a type that tables have, or pass the schema as a DDL string",
    )
