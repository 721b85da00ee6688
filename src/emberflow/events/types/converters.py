"""Values of a declared type without parts: what is converted, and what does not fit.

A `Converter` works on columns, because the check of a column of plain values is a few passes in C. Values are looked at one
by one only if something has to be converted or does not fit. The rules are those of PyFlink's coders.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

from emberflow.errors import shorten
from emberflow.events.types.instant import Instant
from emberflow.events.types.type_information import (
    BasicType,
    BasicTypeInfo,
    SqlTimeType,
    SqlTimeTypeInfo,
    TypeInformation,
)


class TypeMismatch(TypeError):
    """A value that does not fit its declared type."""

    def __init__(self, value: Any, expected: TypeInformation[Any], reason: str = "") -> None:
        super().__init__()
        self.value = value
        self.expected = expected
        self.reason = reason
        self.path = ""

    def inside(self, place: str) -> TypeMismatch:
        """The same, seen from the value that has this one in its field or element `place`."""
        self.path = f"{self.path} of {place}" if self.path else place
        return self

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        reason = f" ({self.reason})" if self.reason else ""
        return f"{where}the value {shorten(self.value)} is not of the type {self.expected!r}{reason}"


def kinds_of(values: Sequence[Any]) -> set[type[Any]]:
    """The classes of values."""
    return set(map(type, values))


class Converter:
    """Converts values to one declared type."""

    def __init__(self, expected: TypeInformation[Any]) -> None:
        self.expected = expected

    def one(self, value: Any) -> Any:
        """The value as the type wants it; raises TypeMismatch. Returns the same object if it is right already."""
        raise NotImplementedError(type(self).__name__)

    def is_right(self, values: Sequence[Any], kinds: set[type[Any]]) -> bool:
        """Whether all values, which have these classes, are right already; False if that is not known cheaply."""
        return False

    def column(self, values: Sequence[Any]) -> Sequence[Any]:
        """All values as the type wants them; raises TypeMismatch without telling which one it is."""
        return values if self.is_right(values, kinds_of(values)) else [self.one(value) for value in values]

    def misfit(self, value: Any, reason: str = "") -> TypeMismatch:
        return TypeMismatch(value, self.expected, reason)


class AnyConverter(Converter):
    """Any Python value."""

    def one(self, value: Any) -> Any:
        return value

    def is_right(self, values: Sequence[Any], kinds: set[type[Any]]) -> bool:
        return True


class PlainConverter(Converter):
    """Values of one Python class; `convert` gets every other value and raises TypeError, ValueError or OverflowError."""

    def __init__(
        self, expected: TypeInformation[Any], kind: type[Any], convert: Callable[[Any], Any]
    ) -> None:
        super().__init__(expected)
        self.kind = kind
        self._kinds = {kind}
        self._convert = convert

    def one(self, value: Any) -> Any:
        if value.__class__ is self.kind:
            return value
        try:
            return self._convert(value)
        except (TypeError, ValueError, OverflowError, InvalidOperation) as error:
            raise self.misfit(value, str(error)) from None

    def is_right(self, values: Sequence[Any], kinds: set[type[Any]]) -> bool:
        return kinds == self._kinds


class WholeConverter(PlainConverter):
    """Whole numbers of a range."""

    def __init__(self, expected: TypeInformation[Any], bits: int) -> None:
        super().__init__(expected, int, _whole)
        self.low = -(1 << bits - 1)
        self.high = -self.low - 1

    def one(self, value: Any) -> Any:
        found = super().one(value)
        if not self.low <= found <= self.high:
            raise self.misfit(value, f"it is not between {self.low} and {self.high}")
        return found

    def is_right(self, values: Sequence[Any], kinds: set[type[Any]]) -> bool:
        return kinds == self._kinds and self.low <= min(values) and max(values) <= self.high


def _whole(value: Any) -> int:
    if isinstance(value, str | bytes) or not hasattr(value, "__int__"):
        raise TypeError("")
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, str | bytes):
        raise TypeError("")
    return float(value)


def _truth(value: Any) -> bool:
    if isinstance(value, str | bytes) or not hasattr(value, "__int__"):
        raise TypeError("")
    return bool(int(value))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return str(value)
    raise TypeError("")


def _decimal(value: Any) -> Decimal:
    if value is None or isinstance(value, bool | bytes):
        raise TypeError("")
    return Decimal(str(value))


def _day(value: Any) -> date:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    raise TypeError("")


def _time_of_day(value: Any) -> time:
    if isinstance(value, datetime):
        return value.time()
    if isinstance(value, time):
        return value
    raise TypeError("")


def _instant(value: Any) -> Instant:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return Instant.of_datetime(value)
    raise TypeError("write an Instant, or a datetime with a time zone")


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)  # pyright: ignore[reportUnknownArgumentType]
    raise TypeError("")


class SingleConverter(PlainConverter):
    """4-byte floating point numbers: values are rounded to them."""

    def one(self, value: Any) -> Any:
        return array("f", [super().one(value)])[0]

    def is_right(self, values: Sequence[Any], kinds: set[type[Any]]) -> bool:
        return False

    def column(self, values: Sequence[Any]) -> Sequence[Any]:
        if kinds_of(values) == self._kinds:
            return array("f", values).tolist()
        return [self.one(value) for value in values]


class TimestampConverter(PlainConverter):
    """Datetimes without a time zone: one with a time zone loses it and keeps its wall time, as in PyFlink."""

    def one(self, value: Any) -> Any:
        found = super().one(value)
        return found if found.tzinfo is None else found.replace(tzinfo=None)

    def is_right(self, values: Sequence[Any], kinds: set[type[Any]]) -> bool:
        return kinds == self._kinds and all(value.tzinfo is None for value in values)


def _timestamp(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    raise TypeError("")


_WHOLE_BITS: dict[Any, int] = {BasicType.BYTE: 8, BasicType.SHORT: 16, BasicType.INT: 32, BasicType.LONG: 64}
_PLAIN: dict[Any, tuple[type[PlainConverter], type[Any], Callable[[Any], Any]]] = {
    BasicType.STRING: (PlainConverter, str, _text),
    BasicType.CHAR: (PlainConverter, str, _text),
    BasicType.BOOLEAN: (PlainConverter, bool, _truth),
    BasicType.FLOAT: (SingleConverter, float, _number),
    BasicType.DOUBLE: (PlainConverter, float, _number),
    BasicType.BIG_INT: (PlainConverter, int, _whole),
    BasicType.BIG_DEC: (PlainConverter, Decimal, _decimal),
    BasicType.INSTANT: (PlainConverter, Instant, _instant),
    SqlTimeType.DATE: (PlainConverter, date, _day),
    SqlTimeType.TIME: (PlainConverter, time, _time_of_day),
    SqlTimeType.TIMESTAMP: (TimestampConverter, datetime, _timestamp),
}


def plain_converter(expected: BasicTypeInfo[Any] | SqlTimeTypeInfo[Any]) -> Converter:
    """The converter of a type without parts."""
    of = expected.basic_type if isinstance(expected, BasicTypeInfo) else expected.time_type
    if of in _WHOLE_BITS:
        return WholeConverter(expected, _WHOLE_BITS[of])
    converter, kind, convert = _PLAIN[of]
    return converter(expected, kind, convert)


def bytes_converter(expected: TypeInformation[Any]) -> Converter:
    """The converter of an array of bytes."""
    return PlainConverter(expected, bytes, _bytes)
