"""`DataTypes`: the types of table columns, with PyFlink's names. Each one stands for type information of streams."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NoReturn

from emberflow.errors import InvalidArgument, NotSupported, did_you_mean, shorten
from emberflow.events.types.type_information import RowTypeInfo, TypeInformation, check_types
from emberflow.streams.types import Types


class Kind(Enum):
    """What values of a type are made of."""

    STRING = "string"
    BOOLEAN = "truth value"
    WHOLE = "whole number"
    SINGLE = "number of 4 bytes"
    DOUBLE = "number of 8 bytes"
    DATE = "date"
    TIMESTAMP = "wall time"
    INSTANT = "point in time"
    ARRAY = "list"
    MAP = "dictionary"
    ROW = "row"


@dataclass(frozen=True, slots=True)
class DataType:
    """The type of a column; created by `DataTypes`."""

    sql: str
    """As SQL writes it."""
    kind: Kind
    type_info: TypeInformation[Any]
    parts: tuple[DataType, ...] = ()
    """Of the elements of an array, the keys and values of a map, the fields of a row."""
    names: tuple[str, ...] = ()
    """Of the fields of a row."""
    bits: int = 0
    """Of a whole number."""
    is_nullable: bool = True

    def not_null(self) -> DataType:
        """The same type without NULL."""
        return replace(self, is_nullable=False)

    def nullable(self) -> DataType:
        """The same type with NULL."""
        return replace(self, is_nullable=True)

    def __str__(self) -> str:
        return self.sql if self.is_nullable else f"{self.sql} NOT NULL"


@dataclass(frozen=True, slots=True)
class RowField:
    """A field of a row type; created by `DataTypes.FIELD`."""

    name: str
    data_type: DataType


def _refused(sql: str, instead: str) -> Callable[..., NoReturn]:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise NotSupported(f"columns of tables cannot have the type {sql}", way_out=f"declare {instead}")

    return refuse


class DataTypes:
    """The types of columns. All are nullable unless `nullable=False` is given, or `not_null()` is called."""

    @staticmethod
    def STRING(nullable: bool = True) -> DataType:
        """`str`."""
        return DataType("STRING", Kind.STRING, Types.STRING(), is_nullable=nullable)

    @staticmethod
    def BOOLEAN(nullable: bool = True) -> DataType:
        """`bool`."""
        return DataType("BOOLEAN", Kind.BOOLEAN, Types.BOOLEAN(), is_nullable=nullable)

    @staticmethod
    def TINYINT(nullable: bool = True) -> DataType:
        """`int` of 8 bits."""
        return DataType("TINYINT", Kind.WHOLE, Types.BYTE(), bits=8, is_nullable=nullable)

    @staticmethod
    def SMALLINT(nullable: bool = True) -> DataType:
        """`int` of 16 bits."""
        return DataType("SMALLINT", Kind.WHOLE, Types.SHORT(), bits=16, is_nullable=nullable)

    @staticmethod
    def INT(nullable: bool = True) -> DataType:
        """`int` of 32 bits."""
        return DataType("INT", Kind.WHOLE, Types.INT(), bits=32, is_nullable=nullable)

    @staticmethod
    def BIGINT(nullable: bool = True) -> DataType:
        """`int` of 64 bits."""
        return DataType("BIGINT", Kind.WHOLE, Types.LONG(), bits=64, is_nullable=nullable)

    @staticmethod
    def FLOAT(nullable: bool = True) -> DataType:
        """`float`, rounded to 4 bytes."""
        return DataType("FLOAT", Kind.SINGLE, Types.FLOAT(), is_nullable=nullable)

    @staticmethod
    def DOUBLE(nullable: bool = True) -> DataType:
        """`float`."""
        return DataType("DOUBLE", Kind.DOUBLE, Types.DOUBLE(), is_nullable=nullable)

    @staticmethod
    def DATE(nullable: bool = True) -> DataType:
        """`datetime.date`."""
        return DataType("DATE", Kind.DATE, Types.SQL_DATE(), is_nullable=nullable)

    @staticmethod
    def TIMESTAMP(precision: int = 6, nullable: bool = True) -> DataType:
        """`datetime.datetime` without a time zone, whatever the precision with microseconds."""
        sql = f"TIMESTAMP({precision})"
        return DataType(sql, Kind.TIMESTAMP, Types.SQL_TIMESTAMP(), is_nullable=nullable)

    @staticmethod
    def TIMESTAMP_LTZ(precision: int = 6, nullable: bool = True) -> DataType:
        """`Instant`, whatever the precision with all its digits."""
        return DataType(f"TIMESTAMP_LTZ({precision})", Kind.INSTANT, Types.INSTANT(), is_nullable=nullable)

    TIMESTAMP_WITH_LOCAL_TIME_ZONE = TIMESTAMP_LTZ

    @staticmethod
    def ARRAY(element_type: DataType, nullable: bool = True) -> DataType:
        """A list of elements of one type."""
        element = checked_type(element_type)
        made = Types.OBJECT_ARRAY(element.type_info)
        return DataType(f"ARRAY<{element}>", Kind.ARRAY, made, (element,), is_nullable=nullable)

    @staticmethod
    def MAP(key_type: DataType, value_type: DataType, nullable: bool = True) -> DataType:
        """A dictionary of one key type and one value type."""
        key, value = checked_type(key_type), checked_type(value_type)
        made = Types.MAP(key.type_info, value.type_info)
        return DataType(f"MAP<{key}, {value}>", Kind.MAP, made, (key, value), is_nullable=nullable)

    @staticmethod
    def ROW(row_fields: Sequence[RowField] = (), nullable: bool = True) -> DataType:
        """A `Row` with the fields that `FIELD` creates."""
        for field in row_fields:
            if not isinstance(field, RowField):
                raise InvalidArgument(
                    f"{shorten(field)} is not a field", way_out="write DataTypes.FIELD(name, DataTypes.INT())"
                )
        names = tuple(field.name for field in row_fields)
        parts = tuple(field.data_type for field in row_fields)
        made = RowTypeInfo(tuple(part.type_info for part in parts), names)
        sql = ", ".join([f"`{field.name}` {field.data_type}" for field in row_fields])
        return DataType(f"ROW<{sql}>", Kind.ROW, made, parts, names, is_nullable=nullable)

    @staticmethod
    def FIELD(name: str, data_type: DataType, description: str | None = None) -> RowField:
        """A field for `ROW`."""
        return RowField(checked_name(name, "a field"), checked_type(data_type))

    CHAR = staticmethod(_refused("CHAR", "DataTypes.STRING()"))
    VARCHAR = staticmethod(_refused("VARCHAR", "DataTypes.STRING()"))
    DECIMAL = staticmethod(
        _refused("DECIMAL", "DataTypes.DOUBLE(), or DataTypes.STRING() to keep all digits")
    )
    TIME = staticmethod(_refused("TIME", "DataTypes.STRING()"))
    BINARY = staticmethod(_refused("BINARY", "DataTypes.STRING()"))
    VARBINARY = staticmethod(_refused("VARBINARY", "DataTypes.STRING()"))
    BYTES = staticmethod(_refused("BYTES", "DataTypes.STRING()"))
    MULTISET = staticmethod(_refused("MULTISET", "DataTypes.MAP()"))
    INTERVAL = staticmethod(_refused("INTERVAL", "DataTypes.BIGINT()"))
    NULL = staticmethod(_refused("NULL", "the type that other rows have"))


_PLAIN: dict[str, Callable[[], DataType]] = {
    "STRING": DataTypes.STRING,
    "BOOLEAN": DataTypes.BOOLEAN,
    "TINYINT": DataTypes.TINYINT,
    "SMALLINT": DataTypes.SMALLINT,
    "INT": DataTypes.INT,
    "INTEGER": DataTypes.INT,
    "BIGINT": DataTypes.BIGINT,
    "FLOAT": DataTypes.FLOAT,
    "DOUBLE": DataTypes.DOUBLE,
    "DATE": DataTypes.DATE,
    "TIMESTAMP": DataTypes.TIMESTAMP,
    "TIMESTAMP_LTZ": DataTypes.TIMESTAMP_LTZ,
}
_WRITTEN = re.compile(r"\s*(\w+)\s*(?:\(\s*(\d+)\s*\))?\s*(NOT\s+NULL)?\s*", re.IGNORECASE)


def checked_type(given: Any) -> DataType:
    """A type, or a plain one by its name in SQL such as `BIGINT`; raises InvalidArgument for anything else."""
    if isinstance(given, DataType):
        return given
    if not isinstance(given, str):
        raise InvalidArgument(
            f"{shorten(given)} is not the type of a column",
            way_out="write e.g. DataTypes.INT(), with parentheses",
        )
    found = _WRITTEN.fullmatch(given)
    name = found.group(1).upper() if found else ""
    precision = found.group(2) if found else None
    if found is None or name not in _PLAIN or (precision and not name.startswith("TIMESTAMP")):
        raise NotSupported(
            f"the type {given!r} of a column is not supported{did_you_mean(given.upper(), _PLAIN)}",
            way_out=f"use {', '.join(_PLAIN)}, or DataTypes.ARRAY(), MAP() and ROW()",
        )
    made = _PLAIN[name]()
    if precision:
        made = replace(made, sql=f"{name}({precision})")
    return made.not_null() if found.group(3) else made


def checked_name(given: Any, what: str) -> str:
    """A non-empty string; raises InvalidArgument for anything else."""
    if not isinstance(given, str) or not given.strip():
        raise InvalidArgument(f"{shorten(given)} is not a name of {what}", way_out="use a non-empty string")
    return given


def data_type_of(declared: TypeInformation[Any], column: str) -> DataType:
    """The column type that stands for type information; raises NotSupported where there is none."""
    for make in _PLAIN.values():
        made = make()
        if made.type_info == declared:
            return made
    if isinstance(declared, RowTypeInfo):
        named = zip(declared.get_field_names(), declared.field_types, strict=True)
        return DataTypes.ROW([RowField(name, data_type_of(field, name)) for name, field in named])
    for_elements = getattr(declared, "element_type", None)
    if for_elements is not None and not getattr(declared, "is_bytes", False):
        element = data_type_of(for_elements, column)
        return replace(DataTypes.ARRAY(element), type_info=declared)
    keys, values = getattr(declared, "key_type", None), getattr(declared, "value_type", None)
    if keys is not None and values is not None:
        return DataTypes.MAP(data_type_of(keys, column), data_type_of(values, column))
    raise NotSupported(
        f"the column {column!r} cannot have the type {declared!r}",
        way_out="map() the stream to rows of strings, numbers, truth values, dates, timestamps, lists and dictionaries",
    )


def external_type_info(type_info: TypeInformation[Any]) -> TypeInformation[Any]:
    """PyFlink's `ExternalTypeInfo`: the type itself, because rows have one form here."""
    check_types("an external type", [type_info])
    return type_info
