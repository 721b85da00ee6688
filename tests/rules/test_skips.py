"""A test that is skipped names its feature row and the reason."""

from __future__ import annotations

import ast
import re

from tests.support.source_tree import ROOT, short

ROW = re.compile(r"[ABC][0-9]+\b")
SKIPS = {"skip", "skipif", "importorskip"}


def skips_without_row(source: str) -> list[int]:
    """Lines of calls of pytest's skips whose reason does not begin with the id of a row; reasons that are computed pass."""
    found: list[int] = []
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        owner = ast.unparse(node.func.value)
        if node.func.attr not in SKIPS or owner not in ("pytest", "pytest.mark"):
            continue
        given = [word.value for word in node.keywords if word.arg == "reason"]
        if not given and node.func.attr == "skip":
            given = node.args[:1]
        if not given or not _names_a_row(given[0]):
            found.append(node.lineno)
    return found


def _names_a_row(reason: ast.expr) -> bool:
    if isinstance(reason, ast.JoinedStr):
        reason = reason.values[0]
    if isinstance(reason, ast.Constant):
        return bool(ROW.match(str(reason.value)))
    return isinstance(reason, ast.Attribute)


def test_every_skip_names_its_row() -> None:
    files = sorted((ROOT / "tests").rglob("*.py"))
    assert len(files) > 100
    found = [
        f"{short(path)}:{line}"
        for path in files
        for line in skips_without_row(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_what_counts_as_a_reason() -> None:
    wrong = ('pytest.skip("no")', 'pytest.importorskip("x")', 'pytest.mark.skipif(True, reason="slow")')
    right = ('pytest.skip(f"B1: {why}")', "pytest.mark.skip(reason=gap.reason)")
    assert [skips_without_row(line) for line in wrong] == [[1], [1], [1]]
    assert [skips_without_row(line) for line in right] == [[], []]
