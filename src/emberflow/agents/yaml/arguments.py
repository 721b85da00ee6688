"""The arguments that a YAML file gives to resources, with references to secrets.

`${NAME}` refers to an environment variable and `${file:PATH}` to a file, both read on the worker when the resource is
created. The values never enter a plan, a log or this process's memory before that.
"""

from __future__ import annotations

import re
from typing import Any

from emberflow.agents.yaml.nodes import Node, wrong
from emberflow.plan.agents.resources import Secret

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
