"""Public names of a package that are imported when they are first used, so that importing the package stays quick."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The package's `__getattr__` and `__dir__`. `homes` has the names of each module, separated by blanks."""
    module_of = {name: module for module, names in homes.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(_unknown(package, name, list(module_of)))
        found = getattr(importlib.import_module(module_of[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *module_of})

    return find, names


def _unknown(package: str, name: str, known: list[str]) -> str:
    shown = f"module {package!r} has no attribute {name!r}"
    if name.startswith("_"):
        return shown
    from emberflow.errors import did_you_mean

    return shown + did_you_mean(name, known)
