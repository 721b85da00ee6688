"""Checks data against a JSON Schema, for output schemas that are given as such; types of Python check themselves.

Knows what schemas for models use: types, enums, objects, arrays, references inside the schema, alternatives, and limits of
numbers, lengths and patterns. Other keywords are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from emberflow.agents.tools.tool_schema import TYPE_NAMES, Mismatch
from emberflow.errors import InvalidAgent, did_you_mean, shorten

Schema = dict[str, Any]


def check(value: Any, schema: Any, place: str, root: Schema | None = None) -> None:
    """Raises Mismatch, with the place and what is expected there."""
    if schema is False:
        raise Mismatch(f"{place} is not allowed")
    if not isinstance(schema, dict):
        return
    described = cast("Schema", schema)
    top = described if root is None else root
    reference: Any = described.get("$ref")
    if isinstance(reference, str):
        check(value, _referred(reference, top), place, top)
    _check_plain(value, described, place)
    _check_alternatives(value, described, place, top)
    if isinstance(value, dict):
        _check_object(cast("dict[str, Any]", value), described, place, top)
    elif isinstance(value, list):
        _check_array(cast("list[Any]", value), described, place, top)


def check_types(schema: Any, place: str = "the output schema") -> None:
    """Raises InvalidAgent for a `type` that JSON Schema does not have, with the closest name."""
    if not isinstance(schema, dict):
        return
    described = cast("Schema", schema)
    kinds: Any = described.get("type", [])
    for kind in cast("list[Any]", kinds) if isinstance(kinds, list) else [kinds]:
        if kind not in TYPE_NAMES:
            raise InvalidAgent(
                f"{place} has the type {shorten(kind)}, which JSON Schema does not have{did_you_mean(kind, TYPE_NAMES)}",
                cause=f"its types: {', '.join(TYPE_NAMES)}",
            )
    for name in ("properties", "$defs", "definitions"):
        parts: Any = described.get(name)
        for key, part in cast("Schema", parts).items() if isinstance(parts, dict) else ():
            check_types(part, f"{place}, {key!r},")
    for name in ("items", "additionalProperties", "prefixItems", "allOf", "anyOf", "oneOf"):
        found: Any = described.get(name)
        for part in cast("list[Any]", found) if isinstance(found, list) else [found]:
            check_types(part, f"{place}, {name!r},")


def _referred(reference: str, root: Schema) -> Any:
    found: Any = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        found = cast("Schema", found).get(part, {}) if part and isinstance(found, dict) else found
    return found


def _is_integer(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and value == value // 1


_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": _is_integer,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
}

_LIMITS: dict[str, tuple[str, Callable[[Any, Any], bool], tuple[type, ...]]] = {
    "minimum": ("at least {}", lambda value, limit: value >= limit, (int, float)),
    "maximum": ("at most {}", lambda value, limit: value <= limit, (int, float)),
    "exclusiveMinimum": ("more than {}", lambda value, limit: value > limit, (int, float)),
    "exclusiveMaximum": ("less than {}", lambda value, limit: value < limit, (int, float)),
    "minLength": ("at least {} characters long", lambda value, limit: len(value) >= limit, (str,)),
    "maxLength": ("at most {} characters long", lambda value, limit: len(value) <= limit, (str,)),
    "minItems": ("a list of at least {}", lambda value, limit: len(value) >= limit, (list,)),
    "maxItems": ("a list of at most {}", lambda value, limit: len(value) <= limit, (list,)),
    "pattern": (
        "a string that matches {}",
        lambda value, limit: re.search(str(limit), str(value)) is not None,
        (str,),
    ),
}


def _check_plain(value: Any, schema: Schema, place: str) -> None:
    kinds: Any = schema.get("type")
    named: list[Any] = [kinds] if isinstance(kinds, str) else kinds or []
    known = [name for name in named if name in _TYPES]
    if known and not any(_TYPES[name](value) for name in known):
        wanted = " or ".join(TYPE_NAMES[name] for name in known)
        raise Mismatch(f"{place} must be {wanted}, got {shorten(value)}")
    if "enum" in schema and value not in schema["enum"]:
        raise Mismatch(f"{place} must be one of {schema['enum']}, got {shorten(value)}")
    if "const" in schema and value != schema["const"]:
        raise Mismatch(f"{place} must be {schema['const']!r}, got {shorten(value)}")
    for name, (text, fits, types) in _LIMITS.items():
        applies = name in schema and isinstance(value, types) and value is not True and value is not False
        if applies and not fits(value, schema[name]):
            raise Mismatch(f"{place} must be {text.format(schema[name])}, got {shorten(value)}")


def _check_alternatives(value: Any, schema: Schema, place: str, root: Schema) -> None:
    for part in schema.get("allOf", ()):
        check(value, part, place, root)
    for name in ("anyOf", "oneOf"):
        problems: list[str] = []
        for part in schema.get(name, ()):
            try:
                check(value, part, place, root)
            except Mismatch as problem:
                problems.append(str(problem))
            else:
                break
        else:
            if problems:
                raise Mismatch(", or ".join(dict.fromkeys(problems)))


def _check_object(value: dict[str, Any], schema: Schema, place: str, root: Schema) -> None:
    properties: Schema = schema.get("properties", {})
    problems = [f"{place} needs {name!r}" for name in schema.get("required", ()) if name not in value]
    for name, item in value.items():
        expected: Any = properties.get(name, schema.get("additionalProperties", True))
        if expected is False:
            problems.append(f"{place} has the unexpected property {name!r}")
            continue
        try:
            check(item, expected, f"{place}.{name}", root)
        except Mismatch as problem:
            problems.append(str(problem))
    if problems:
        raise Mismatch("; ".join(problems))


def _check_array(value: list[Any], schema: Schema, place: str, root: Schema) -> None:
    first: list[Any] = schema.get("prefixItems", [])
    for index, item in enumerate(value):
        expected: Any = first[index] if index < len(first) else schema.get("items", True)
        check(item, expected, f"{place}[{index}]", root)
