"""Running sum, min, max, min_by and max_by over a field of rows, tuples, lists, dictionaries or objects."""

from __future__ import annotations

import copy
import datetime as dt
import operator
from dataclasses import dataclass
from numbers import Number
from typing import Any, ClassVar

from emberflow.errors import describe_cause, shorten
from emberflow.events.types.row import Row, combined

Field = int | str
"""A position in a row, tuple or list, or a name in a row, dictionary or object. On a plain number it is ignored, and so is a
position on a string or a date, which are compared as they are."""


_PLAIN = (str, bytes, dt.date, dt.time, dt.timedelta)
_COMBINED: dict[str, Any] = {"sum": operator.add, "min": min, "max": max}


@dataclass(frozen=True, slots=True)
class Aggregation:
    """Called as a reduce function."""

    kind: str
    field: Field
    leaves_arguments: ClassVar[bool] = True
    """Neither argument is changed, so whoever calls it needs no copies."""

    @property
    def mergeable(self) -> bool:
        """As `ReduceFunction.mergeable`. Which of several equal records `min_by` and `max_by` return depends on the order."""
        return self.kind in _COMBINED

    def check_first(self, value: Any) -> None:
        """Raises TypeError if the first record of a key or window lacks the field, which else the second would show."""
        self._read(value)

    def _read(self, value: Any) -> Any:
        if isinstance(value, _PLAIN) and type(self.field) is int and self.kind != "sum":
            return value
        return read(value, self.field)

    def __call__(self, seen: Any, value: Any) -> Any:
        try:
            if seen.__class__ is Row:
                combine = _COMBINED.get(self.kind)
                if combine is not None:
                    return combined(seen, value, self.field, combine)
            old, new = self._read(seen), self._read(value)
            if self.kind == "min_by":
                return value if new < old else seen
            if self.kind == "max_by":
                return value if new > old else seen
            if self.kind == "sum":
                return write(seen, self.field, old + new)
            return write(seen, self.field, min(old, new) if self.kind == "min" else max(old, new))
        except Exception as error:
            # To name the record that lacks the field, and what could not be combined.
            old, new = self._read(seen), self._read(value)
            kept, given = shorten(old), shorten(new)
            raise TypeError(
                f"{self.kind}({self.field!r}) of {kept} and {given} failed: {describe_cause(error)}"
            ) from error


def read(value: Any, field: Field) -> Any:
    if type(value) in (int, float):
        return value
    if value.__class__ is tuple and type(field) is int and -len(value) <= field < len(value):
        return value[field]
    if isinstance(value, Number):
        return value
    try:
        if type(field) is str and value.__class__ is not Row and not issubclass(type(value), dict):
            return getattr(value, field)
        if not isinstance(value, str | bytes):
            return value[field]
    except (AttributeError, TypeError, KeyError, IndexError) as error:
        raise _no_field(value, field) from error
    raise _no_field(value, field)


def _no_field(value: Any, field: Field) -> TypeError:
    return TypeError(f"the value {shorten(value)} has no field {field!r}")


def write(value: Any, field: Field, item: Any) -> Any:
    """A copy of the record with one field changed."""
    kind: type[Any] = value.__class__
    if kind is tuple and type(field) is int and field >= 0:
        return (*value[:field], item, *value[field + 1 :])
    if kind in (int, float) or isinstance(value, (Number, *_PLAIN)):
        return item
    if issubclass(kind, tuple):
        if hasattr(value, "_replace"):
            return value._replace(**{value._fields[field] if type(field) is int else str(field): item})
        at = field + len(value) if type(field) is int and field < 0 else field
        return tuple(item if position == at else old for position, old in enumerate(value))
    changed: Any = copy.copy(value)
    if type(field) is str and not issubclass(kind, dict):
        object.__setattr__(changed, field, item)
    else:
        changed[field] = item
    return changed
