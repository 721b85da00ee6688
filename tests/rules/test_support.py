"""Code that several test files use is in `tests/support`: test files do not import each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.source_tree import ROOT, parsed, short

TESTS = ROOT / "tests"
# Stored bytes name what is in them, so they keep their place.
NAMED_BY_GOLDEN_FILES = {"tests.golden.golden_agent", "tests.golden.group_state", "tests.golden.stored_job"}


def imported(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                longer = f"{node.module}.{alias.name}"
                yield (longer if is_file(longer) else node.module), node.lineno


def is_file(module: str) -> bool:
    return ROOT.joinpath(*module.split(".")).with_suffix(".py").is_file()


def borrowed(path: Path, tree: ast.AST) -> list[str]:
    """What a test file imports from where it should not."""
    folder = path.relative_to(ROOT).parent.as_posix().replace("/", ".")
    wrong: list[str] = []
    for module, line in imported(tree):
        package, _, name = module.rpartition(".")
        if not module.startswith("tests.") or module in {f"{folder}.{path.stem}", *NAMED_BY_GOLDEN_FILES}:
            continue
        near = f"{package}.".startswith(f"{folder}.") or f"{folder}.".startswith(f"{package}.")
        if name.startswith("test_") or name == "conftest":
            wrong.append(f"{short(path)}:{line} imports the test file {module}")
        elif not near and not package.startswith("tests.support"):
            wrong.append(f"{short(path)}:{line} imports {module} of another folder")
    return [f"{item}: move what both use to tests/support" for item in wrong]


def test_test_files_share_through_support() -> None:
    files = sorted(TESTS.rglob("*.py"))
    assert [found for path in files for found in borrowed(path, parsed(path))] == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("from tests.unit.plan.test_other import Harness", 1),
        ("from tests.contracts.conftest import place", 1),
        ("from tests.recovery.torture.plan import draw", 1),
        ("from tests.unit.plan.agents.test_it import itself", 0),
        ("from tests.unit.plan.agents.programs import program", 0),
        ("from tests.unit.plan.program import program", 0),
        ("from tests.support.recovery.billing import bill", 0),
        ("from emberflow.testing import test_source", 0),
    ],
)
def test_the_check_recognizes_the_owner_of_a_file(text: str, wrong: int) -> None:
    assert len(borrowed(TESTS / "unit" / "plan" / "agents" / "test_it.py", ast.parse(text))) == wrong
