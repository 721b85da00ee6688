"""A name with a leading underscore belongs to its package: other packages of the project do not use it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.source_tree import PACKAGE, modules, parsed, short

# Python's own public names.
PYTHON = {"_asdict", "_current_frames", "_field_defaults", "_fields", "_getframe", "_make", "_replace"}
# Attributes that decorators of `agents` set on users' functions, and `plan` reads.
MARKS = {"_guards", "_injected_args", "_resource_type", "_trigger_conditions", "_target"}


def package_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0]


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in PYTHON | MARKS


def is_own(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def used(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Private names of other objects, and private names that are imported; with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and not is_own(node):
            yield node.attr, node.lineno
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.name, node.lineno) for alias in node.names if is_private(alias.name))


def defined(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_own(node):
            yield node.attr


def foreign(sources: dict[Path, ast.AST]) -> list[str]:
    """Uses of private names that no file of the same package defines."""
    own: dict[str, set[str]] = {}
    for path, tree in sources.items():
        own.setdefault(package_of(path), set()).update(defined(tree))
    return [
        f"{short(path)}:{line} uses {name} of another package"
        for path, tree in sources.items()
        for name, line in used(tree)
        if name not in own[package_of(path)]
    ]


def test_private_names_stay_in_their_package() -> None:
    assert foreign({path: parsed(path) for path in modules()}) == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("stream._env", 1),
        ("from emberflow.streams.program.program import _PACKAGE", 1),
        ("self._env", 0),
        ("pair._replace(a=1)", 0),
        ("class C:\n    def __init__(self) -> None:\n        self._env = 1\nC()._env", 0),
    ],
)
def test_the_check_recognizes_private_names(text: str, wrong: int) -> None:
    assert len(foreign({PACKAGE / "agents" / "a.py": ast.parse(text)})) == wrong
