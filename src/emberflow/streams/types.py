"""PyFlink's type names. Any Python value travels here, so they only document; plain Python types do as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TypeInformation:
    name: str
    arguments: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.arguments))
        return f"Types.{self.name}({inner})"


class Types:
    """`Types.STRING()`, `Types.TUPLE([Types.STRING(), Types.INT()])`, …"""

    STRING = staticmethod(lambda: TypeInformation("STRING"))
    INT = staticmethod(lambda: TypeInformation("INT"))
    LONG = staticmethod(lambda: TypeInformation("LONG"))
    SHORT = staticmethod(lambda: TypeInformation("SHORT"))
    BYTE = staticmethod(lambda: TypeInformation("BYTE"))
    FLOAT = staticmethod(lambda: TypeInformation("FLOAT"))
    DOUBLE = staticmethod(lambda: TypeInformation("DOUBLE"))
    BOOLEAN = staticmethod(lambda: TypeInformation("BOOLEAN"))
    BIG_INT = staticmethod(lambda: TypeInformation("BIG_INT"))
    BIG_DEC = staticmethod(lambda: TypeInformation("BIG_DEC"))
    SQL_DATE = staticmethod(lambda: TypeInformation("SQL_DATE"))
    SQL_TIME = staticmethod(lambda: TypeInformation("SQL_TIME"))
    SQL_TIMESTAMP = staticmethod(lambda: TypeInformation("SQL_TIMESTAMP"))
    INSTANT = staticmethod(lambda: TypeInformation("INSTANT"))
    PICKLED_BYTE_ARRAY = staticmethod(lambda: TypeInformation("PICKLED_BYTE_ARRAY"))

    @staticmethod
    def TUPLE(field_types: Sequence[Any]) -> TypeInformation:
        return TypeInformation("TUPLE", tuple(field_types))

    @staticmethod
    def ROW(field_types: Sequence[Any]) -> TypeInformation:
        return TypeInformation("ROW", tuple(field_types))

    @staticmethod
    def ROW_NAMED(field_names: Sequence[str], field_types: Sequence[Any]) -> TypeInformation:
        return TypeInformation("ROW_NAMED", (tuple(field_names), tuple(field_types)))

    @staticmethod
    def LIST(element_type: Any) -> TypeInformation:
        return TypeInformation("LIST", (element_type,))

    @staticmethod
    def MAP(key_type: Any, value_type: Any) -> TypeInformation:
        return TypeInformation("MAP", (key_type, value_type))
