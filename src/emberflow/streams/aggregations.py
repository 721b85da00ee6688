"""Running sum, min, max, min_by and max_by over a field of rows, tuples, lists, dictionaries or objects."""

from __future__ import annotations

import copy
import operator
from dataclasses import dataclass
from typing import Any, ClassVar

from emberflow.errors import InvalidArgument
from emberflow.events.types.row import Row, combined

Field = int | str
"""A position in a row, tuple or list, or a name in a row, dictionary or object. On a plain number it is ignored."""


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

    def __call__(self, seen: Any, value: Any) -> Any:
        if seen.__class__ is Row and self.kind in _COMBINED:
            return combined(seen, value, self.field, _COMBINED[self.kind])
        old, new = read(seen, self.field), read(value, self.field)
        if self.kind == "min_by":
            return value if new < old else seen
        if self.kind == "max_by":
            return value if new > old else seen
        if self.kind == "sum":
            return write(seen, self.field, old + new)
        return write(seen, self.field, min(old, new) if self.kind == "min" else max(old, new))


def read(value: Any, field: Field) -> Any:
    if type(value) in (int, float):
        return value
    if type(field) is str and value.__class__ is not Row and not issubclass(type(value), dict):
        return getattr(value, field)
    try:
        return value[field]
    except (TypeError, KeyError, IndexError) as error:
        raise InvalidArgument(f"the value {value!r} has no field {field!r}") from error


def write(value: Any, field: Field, item: Any) -> Any:
    """A copy of the record with one field changed."""
    kind: type[Any] = value.__class__
    if kind in (int, float):
        return item
    if kind is tuple and type(field) is int and field >= 0:
        return (*value[:field], item, *value[field + 1 :])
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
