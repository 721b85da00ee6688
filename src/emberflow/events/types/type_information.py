"""The classes behind `emberflow.streams.Types`: what a user declares about the values of a stream or of state.

Plain data with PyFlink's names. `conversion` applies them, `printing` prints by them, `schemas` makes table schemas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, ClassVar, Generic, TypeVar

from emberflow.errors import InvalidArgument
from emberflow.events.types.instant import Instant
from emberflow.events.types.row import Row

T = TypeVar("T", covariant=True)


class TypeInformation(Generic[T]):
    """A declared type; `Types.STRING()` is a `TypeInformation[str]`. Values of another type are converted, or fail the job."""

    __slots__ = ()


class BasicType(Enum):
    """The types without parts."""

    STRING = "String"
    BYTE = "Byte"
    BOOLEAN = "Boolean"
    SHORT = "Short"
    INT = "Integer"
    LONG = "Long"
    FLOAT = "Float"
    DOUBLE = "Double"
    CHAR = "Char"
    BIG_INT = "BigInteger"
    BIG_DEC = "BigDecimal"
    INSTANT = "Instant"


@dataclass(frozen=True, slots=True)
class BasicTypeInfo(TypeInformation[T]):
    """A type without parts."""

    basic_type: BasicType

    def __repr__(self) -> str:
        return self.basic_type.value

    @staticmethod
    def STRING_TYPE_INFO() -> BasicTypeInfo[str]:
        """A string."""
        return BasicTypeInfo(BasicType.STRING)

    @staticmethod
    def BOOLEAN_TYPE_INFO() -> BasicTypeInfo[bool]:
        """A truth value."""
        return BasicTypeInfo(BasicType.BOOLEAN)

    @staticmethod
    def BYTE_TYPE_INFO() -> BasicTypeInfo[int]:
        """A number of 8 bits."""
        return BasicTypeInfo(BasicType.BYTE)

    @staticmethod
    def SHORT_TYPE_INFO() -> BasicTypeInfo[int]:
        """A number of 16 bits."""
        return BasicTypeInfo(BasicType.SHORT)

    @staticmethod
    def INT_TYPE_INFO() -> BasicTypeInfo[int]:
        """A number of 32 bits."""
        return BasicTypeInfo(BasicType.INT)

    @staticmethod
    def LONG_TYPE_INFO() -> BasicTypeInfo[int]:
        """A number of 64 bits."""
        return BasicTypeInfo(BasicType.LONG)

    @staticmethod
    def FLOAT_TYPE_INFO() -> BasicTypeInfo[float]:
        """A number of single precision."""
        return BasicTypeInfo(BasicType.FLOAT)

    @staticmethod
    def DOUBLE_TYPE_INFO() -> BasicTypeInfo[float]:
        """A number of double precision."""
        return BasicTypeInfo(BasicType.DOUBLE)

    @staticmethod
    def CHAR_TYPE_INFO() -> BasicTypeInfo[str]:
        """A string of one character."""
        return BasicTypeInfo(BasicType.CHAR)

    @staticmethod
    def BIG_INT_TYPE_INFO() -> BasicTypeInfo[int]:
        """A whole number of any size."""
        return BasicTypeInfo(BasicType.BIG_INT)

    @staticmethod
    def BIG_DEC_TYPE_INFO() -> BasicTypeInfo[Decimal]:
        """A decimal number."""
        return BasicTypeInfo(BasicType.BIG_DEC)

    @staticmethod
    def INSTANT_TYPE_INFO() -> BasicTypeInfo[Instant]:
        """A point in time."""
        return BasicTypeInfo(BasicType.INSTANT)


class SqlTimeType(Enum):
    """Dates and times without a time zone."""

    DATE = "DateTypeInfo"
    TIME = "TimeTypeInfo"
    TIMESTAMP = "TimestampTypeInfo"


@dataclass(frozen=True, slots=True)
class SqlTimeTypeInfo(TypeInformation[T]):
    """A date, a time of day, or both."""

    time_type: ClassVar[SqlTimeType]

    def __repr__(self) -> str:
        return self.time_type.value


class DateTypeInfo(SqlTimeTypeInfo[date]):
    """A date."""

    __slots__ = ()
    time_type = SqlTimeType.DATE


class TimeTypeInfo(SqlTimeTypeInfo[time]):
    """A time of day."""

    __slots__ = ()
    time_type = SqlTimeType.TIME


class TimestampTypeInfo(SqlTimeTypeInfo[datetime]):
    """A date and a time of day."""

    __slots__ = ()
    time_type = SqlTimeType.TIMESTAMP


@dataclass(frozen=True, slots=True)
class PickledBytesTypeInfo(TypeInformation[T]):
    """Any Python value; nothing is converted."""

    def __repr__(self) -> str:
        return "PickledByteArrayTypeInfo"


class ArrayKind(Enum):
    """Why there are four of them: Flink distinguishes them in the JVM."""

    PRIMITIVE = "PrimitiveArrayTypeInfo"
    BASIC = "BasicArrayTypeInfo"
    OBJECT = "ObjectArrayTypeInfo"
    LIST = "ListTypeInfo"


_IN_PRIMITIVE_ARRAYS = frozenset(
    {
        BasicType.BOOLEAN, BasicType.BYTE, BasicType.SHORT, BasicType.INT, BasicType.LONG, BasicType.FLOAT,
        BasicType.DOUBLE, BasicType.CHAR,
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ArrayTypeInfo(TypeInformation[T]):
    """A list whose elements have one type; an array of bytes is `bytes`."""

    kind: ClassVar[ArrayKind]
    element_type: TypeInformation[Any]

    def __post_init__(self) -> None:
        check_types("the element type of an array", [self.element_type])
        if self.kind in (ArrayKind.OBJECT, ArrayKind.LIST):
            return
        element = self.element_type
        allowed = (
            _IN_PRIMITIVE_ARRAYS
            if self.kind is ArrayKind.PRIMITIVE
            else _IN_PRIMITIVE_ARRAYS | {BasicType.STRING}
        )
        if not isinstance(element, BasicTypeInfo) or element.basic_type not in allowed:
            raise InvalidArgument(
                f"{element!r} is not an element type of a {self.kind.name.lower()} array",
                way_out="use Types.OBJECT_ARRAY() or Types.LIST()",
            )

    @property
    def is_bytes(self) -> bool:
        """Whether values are `bytes`."""
        element = self.element_type
        plain = self.kind in (ArrayKind.PRIMITIVE, ArrayKind.LIST)
        return plain and isinstance(element, BasicTypeInfo) and element.basic_type is BasicType.BYTE

    def __repr__(self) -> str:
        return f"{self.kind.value}<{self.element_type}>"


class PrimitiveArrayTypeInfo(ArrayTypeInfo[T]):
    """Numbers, truth values or characters, without None."""

    __slots__ = ()
    kind = ArrayKind.PRIMITIVE


class BasicArrayTypeInfo(ArrayTypeInfo[T]):
    """Numbers, truth values, characters or strings, with None."""

    __slots__ = ()
    kind = ArrayKind.BASIC


class ObjectArrayTypeInfo(ArrayTypeInfo[T]):
    """Elements of any type, with None."""

    __slots__ = ()
    kind = ArrayKind.OBJECT


class ListTypeInfo(ArrayTypeInfo[T]):
    """Elements of any type, without None."""

    __slots__ = ()
    kind = ArrayKind.LIST


@dataclass(frozen=True, slots=True)
class MapTypeInfo(TypeInformation[T]):
    """A dictionary whose keys have one type, and whose values have one type."""

    key_type: TypeInformation[Any]
    value_type: TypeInformation[Any]

    def __post_init__(self) -> None:
        check_types("a type of a map", [self.key_type, self.value_type])

    def __repr__(self) -> str:
        return f"MapTypeInfo<{self.key_type}, {self.value_type}>"


@dataclass(frozen=True, slots=True)
class TupleTypeInfo(TypeInformation[tuple[Any, ...]]):
    """A tuple with one type for each field."""

    field_types: tuple[TypeInformation[Any], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "field_types", tuple(self.field_types))
        check_types("a field type of a tuple", self.field_types)

    def get_field_types(self) -> list[TypeInformation[Any]]:
        """The types of the fields, in order."""
        return list(self.field_types)

    def __repr__(self) -> str:
        return f"TupleTypeInfo({', '.join(map(repr, self.field_types))})"


@dataclass(frozen=True, slots=True)
class RowTypeInfo(TypeInformation[Row]):
    """A row with one type, and one name, for each field; `f0`, `f1`, … without names."""

    field_types: tuple[TypeInformation[Any], ...]
    field_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        # PyFlink's programs pass lists.
        object.__setattr__(self, "field_types", tuple(self.field_types))
        check_types("a field type of a row", self.field_types)
        if self.field_names is None:
            return
        names = tuple(self.field_names)
        object.__setattr__(self, "field_names", names)
        if len(names) != len(self.field_types):
            raise InvalidArgument(
                f"a row type has {len(names)} names and {len(self.field_types)} types",
                way_out="name every field",
            )
        for name in names:
            if not isinstance(name, str) or not name or names.count(name) > 1:
                raise InvalidArgument(
                    f"{name!r} is not a field name, or not the only one of that name",
                    way_out="use non-empty strings, each once",
                )

    def get_field_names(self) -> list[str]:
        """The names of the fields, in order."""
        return (
            list(self.field_names) if self.field_names else [f"f{at}" for at in range(len(self.field_types))]
        )

    def get_field_types(self) -> list[TypeInformation[Any]]:
        """The types of the fields, in order."""
        return list(self.field_types)

    def get_field_index(self, field_name: str) -> int:
        """The position of a field; -1 if there is none of that name."""
        names = self.get_field_names()
        return names.index(field_name) if field_name in names else -1

    def __repr__(self) -> str:
        if self.field_names is None:
            return f"RowTypeInfo({', '.join(map(repr, self.field_types))})"
        named = zip(self.field_names, self.field_types, strict=True)
        return f"RowTypeInfo({', '.join([f'{name}: {kind!r}' for name, kind in named])})"


def check_types(what: str, types: Sequence[Any]) -> None:
    """Raises `InvalidArgument` for a part that is not type information."""
    for found in types:
        if not isinstance(found, TypeInformation):
            raise InvalidArgument(
                f"{what} must be type information, not {found!r}",
                way_out="write e.g. Types.INT(), with parentheses",
            )


_NO_TYPES: tuple[Any, ...] = (
    str,
    bytes,
    int,
    float,
    list,
    tuple,
    dict,
    FunctionType,
    MethodType,
    BuiltinFunctionType,
)


def check_declared(declared: Any) -> None:
    """Raises `InvalidArgument` for what neither is type information nor documents a type, such as `Types.INT` without
    parentheses: it would have no effect."""
    given: Any = declared
    if isinstance(given, _NO_TYPES):
        raise InvalidArgument(
            f"{getattr(given, '__qualname__', repr(given))} is not a type",
            way_out="write e.g. Types.INT(), with parentheses",
        )


def spelled(declared: TypeInformation[Any]) -> tuple[str, tuple[Any, ...]]:
    """The method of `Types` that creates the type, and its arguments: what identifies the type in stored identities."""
    if isinstance(declared, BasicTypeInfo):
        return declared.basic_type.name, ()
    if isinstance(declared, SqlTimeTypeInfo):
        return f"SQL_{declared.time_type.name}", ()
    if isinstance(declared, ArrayTypeInfo):
        kind = declared.kind
        return kind.name if kind is ArrayKind.LIST else f"{kind.name}_ARRAY", (declared.element_type,)
    if isinstance(declared, MapTypeInfo):
        return "MAP", (declared.key_type, declared.value_type)
    if isinstance(declared, TupleTypeInfo):
        return "TUPLE", declared.field_types
    if isinstance(declared, RowTypeInfo):
        named = declared.field_names is not None
        return (
            ("ROW_NAMED", (declared.field_names, declared.field_types))
            if named
            else ("ROW", declared.field_types)
        )
    return "PICKLED_BYTE_ARRAY", ()
