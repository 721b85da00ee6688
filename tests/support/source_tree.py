"""The files that the rules check."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "emberflow"

TEXT_FOLDERS = ("src", "tests", "docs", "examples", "benchmarks", "scripts", "requirements", ".ci", ".github")
TEXT_SUFFIXES = {".py", ".md", ".toml", ".txt", ".sh", ".yaml", ".yml", ".json", ".html", ".js", ".css", ""}


def modules() -> list[Path]:
    """Every Python file of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    """`src/emberflow/plan/__init__.py` → `emberflow.plan`."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def short(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imports(path: Path) -> list[tuple[str, int]]:
    """Every absolute module name a file imports, wherever in the file, with its line."""
    return sorted(set(_imports(path)), key=lambda found: found[1])


def _imports(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from emberflow import plan` may mean the module emberflow.plan.
            for alias in node.names:
                longer = f"{node.module}.{alias.name}"
                yield (longer if _is_module(longer) else node.module), node.lineno


def _is_module(name: str) -> bool:
    path = PACKAGE.parent.joinpath(*name.split("."))
    return name.startswith("emberflow.") and (path.is_dir() or path.with_suffix(".py").is_file())


def text_files() -> Iterator[Path]:
    """Every text file of the project, without caches and environments."""
    for path in sorted(ROOT.iterdir()):
        # Files of tools: in a linked worktree `.git` is a file.
        if path.is_file() and path.suffix in TEXT_SUFFIXES and path.name not in (".git", ".coverage"):
            yield path
    for folder in TEXT_FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in TEXT_SUFFIXES and "__pycache__" not in path.parts:
                yield path
