"""Running sum, min, max, min_by and max_by over a field of tuples, lists, dictionaries or objects."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from emberflow.errors import InvalidArgument

Field = int | str
"""A position in a tuple or list, or a name in a dictionary or object. On a plain number it is ignored."""


@dataclass(frozen=True, slots=True)
class Aggregation:
    """Called as a reduce function."""

    kind: str
    field: Field

    def __call__(self, seen: Any, value: Any) -> Any:
        old, new = read(seen, self.field), read(value, self.field)
        if self.kind == "min_by":
            return value if new < old else seen
        if self.kind == "max_by":
            return value if new > old else seen
        if self.kind == "sum":
            return write(seen, self.field, old + new)
        return write(seen, self.field, min(old, new) if self.kind == "min" else max(old, new))


def read(value: Any, field: Field) -> Any:
    if isinstance(value, int | float):
        return value
    if isinstance(field, str) and not isinstance(value, dict):
        return getattr(value, field)
    try:
        return value[field]
    except (TypeError, KeyError, IndexError) as error:
        raise InvalidArgument(f"the value {value!r} has no field {field!r}") from error


def write(value: Any, field: Field, item: Any) -> Any:
    """A copy of the record with one field changed."""
    if isinstance(value, int | float):
        return item
    if isinstance(value, tuple) and isinstance(field, int):
        fields: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        fields[field] = item
        return type(value)(*fields) if hasattr(value, "_fields") else tuple(fields)  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
    if isinstance(value, tuple) and hasattr(value, "_replace"):
        return value._replace(**{str(field): item})  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType,reportAttributeAccessIssue]
    changed = copy.copy(value)
    if isinstance(field, str) and not isinstance(changed, dict):
        object.__setattr__(changed, field, item)
    else:
        changed[field] = item
    return changed  # pyright: ignore[reportUnknownVariableType]
