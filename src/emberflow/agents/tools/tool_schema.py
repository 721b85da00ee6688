"""Converts type annotations to JSON Schema, and JSON values to the annotated types.

`FunctionTool` describes its parameters to a model with the schema, and reads what the model sends with `JsonType.read`.
Both come from one table, so a value that matches the schema can be read. Pydantic models describe and read themselves;
they are recognized by their methods, Pydantic is not imported unless an annotation has something of it.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import types
import typing
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Union
from uuid import UUID

from emberflow.errors import InvalidAgent, describe_cause, shorten


class Mismatch(ValueError):
    """A value that does not match; the message, meant for the model, names the place and what is expected."""


@dataclasses.dataclass(frozen=True, slots=True)
class JsonType:
    schema: dict[str, Any]
    read: Callable[[Any, str], Any]
    """`read(value, place)`; raises Mismatch."""

    defs: dict[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    """Schemas that `schema` refers to as `#/$defs/name`; they belong at the top of the whole schema."""


def json_type(hint: Any, owner: str, inside: tuple[Any, ...] = ()) -> JsonType:
    """Raises InvalidAgent, naming `owner`, for a type that has no JSON representation."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        if any(map(_is_pydantics, arguments[1:])):
            return _read_by_pydantic(hint, owner)
        made = json_type(arguments[0], owner, inside)
        text = next((item for item in arguments[1:] if isinstance(item, str)), "")
        return dataclasses.replace(made, schema={**made.schema, "description": text}) if text else made
    if getattr(origin, "_name", "") in ("Required", "NotRequired", "ReadOnly"):
        return json_type(arguments[0], owner, inside)
    meant: Any = getattr(hint, "__supertype__", None) or getattr(hint, "__value__", None)
    if meant is not None and not isinstance(hint, type):
        # A NewType, or an alias made with `type`.
        return json_type(meant, owner, inside)
    if origin in (Union, types.UnionType):
        return _union([json_type(item, owner, inside) for item in arguments])
    if origin is Literal:
        return _one_of(list(arguments), list(arguments))
    if not isinstance(hint, collections.abc.Hashable):
        raise _no_form(hint, owner)
    if hint in _PLAIN:
        return _PLAIN[hint]
    container = origin or hint
    if container in _SEQUENCES:
        return _sequence(_SEQUENCES[container], container is tuple, arguments, owner, inside)
    if container in _MAPPINGS:
        key, value = arguments or (str, Any)
        if key not in (str, Any):
            raise _no_form(hint, owner, "the property names of a JSON object are strings: dict[str, …]")
        return _mapping(json_type(value, owner, inside))
    if _is_pydantics(hint) and not hasattr(hint, "model_json_schema"):
        return _read_by_pydantic(hint, owner)
    if not isinstance(hint, type):
        raise _no_form(hint, owner)
    return _class(hint, owner, inside)


def _class(hint: Any, owner: str, inside: tuple[Any, ...]) -> JsonType:
    if issubclass(hint, Enum):
        return _one_of([member.value for member in hint], list(hint))
    if hasattr(hint, "model_json_schema") and hasattr(hint, "model_validate"):
        return _self_describing(hint)
    if hint in inside:
        raise _no_form(hint, owner, "it contains itself; a Pydantic model may do so")
    if dataclasses.is_dataclass(hint):
        fields = [item for item in dataclasses.fields(hint) if item.init]
        required = [
            item.name for item in fields if item.default is item.default_factory is dataclasses.MISSING
        ]
        return _object(hint, [item.name for item in fields], required, owner, inside)
    if hasattr(hint, "_fields") and hasattr(hint, "_field_defaults"):
        # A NamedTuple.
        named: list[str] = list(hint._fields)
        return _object(
            hint, named, [name for name in named if name not in hint._field_defaults], owner, inside
        )
    if _is_typed_dict(hint):
        return _object(hint, list(hint.__annotations__), _needed_keys(hint, owner), owner, inside)
    raise _no_form(hint, owner)


def _is_typed_dict(hint: Any) -> bool:
    """Also one of `typing_extensions`, which Pydantic wants."""
    return hasattr(hint, "__required_keys__") and hasattr(hint, "__total__")


def _needed_keys(hint: Any, owner: str) -> list[str]:
    """With `from __future__ import annotations`, a dictionary's class does not see `Required[…]` in its own body."""
    needed: set[str] = set(hint.__required_keys__)
    for name, given in resolved_hints(hint, owner).items():
        said = _key_marks(given)
        if "Required" in said:
            needed.add(name)
        if "NotRequired" in said:
            needed.discard(name)
    return sorted(needed)


def _key_marks(hint: Any) -> list[str]:
    origin = typing.get_origin(hint)
    name = "" if origin is None else str(getattr(origin, "_name", ""))
    marked = name in ("Required", "NotRequired", "ReadOnly") or origin is typing.Annotated
    return [name, *_key_marks(typing.get_args(hint)[0])] if marked else []


def _is_pydantics(value: Any) -> bool:
    """Whether a type, or a part of an annotation such as `Field(ge=0)`, is Pydantic's."""
    kind: Any = value if isinstance(value, type) else value.__class__
    return kind.__module__.partition(".")[0] in ("pydantic", "annotated_types")


def _read_by_pydantic(hint: Any, owner: str) -> JsonType:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(hint)
        schema = adapter.json_schema()
    except PydanticUserError as error:
        raise _no_form(hint, owner, error.message) from error
    defs: dict[str, Any] = schema.pop("$defs", {})

    def read(value: Any, place: str) -> Any:
        try:
            return adapter.validate_python(value)
        except ValueError as error:
            raise Mismatch(f"{place}: {_problems(error)}") from error

    return JsonType(schema, read, defs)


def _no_form(hint: Any, owner: str, why: str = "") -> InvalidAgent:
    return InvalidAgent(
        f"{owner}: the type {getattr(hint, '__qualname__', hint)} cannot be represented in JSON",
        cause=why,
        way_out="use str, int, float, bool, Literal, an Enum, list, dict[str, …], a dataclass or a Pydantic model",
    )


def _mismatch(place: str, expected: str, value: Any) -> Mismatch:
    return Mismatch(f"{place} must be {expected}, got {shorten(value)}")


def _plain(schema: dict[str, Any], expected: str, fits: Callable[[Any], bool]) -> JsonType:
    def read(value: Any, place: str) -> Any:
        if not fits(value):
            raise _mismatch(place, expected, value)
        return value

    return JsonType(schema, read)


def _parsed(schema: dict[str, Any], expected: str, parse: Callable[[Any], Any]) -> JsonType:
    def read(value: Any, place: str) -> Any:
        try:
            return parse(value)
        except (ValueError, TypeError, AttributeError, ArithmeticError):
            raise _mismatch(place, expected, value) from None

    return JsonType(schema, read)


def _whole(value: Any) -> int:
    # Models write 3.0 where 3 is meant; true and "3" are not numbers.
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise ValueError
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError
    return float(value)


TYPE_NAMES = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "object": "an object",
    "array": "a list",
}
"""What messages call the types of JSON Schema, wherever data is checked against one."""

_PLAIN: dict[Any, JsonType] = {
    Any: JsonType({}, lambda value, place: value),
    object: JsonType({}, lambda value, place: value),
    None: _plain({"type": "null"}, TYPE_NAMES["null"], lambda value: value is None),
    type(None): _plain({"type": "null"}, TYPE_NAMES["null"], lambda value: value is None),
    str: _plain({"type": "string"}, TYPE_NAMES["string"], lambda value: isinstance(value, str)),
    bool: _plain({"type": "boolean"}, TYPE_NAMES["boolean"], lambda value: isinstance(value, bool)),
    int: _parsed({"type": "integer"}, TYPE_NAMES["integer"], _whole),
    float: _parsed({"type": "number"}, TYPE_NAMES["number"], _number),
    Decimal: _parsed({"type": "number"}, TYPE_NAMES["number"], lambda value: Decimal(str(value))),
    datetime: _parsed(
        {"type": "string", "format": "date-time"}, "a time like 2030-01-31T12:00:00", datetime.fromisoformat
    ),
    date: _parsed({"type": "string", "format": "date"}, "a day like 2030-01-31", date.fromisoformat),
    time: _parsed({"type": "string", "format": "time"}, "a time like 12:00:00", time.fromisoformat),
    Path: _parsed({"type": "string", "format": "path"}, "a path", Path),
    UUID: _parsed({"type": "string", "format": "uuid"}, "a UUID", UUID),
}
_SEQUENCES: dict[Any, Callable[[list[Any]], Any]] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    collections.abc.Sequence: list,
    collections.abc.Iterable: list,
    collections.abc.Collection: list,
}
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def _one_of(written: list[Any], meant: list[Any]) -> JsonType:
    def read(value: Any, place: str) -> Any:
        for text, member in zip(written, meant, strict=True):
            if type(text) is type(value) and text == value:
                return member
        raise _mismatch(place, f"one of {', '.join(map(repr, written))}", value)

    kinds = {str: "string", int: "integer", float: "number", bool: "boolean"}
    kind = {kinds.get(item.__class__) for item in written}
    named = kind.pop() if len(kind) == 1 else None
    return JsonType({**({"type": named} if named else {}), "enum": written}, read)


def _union(members: list[JsonType]) -> JsonType:
    def read(value: Any, place: str) -> Any:
        problems: list[str] = []
        for member in members:
            try:
                return member.read(value, place)
            except Mismatch as error:
                problems.append(str(error))
        raise Mismatch(", or ".join(dict.fromkeys(problems)))

    defs = {name: schema for member in members for name, schema in member.defs.items()}
    return JsonType({"anyOf": [member.schema for member in members]}, read, defs)


def _sequence(
    make: Callable[[list[Any]], Any],
    fixed: bool,
    arguments: tuple[Any, ...],
    owner: str,
    inside: tuple[Any, ...],
) -> JsonType:
    fixed = fixed and bool(arguments) and arguments[-1] is not Ellipsis
    items = [json_type(item, owner, inside) for item in arguments if item is not Ellipsis] or [_PLAIN[Any]]

    def read(value: Any, place: str) -> Any:
        if not isinstance(value, list | tuple) or (
            fixed and len(typing.cast("list[Any]", value)) != len(items)
        ):
            raise _mismatch(place, f"a list of {len(items)} values" if fixed else TYPE_NAMES["array"], value)
        given: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        readers = items if fixed else items * len(given)
        read_items = [
            reader.read(item, f"{place}[{index}]")
            for index, (reader, item) in enumerate(zip(readers, given, strict=True))
        ]
        try:
            return make(read_items)
        except TypeError as error:
            raise Mismatch(f"{place}: {describe_cause(error)}") from error

    schema: dict[str, Any] = {"type": "array"}
    if fixed:
        schema |= {
            "prefixItems": [item.schema for item in items],
            "minItems": len(items),
            "maxItems": len(items),
        }
    elif items[0].schema:
        schema["items"] = items[0].schema
    return JsonType(schema, read, {name: found for item in items for name, found in item.defs.items()})


def _mapping(values: JsonType) -> JsonType:
    def read(value: Any, place: str) -> Any:
        given = _as_object(value, place)
        return {name: values.read(item, f"{place}.{name}") for name, item in given.items()}

    schema: dict[str, Any] = {"type": "object"}
    if values.schema:
        schema["additionalProperties"] = values.schema
    return JsonType(schema, read, values.defs)


def _object(
    hint: Any, names: list[str], required: list[str], owner: str, inside: tuple[Any, ...]
) -> JsonType:
    hints = resolved_hints(hint, owner)
    fields = {name: json_type(hints[name], owner, (*inside, hint)) for name in names}
    is_data = not _is_typed_dict(hint)

    def read(value: Any, place: str) -> Any:
        if is_data and isinstance(value, hint):
            return value
        return hint(**read_fields(fields, required, _as_object(value, place), place))

    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: found.schema for name, found in fields.items()},
        "required": required,
    }
    return JsonType(
        schema, read, {name: found for item in fields.values() for name, found in item.defs.items()}
    )


def read_fields(
    fields: dict[str, JsonType], required: list[str], given: dict[str, Any], place: str
) -> dict[str, Any]:
    """The values by name, converted. Raises one Mismatch with all problems, so that a model can fix them at once."""
    problems = [f"{place} has the unexpected property {name!r}" for name in given if name not in fields]
    problems += [f"{place} needs {name!r}" for name in required if name not in given]
    read: dict[str, Any] = {}
    for name, value in given.items():
        if name in fields:
            try:
                read[name] = fields[name].read(value, f"{place}.{name}")
            except Mismatch as error:
                problems.append(str(error))
    if problems:
        raise Mismatch("; ".join(problems))
    return read


def _as_object(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _mismatch(place, "an object", value)
    return typing.cast("dict[str, Any]", value)


def _self_describing(hint: Any) -> JsonType:
    schema: dict[str, Any] = dict(hint.model_json_schema())
    defs = schema.pop("$defs", {})

    def read(value: Any, place: str) -> Any:
        try:
            return hint.model_validate(value)
        except ValueError as error:
            raise Mismatch(f"{place}: {_problems(error)}") from error

    return JsonType(schema, read, defs)


def _problems(error: Any) -> str:
    """The problems listed in a Pydantic error, without its URLs."""
    try:
        return "; ".join(
            f"{'.'.join(map(str, item['loc']))}: {item['msg']}" if item["loc"] else item["msg"]
            for item in error.errors()
        )
    except (AttributeError, KeyError, TypeError):
        return describe_cause(error)


def resolved_hints(target: Any, owner: str) -> dict[str, Any]:
    """The annotations of a function or class as types; raises InvalidAgent if a name is not found."""
    try:
        return typing.get_type_hints(target, include_extras=True)
    except (NameError, TypeError) as error:
        raise InvalidAgent(
            f"{owner}: its annotations cannot be read",
            cause=describe_cause(error),
            way_out="define the types that it names at the top of its module",
        ) from error
