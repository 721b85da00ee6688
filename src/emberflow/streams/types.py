"""`Types`: type information with PyFlink's names."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, TypeVar

from emberflow.events.types.instant import Instant
from emberflow.events.types.type_information import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class Types:
    """What a source, an `output_type`, a state descriptor or an `OutputTag` declares about its values.

    Declared types are applied: values are converted where nothing is lost (a tuple becomes a `Row`, an integer a float),
    and a value that does not fit fails the job with an error that names the step, the field and the value. Where no type is
    declared, any Python value is passed on as it is. None fits the fields of rows, the values of maps, the elements of
    `BASIC_ARRAY` and `OBJECT_ARRAY`, and nothing else.

    ```python
    from emberflow.streams import Row, StreamExecutionEnvironment, Types

    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    word = Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.INT()])
    words = env.from_collection([("to", 1), ("be", 1), ("to", 1)], word)
    counts = words.key_by(lambda row: row.word).sum("count").execute_and_collect(limit=3)
    assert counts[-1] == Row(word="to", count=2)
    ```
    """

    @staticmethod
    def STRING() -> TypeInformation[str]:
        """`str`."""
        return BasicTypeInfo(BasicType.STRING)

    @staticmethod
    def BYTE() -> TypeInformation[int]:
        """`int` from -128 to 127."""
        return BasicTypeInfo(BasicType.BYTE)

    @staticmethod
    def BOOLEAN() -> TypeInformation[bool]:
        """`bool`."""
        return BasicTypeInfo(BasicType.BOOLEAN)

    @staticmethod
    def SHORT() -> TypeInformation[int]:
        """`int` of 16 bits."""
        return BasicTypeInfo(BasicType.SHORT)

    @staticmethod
    def INT() -> TypeInformation[int]:
        """`int` of 32 bits. As in PyFlink, floating point numbers are truncated."""
        return BasicTypeInfo(BasicType.INT)

    @staticmethod
    def LONG() -> TypeInformation[int]:
        """`int` of 64 bits. As in PyFlink, floating point numbers are truncated."""
        return BasicTypeInfo(BasicType.LONG)

    @staticmethod
    def FLOAT() -> TypeInformation[float]:
        """`float`, rounded to 4 bytes."""
        return BasicTypeInfo(BasicType.FLOAT)

    @staticmethod
    def DOUBLE() -> TypeInformation[float]:
        """`float`."""
        return BasicTypeInfo(BasicType.DOUBLE)

    @staticmethod
    def CHAR() -> TypeInformation[str]:
        """`str`."""
        return BasicTypeInfo(BasicType.CHAR)

    @staticmethod
    def BIG_INT() -> TypeInformation[int]:
        """`int` of any size."""
        return BasicTypeInfo(BasicType.BIG_INT)

    @staticmethod
    def BIG_DEC() -> TypeInformation[Decimal]:
        """`decimal.Decimal`; other numbers and strings are converted by their text."""
        return BasicTypeInfo(BasicType.BIG_DEC)

    @staticmethod
    def INSTANT() -> TypeInformation[Instant]:
        """`Instant`; datetimes with a time zone are converted."""
        return BasicTypeInfo(BasicType.INSTANT)

    @staticmethod
    def SQL_DATE() -> TypeInformation[datetime.date]:
        """`datetime.date`."""
        return DateTypeInfo()

    @staticmethod
    def SQL_TIME() -> TypeInformation[datetime.time]:
        """`datetime.time`."""
        return TimeTypeInfo()

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation[datetime.datetime]:
        """`datetime.datetime` without a time zone; as in PyFlink, one with a time zone keeps its wall time."""
        return TimestampTypeInfo()

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation[Any]:
        """Any Python value, as it is."""
        return PickledBytesTypeInfo()

    @staticmethod
    def ROW(field_types: Sequence[TypeInformation[Any]]) -> RowTypeInfo:
        """A `Row` with fields of these types, named `f0`, `f1`, …"""
        return RowTypeInfo(tuple(field_types))

    @staticmethod
    def ROW_NAMED(field_names: Sequence[str], field_types: Sequence[TypeInformation[Any]]) -> RowTypeInfo:
        """A `Row` with fields of these names and types."""
        return RowTypeInfo(tuple(field_types), tuple(field_names))

    @staticmethod
    def TUPLE(field_types: Sequence[TypeInformation[Any]]) -> TupleTypeInfo:
        """A tuple with fields of these types."""
        return TupleTypeInfo(tuple(field_types))

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation[T]) -> TypeInformation[list[T]]:
        """A list of numbers, truth values or characters without None; of `BYTE`, it is `bytes`."""
        return PrimitiveArrayTypeInfo(element_type)

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation[T]) -> TypeInformation[list[T]]:
        """A list of numbers, truth values, characters or strings, with None."""
        return BasicArrayTypeInfo(element_type)

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation[T]) -> TypeInformation[list[T]]:
        """A list of elements of any type, with None."""
        return ObjectArrayTypeInfo(element_type)

    @staticmethod
    def MAP(
        key_type_info: TypeInformation[K], value_type_info: TypeInformation[V]
    ) -> TypeInformation[dict[K, V]]:
        """A dictionary of one key type and one value type."""
        return MapTypeInfo(key_type_info, value_type_info)

    @staticmethod
    def LIST(element_type_info: TypeInformation[T]) -> TypeInformation[list[T]]:
        """A list of one element type, without None; of `BYTE`, it is `bytes`."""
        return ListTypeInfo(element_type_info)


__all__ = ["TypeInformation", "Types"]
