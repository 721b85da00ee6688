"""Arrow tables as records: the Python value for each Arrow type, the same on every engine.

Maps are dictionaries. Timestamps with a time zone are aware datetimes in UTC, whatever the session's time zone is, so
that records do not depend on a setting; those without one are naive.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from typing import Any

Convert = Callable[[Any], Any]


def arrow_records(table: Any) -> list[dict[str, Any]]:
    """The rows of a table or record batch as dictionaries."""
    records: list[dict[str, Any]] = table.to_pylist()
    for field in table.schema:
        convert = _converter(field.type)
        if convert is not None:
            for record in records:
                record[field.name] = convert(record[field.name])
    return records


def _converter(arrow_type: Any) -> Convert | None:
    """A function that converts values of the type; None if `to_pylist` already returns the right values."""
    import pyarrow.types as types

    if types.is_timestamp(arrow_type) and arrow_type.tz is not None:
        return _or_none(lambda value: value.astimezone(UTC))
    if types.is_map(arrow_type):
        keys, values = _converter(arrow_type.key_type), _converter(arrow_type.item_type)
        return _or_none(lambda pairs: {_apply(keys, key): _apply(values, value) for key, value in pairs})
    if types.is_list(arrow_type) or types.is_large_list(arrow_type) or types.is_fixed_size_list(arrow_type):
        of_item = _converter(arrow_type.value_type)
        return None if of_item is None else _or_none(lambda items: [of_item(item) for item in items])
    if types.is_struct(arrow_type):
        fields = {
            field.name: convert for field in arrow_type if (convert := _converter(field.type)) is not None
        }
        if fields:
            return _or_none(
                lambda row: {**row, **{name: convert(row[name]) for name, convert in fields.items()}}
            )
    return None


def _apply(convert: Convert | None, value: Any) -> Any:
    return value if convert is None else convert(value)


def _or_none(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)
