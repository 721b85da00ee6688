"""Checks a YAML file against the JSON Schema of agents, which is shipped for editors and other tools.

The schema is the only description of the format; this is a validator for the keywords that it uses, whose errors have a
place and suggest the closest name.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from emberflow.agents.tools.tool_schema import TYPE_NAMES
from emberflow.agents.yaml.nodes import Node, wrong
from emberflow.errors import InvalidAgent, did_you_mean, shorten

_FILE = "agents.schema.json"
_NAMES = {**TYPE_NAMES, "object": "a mapping"}
"""With YAML's own word for an object."""

Schema = dict[str, Any]


def yaml_schema() -> Schema:
    """The JSON Schema of the YAML format."""
    return json.loads((Path(__file__).with_name(_FILE)).read_text(encoding="utf-8"))


@functools.cache
def _schema() -> Schema:
    return yaml_schema()


def check(root: Node) -> None:
    """Raises InvalidAgent for the first thing that does not fit the schema."""
    _check(root, _schema(), "the file")


def _resolved(schema: Schema) -> Schema:
    reference = schema.get("$ref")
    return schema if reference is None else _schema()["$defs"][reference.rpartition("/")[2]]


def _types(schema: Schema) -> list[str]:
    found: Any = schema.get("type", [])
    return [found] if isinstance(found, str) else list(found)


def _fits(node: Node, types: list[str]) -> bool:
    return not types or node.kind in types or (node.kind == "integer" and "number" in types)


def _check(node: Node, schema: Schema, what: str) -> None:
    schema = _resolved(schema)
    if "anyOf" in schema and "properties" not in schema:
        schema = _alternative(node, schema["anyOf"], what)
    types = _types(schema)
    if not _fits(node, types):
        raise _wrong_type(node, types, what)
    if "enum" in schema and node.value not in schema["enum"]:
        allowed = [item for item in schema["enum"] if item is not None]
        raise wrong(
            node.place,
            f"{what} cannot be {shorten(node.value)}{did_you_mean(node.value, allowed)}",
            cause=f"it is one of {', '.join(allowed)}",
        )
    if node.kind == "string" and not re.search(schema.get("pattern", ""), node.value):
        raise wrong(node.place, f"{what} must not be empty")
    if node.kind == "integer" and node.value < schema.get("minimum", node.value):
        raise wrong(node.place, f"{what} must be at least {schema['minimum']}, got {node.value}")
    if node.kind == "array":
        if len(node.value) < schema.get("minItems", 0):
            raise wrong(node.place, f"{what} must not be empty")
        for item in node.value:
            _check(item, schema.get("items", {}), f"an entry of {what}")
    if node.kind == "object":
        _check_mapping(node, schema, what)


def _alternative(node: Node, schemas: Iterable[Schema], what: str) -> Schema:
    """The schema for the node's type: no two alternatives allow the same one."""
    types: list[str] = []
    for schema in map(_resolved, schemas):
        if _fits(node, _types(schema)):
            return schema
        types += _types(schema)
    raise _wrong_type(node, types, what)


def _check_mapping(node: Node, schema: Schema, what: str) -> None:
    properties: dict[str, Schema] = schema.get("properties", {})
    others: Schema | bool = schema.get("additionalProperties", True)
    named = _named(node, what)
    for name, value in node.value.items():
        if name in properties:
            _check(value, properties[name], repr(name))
        elif isinstance(others, dict):
            _check(value, others, repr(name))
        elif not others:
            raise wrong(
                node.keys[name],
                f"{named} has no key {name!r}{did_you_mean(name, properties)}",
                cause=f"its keys: {', '.join(properties)}",
            )
    for name in schema.get("required", ()):
        if name not in node.value:
            raise wrong(node.place, f"{named} lacks the required key {name!r}")
    for keyword, exactly_one in (("oneOf", True), ("anyOf", False)):
        names = [item["required"][0] for item in schema.get(keyword, ()) if "required" in item]
        given = [name for name in names if name in node.value]
        if names and (not given or (exactly_one and len(given) > 1)):
            many = "exactly one" if exactly_one else "at least one"
            raise wrong(node.place, f"{named} needs {many} of {', '.join(map(repr, names))}")


def _named(node: Node, what: str) -> str:
    name = node.value.get("name")
    shown = f" ({name.value})" if name is not None and name.kind == "string" else ""
    return f"{what}{shown}"


def _wrong_type(node: Node, types: list[str], what: str) -> InvalidAgent:
    wanted = " or ".join(_NAMES[item] for item in types if item != "null")
    if node.kind in ("object", "array"):
        got = _NAMES[node.kind]
    else:
        got = "nothing" if node.value is None else shorten(node.value)
    quoted = "string" in types and node.kind in ("boolean", "integer", "number")
    return wrong(node.place, f"{what} must be {wanted}, got {got}", way_out="quote it" if quoted else "")
