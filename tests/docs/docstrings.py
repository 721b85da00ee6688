"""The examples in docstrings of public names: blocks fenced as Python."""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

_FENCED = re.compile(r"^ *```python\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
MODULES = (
    "emberflow",
    "emberflow.errors",
    "emberflow.savepoints",
    "emberflow.streams",
    "emberflow.agents",
    "emberflow.testing",
)


@dataclass(frozen=True, slots=True)
class Example:
    """A block of a docstring, named after what it documents."""

    name: str
    text: str


def public() -> dict[str, str]:
    """The docstrings of public classes and functions and of the public methods they define, by dotted name.
    A method without a docstring inherits that of its base class; an error class must have its own."""
    found: dict[str, str] = {}
    for module in map(importlib.import_module, MODULES):
        for name in _exported(module):
            item = getattr(module, name)
            if not isinstance(item, type | FunctionType):
                continue
            # A dataclass without a docstring is given its signature by Python.
            own = item.__doc__ or ""
            found[name] = "" if own.startswith(f"{name}(") else inspect.cleandoc(own)
            if isinstance(item, type):
                found |= {f"{name}.{method}": doc for method, doc in _methods(item)}
    return found


def _exported(module: ModuleType) -> list[str]:
    """`__all__`; of a module without it, the public names that it defines."""
    own = [
        name
        for name, item in vars(module).items()
        if getattr(item, "__module__", None) == module.__name__ and not name.startswith("_")
    ]
    return list(getattr(module, "__all__", own))


def _methods(owner: type[Any]) -> Iterator[tuple[str, str]]:
    for name, member in vars(owner).items():
        inner = getattr(member, "__func__", getattr(member, "fget", member))
        if not name.startswith("_") and isinstance(inner, FunctionType):
            yield name, inspect.getdoc(getattr(owner, name)) or ""


def examples() -> list[Example]:
    """The code blocks of all public docstrings."""
    return [Example(name, block) for name, text in public().items() for block in _blocks(text)]


def _blocks(text: str) -> Iterator[str]:
    for block in _FENCED.findall(text):
        yield textwrap.dedent(block)
