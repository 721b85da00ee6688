"""The arguments that a YAML file gives to resources, with references to secrets.

`${NAME}` refers to an environment variable and `${file:PATH}` to a file, both read on the worker when the resource is
created. The values never enter a plan, a log or this process's memory before that.
"""

from __future__ import annotations

import re
from typing import Any

from emberflow.agents.yaml.nodes import Node, wrong
from emberflow.plan.agents.resources import Secret, written_secrets

_REFERENCE = re.compile(r"\$\{\s*(?:file:(?P<file>[^{}]+?)|(?P<name>[A-Za-z_]\w*))\s*\}")


def argument(node: Node) -> Any:
    """The value, with a `Secret` for each reference, also inside lists and mappings."""
    if node.kind == "object":
        fields: dict[str, Node] = node.value
        return {name: argument(item) for name, item in fields.items()}
    if node.kind == "array":
        entries: list[Node] = node.value
        return [argument(item) for item in entries]
    if node.kind != "string":
        return node.value
    whole = _REFERENCE.fullmatch(node.value.strip())
    if whole is not None:
        return Secret(file=whole["file"]) if whole["file"] else Secret(whole["name"])
    inside = _REFERENCE.search(node.value)
    if inside is not None:
        raise wrong(
            node.place,
            f"{inside[0]} is only a part of the value",
            cause="a secret reference must be the entire value; it is resolved on the worker",
            way_out="put the whole value into the variable",
        )
    return node.value


def action_config(node: Node, owner: str) -> dict[str, Any]:
    """The configuration of an action, which is part of the plan: it can neither contain nor refer to a secret."""
    config: dict[str, Any] = node.plain()
    for name in written_secrets(config):
        raise wrong(
            node.place,
            f"{owner}: {name!r} of the action's config is a secret; a config is part of the plan, and is shown with it",
            way_out="read the variable in the action, or give it to a resource: api_key: ${API_KEY}",
        )
    if _has_reference(node):
        raise wrong(
            node.place,
            f"{owner}: references such as ${{NAME}} are not resolved in the config of an action",
            way_out="read the variable in the action, or give it to a resource",
        )
    return config


def _has_reference(node: Node) -> bool:
    if node.kind == "object":
        fields: dict[str, Node] = node.value
        return any(_has_reference(item) for item in fields.values())
    if node.kind == "array":
        entries: list[Node] = node.value
        return any(_has_reference(item) for item in entries)
    return node.kind == "string" and _REFERENCE.fullmatch(node.value.strip()) is not None
