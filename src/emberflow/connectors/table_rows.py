"""Records as rows of a table with named columns. The rules are the same on every engine:

- A dictionary must have exactly the schema's columns. A value may be None, but no key may be missing: a misspelt name
would silently become NULL.
- A `Row` with field names, a named tuple and a Spark `Row` are matched by name, any other row, tuple or list by position.
- Any other object has an attribute for each column; if the schema has a single column and the object no field of its name,
it is that column's value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from emberflow.errors import NotSerializable, shorten
from emberflow.events.types.instant import Instant
from emberflow.events.types.row import Row
from emberflow.events.types.schemas import has_fields, hints_of

_WAY_OUT = "emit dictionaries with exactly the schema's columns (a value may be None), or tuples in the order of the schema"


def as_row(value: Any, columns: Sequence[str]) -> dict[str, Any]:
    """Converts a record to a row with these columns; raises NotSerializable with the record and the columns that do not match."""
    if isinstance(value, dict):
        if len(value) != len(columns) or not all(name in value for name in columns):  # pyright: ignore[reportUnknownArgumentType]
            raise _other_names(value, value, columns)  # pyright: ignore[reportUnknownArgumentType]
        return value  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple | Row):
        return _of_items(value, columns)  # pyright: ignore[reportUnknownArgumentType]
    if len(columns) == 1 and not (has_fields(value.__class__) and hasattr(value, columns[0])):
        return {columns[0]: value}
    missing = [name for name in columns if not hasattr(value, name)]
    if missing:
        raise NotSerializable(
            f"the record {shorten(value)} does not match the schema's columns: it has no {_listed(missing)}",
            way_out=_WAY_OUT,
        )
    return {name: getattr(value, name) for name in columns}


def plain_values(value: Any) -> Any:
    """The value as pandas and pyarrow know it: dictionaries for rows and objects with fields, datetimes for instants."""
    if isinstance(value, Instant):
        return value.to_datetime()
    if isinstance(value, Row):
        return {name: plain_values(item) for name, item in value.as_dict().items()}
    if has_fields(value.__class__):
        return {name: plain_values(getattr(value, name)) for name in hints_of(value.__class__)}
    if isinstance(value, list | tuple):
        return [plain_values(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {key: plain_values(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value


def _of_items(value: Sequence[Any] | Row, columns: Sequence[str]) -> dict[str, Any]:
    names: Any = getattr(value, "_fields", None) or getattr(value, "__fields__", None)
    if names is not None and list(names) != list(columns):
        row = dict(zip(names, value, strict=True))
        if row.keys() != set(columns):
            raise _other_names(value, row, columns)
        return row
    if len(value) != len(columns):
        raise NotSerializable(
            f"the record {shorten(value)} has {len(value)} fields, the schema {len(columns)}",
            way_out=_WAY_OUT,
        )
    return dict(zip(columns, value, strict=True))


def _other_names(value: Any, found: Iterable[Any], columns: Sequence[str]) -> NotSerializable:
    names = list(found)
    missing = [name for name in columns if name not in names]
    unexpected = [name for name in names if name not in columns]
    parts = [f"missing {_listed(missing)}"] if missing else []
    if unexpected:
        parts.append(f"unexpected {_listed(unexpected)}")
    meant = [f"{name!r} for {close!r}" for name in unexpected if (close := _meant(name, missing)) is not None]
    hint = f"; did it write {', '.join(meant)}?" if meant else ""
    return NotSerializable(
        f"the record {shorten(value)} does not match the schema's columns: {'; '.join(parts)}{hint}",
        way_out=_WAY_OUT,
    )


def _meant(name: Any, missing: Sequence[str]) -> str | None:
    by_lower = {item.lower(): item for item in missing}
    close = get_close_matches(str(name).lower(), by_lower, 1, 0.5)
    return by_lower[close[0]] if close else None


def _listed(names: Sequence[Any], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + more
