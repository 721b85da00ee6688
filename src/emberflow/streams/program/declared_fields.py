"""Whether a field that a user names is one of the declared type. Fields of records without a declared type are not known
before they are read."""

from __future__ import annotations

from typing import Any

from emberflow.errors import InvalidArgument, did_you_mean
from emberflow.events.types.object_types import ObjectTypeInfo
from emberflow.events.types.type_information import RowTypeInfo, TupleTypeInfo, TypeInformation


def check_field(declared: TypeInformation[Any] | None, field: Any, method: str) -> None:
    """Raises `InvalidArgument` for a name or position that no record of the declared type has."""
    if isinstance(declared, RowTypeInfo | TupleTypeInfo):
        names = declared.get_field_names() if isinstance(declared, RowTypeInfo) else []
        size = len(declared.field_types)
        if field in names or (isinstance(field, int) and -size <= field < size):
            return
        known = f"a position from 0 to {size - 1}"
    elif isinstance(declared, ObjectTypeInfo) and isinstance(field, str):
        names = _field_names(declared.kind)
        if field in names or hasattr(declared.kind, field) or _may_have_more(declared.kind):
            return
        known = ""
    else:
        return
    raise InvalidArgument(
        f"{method}({field!r}): the declared type of the records, {declared!r}, has no field {field!r}"
        f"{did_you_mean(field, names)}",
        way_out=f"name one of its fields: {', '.join([*names, *([known] if known else [])])}",
    )


def _field_names(kind: Any) -> list[str]:
    for attribute in ("model_fields", "__dataclass_fields__", "_fields"):
        if hasattr(kind, attribute):
            return list(getattr(kind, attribute))
    return []


def _may_have_more(kind: Any) -> bool:
    """Whether objects may have attributes that the class does not name."""
    if hasattr(kind, "model_fields"):
        return getattr(kind, "model_config", {}).get("extra") == "allow"
    return hasattr(kind, "__post_init__") or hasattr(kind, "__getattr__")
