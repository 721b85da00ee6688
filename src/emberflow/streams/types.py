"""PyFlink's type names. Any Python value travels here, so they only document; plain Python types do as well."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, TypeVar

from emberflow.events.type_information import TypeInformation

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

_Hint = TypeInformation[T] | type[T]


class Types:
    """Type hints with PyFlink's names, for descriptors, tags and `output_type`.

    A type checker reads them: `ValueStateDescriptor("count", Types.INT())` is a `ValueStateDescriptor[int]`. Plain
    Python types do as well: `ValueStateDescriptor("count", int)`.

    ```python
    from emberflow.streams import Types

    pair = Types.TUPLE([Types.STRING(), Types.INT()])
    assert repr(pair) == "Types.TUPLE(Types.STRING(), Types.INT())"
    ```
    """

    @staticmethod
    def STRING() -> TypeInformation[str]:
        """`str`."""
        return TypeInformation("STRING")

    @staticmethod
    def INT() -> TypeInformation[int]:
        """`int`."""
        return TypeInformation("INT")

    @staticmethod
    def LONG() -> TypeInformation[int]:
        """`int`."""
        return TypeInformation("LONG")

    @staticmethod
    def SHORT() -> TypeInformation[int]:
        """`int`."""
        return TypeInformation("SHORT")

    @staticmethod
    def BYTE() -> TypeInformation[int]:
        """`int`."""
        return TypeInformation("BYTE")

    @staticmethod
    def FLOAT() -> TypeInformation[float]:
        """`float`."""
        return TypeInformation("FLOAT")

    @staticmethod
    def DOUBLE() -> TypeInformation[float]:
        """`float`."""
        return TypeInformation("DOUBLE")

    @staticmethod
    def BOOLEAN() -> TypeInformation[bool]:
        """`bool`."""
        return TypeInformation("BOOLEAN")

    @staticmethod
    def BIG_INT() -> TypeInformation[int]:
        """`int`."""
        return TypeInformation("BIG_INT")

    @staticmethod
    def BIG_DEC() -> TypeInformation[Decimal]:
        """`decimal.Decimal`."""
        return TypeInformation("BIG_DEC")

    @staticmethod
    def SQL_DATE() -> TypeInformation[datetime.date]:
        """`datetime.date`."""
        return TypeInformation("SQL_DATE")

    @staticmethod
    def SQL_TIME() -> TypeInformation[datetime.time]:
        """`datetime.time`."""
        return TypeInformation("SQL_TIME")

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation[datetime.datetime]:
        """`datetime.datetime`."""
        return TypeInformation("SQL_TIMESTAMP")

    @staticmethod
    def INSTANT() -> TypeInformation[datetime.datetime]:
        """`datetime.datetime`."""
        return TypeInformation("INSTANT")

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation[Any]:
        """Any Python value."""
        return TypeInformation("PICKLED_BYTE_ARRAY")

    @staticmethod
    def TUPLE(field_types: Sequence[Any]) -> TypeInformation[tuple[Any, ...]]:
        """A tuple with one type for each field."""
        return TypeInformation("TUPLE", tuple(field_types))

    @staticmethod
    def ROW(field_types: Sequence[Any]) -> TypeInformation[Any]:
        """A row with one type for each field."""
        return TypeInformation("ROW", tuple(field_types))

    @staticmethod
    def ROW_NAMED(field_names: Sequence[str], field_types: Sequence[Any]) -> TypeInformation[Any]:
        """A row with one name and one type for each field."""
        return TypeInformation("ROW_NAMED", (tuple(field_names), tuple(field_types)))

    @staticmethod
    def LIST(element_type: _Hint[T]) -> TypeInformation[list[T]]:
        """A list of one element type."""
        return TypeInformation("LIST", (element_type,))

    @staticmethod
    def MAP(key_type: _Hint[K], value_type: _Hint[V]) -> TypeInformation[dict[K, V]]:
        """A dictionary of one key type and one value type."""
        return TypeInformation("MAP", (key_type, value_type))


__all__ = ["TypeInformation", "Types"]
