"""JSON Schema as services with strict structured output want it: every object closed, every property required."""

from __future__ import annotations

from typing import Any, cast

_UNSUPPORTED = ("prefixItems", "patternProperties", "not", "if", "dependentSchemas", "oneOf", "allOf")


def strict_schema(schema: dict[str, Any]) -> dict[str, Any] | None:
    """The schema in this form; None if it has something that the form cannot express, such as free property names."""
    try:
        return _object_of(_strict(schema))
    except _NotStrict:
        return None


class _NotStrict(Exception):
    pass


def _object_of(found: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", found)


def _strict(found: Any) -> Any:
    if not isinstance(found, dict):
        raise _NotStrict
    schema = _object_of(found)
    if any(name in schema for name in _UNSUPPORTED):
        raise _NotStrict
    if "$ref" in schema:
        kept = {"$ref": schema["$ref"]}
        return {**kept, "$defs": _each(schema["$defs"])} if "$defs" in schema else kept
    if not any(name in schema for name in ("type", "anyOf", "enum", "const")):
        raise _NotStrict
    made = {name: value for name, value in schema.items() if name != "default"}
    for name in ("properties", "$defs"):
        if name in made:
            made[name] = _each(made[name])
    if "anyOf" in made:
        made["anyOf"] = [_strict(item) for item in made["anyOf"]]
    if made.get("type") == "array" or "items" in made:
        made["items"] = _strict(made.get("items"))
    if made.get("type") == "object":
        if made.get("additionalProperties") not in (None, False) or not made.get("properties"):
            raise _NotStrict
        made["additionalProperties"] = False
        made["required"] = list(made["properties"])
    return made


def _each(named: Any) -> dict[str, Any]:
    return {name: _strict(item) for name, item in _object_of(named).items()}
