"""Programs as users write them: correct ones are inferred as `assert_type` says, wrong ones are rejected where they say so."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.support.pyright import Finding, check

HERE = Path(__file__).parent
PROGRAMS = sorted((HERE / "programs").glob("*.py"))
WRONG = sorted((HERE / "wrong").glob("*.py"))
EXPECTED = re.compile(r"# error: (\w+(?:, \w+)*)$")


@cache
def findings() -> dict[Path, list[Finding]]:
    """One run for all of them: starting the checker takes most of the time."""
    return check([HERE / "programs", HERE / "wrong"])


def name_of(path: Path) -> str:
    return path.relative_to(HERE).as_posix()


@pytest.mark.parametrize("path", PROGRAMS, ids=name_of)
def test_types_of_correct_programs_are_inferred(path: Path) -> None:
    assert [str(finding) for finding in findings().get(path, [])] == []
    assert "assert_type(" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", WRONG, ids=name_of)
def test_wrong_programs_are_rejected(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    expected = {
        (number, rule)
        for number, line in enumerate(lines, start=1)
        if (match := EXPECTED.search(line))
        for rule in match.group(1).split(", ")
    }
    assert expected
    found = findings().get(path, [])
    unexpected = [str(finding) for finding in found if (finding.line, finding.rule) not in expected]
    missing = expected - {(finding.line, finding.rule) for finding in found}
    assert (unexpected, sorted(missing)) == ([], [])
