"""The functions and classes that a YAML file names: `package.module:name` or `package.module:Class.method`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from emberflow.agents.yaml.nodes import Node, Place, wrong
from emberflow.errors import describe_cause, did_you_mean

_FORM = "module:name or module:Class.method, such as my_package.actions:process_input"


def function_named(node: Node | None, owner: str, place: Place) -> Any:
    """What `function` refers to; `place` is that of the entry, for one without `function`."""
    if node is None:
        raise wrong(place, f"{owner} has no 'function'", way_out=f"function: {_FORM}")
    found = object_named(node, owner)
    if not callable(found):
        raise wrong(
            node.place, f"{owner}: {node.value!r} is a {type(found).__name__}, which cannot be called"
        )
    return found


def object_named(node: Node, owner: str) -> Any:
    """The object at `module:name`; the module is imported."""
    written: str = node.value
    module, _, path = written.partition(":")
    parts = path.split(".")
    if not module.strip() or ":" in path or not all(map(str.isidentifier, parts)):
        raise wrong(
            node.place, f"{owner}: {written!r} does not name a function", way_out=f"use the form {_FORM}"
        )
    found = _module(module, node.place, owner)
    where = f"the module {module!r}"
    for part in parts:
        # From the class's own dictionary a static method would come with its wrapper.
        missing = object()
        inner = getattr(found, part, missing)
        if inner is missing:
            raise wrong(
                node.place,
                f"{owner}: {where} has no {part!r}{did_you_mean(part, dir(found))}",
                cause=f"the file names the function {written!r}",
            )
        found, where = inner, f"{part!r} in the module {module!r}"
    return found


def _module(name: str, place: Place, owner: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        if name != missing and not name.startswith(f"{missing}."):
            # The module was found, and imports another one that is missing.
            raise wrong(
                place, f"{owner}: the module {name!r} cannot be imported", cause=describe_cause(error)
            ) from error
        raise wrong(
            place,
            f"{owner}: there is no module {missing!r}{_nearest_module(missing)}",
            way_out="install its package, or put its folder on PYTHONPATH; "
            "`emberflow run` finds modules beside the YAML file",
        ) from None
    except Exception as error:
        raise wrong(
            place, f"{owner}: importing the module {name!r} failed", cause=describe_cause(error)
        ) from error


def _nearest_module(missing: str) -> str:
    """A hint at the module beside the missing one whose name is closest."""
    package, _, name = missing.rpartition(".")
    folders = list(getattr(sys.modules.get(package), "__path__", [])) if package else sys.path
    found: set[str] = set()
    for folder in map(Path, folders):
        if folder.is_dir():
            # Folders without __init__.py are packages too.
            found |= {item.stem for item in folder.iterdir() if item.is_dir() or item.suffix == ".py"}
    return did_you_mean(name, filter(str.isidentifier, found))
