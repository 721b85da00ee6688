"""The journeys of docs/data-flow.md move forward: within a part, no step returns to a file of an earlier one."""

from __future__ import annotations

import re

import pytest

from tests.support.source_tree import ROOT

STEP = re.compile(r"^(\d+)\. ", re.MULTILINE)
PATH = re.compile(r"`([\w/]+\.py)")
AFTERWORD = re.compile(r"\n\n(?:In|On|If) ")
PART = re.compile(r"^(?:### |\*\*The batch|\*\*In between)", re.MULTILINE)


def parts(journey: str) -> list[str]:
    text = (ROOT / "docs" / "data-flow.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {journey}$(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    return [part for part in PART.split(found[1]) if STEP.search(part)]


def returns(part: str) -> list[str]:
    """Files that two steps of a part name."""
    pieces = STEP.split(part)[1:]
    seen: dict[str, str] = {}
    found: list[str] = []
    for number, step in zip(pieces[::2], pieces[1::2], strict=True):
        for path in dict.fromkeys(PATH.findall(AFTERWORD.split(step)[0])):
            if seen.setdefault(path, number) != number:
                found.append(f"{path} in steps {seen[path]} and {number}")
    return found


@pytest.mark.parametrize(
    ("journey", "count"),
    [("A record's journey", 4), ("A parked call's journey", 3), ("A chat with tools", 1)],
)
def test_no_part_of_a_journey_returns_to_a_file(journey: str, count: int) -> None:
    found = parts(journey)
    assert len(found) == count
    assert [line for part in found for line in returns(part)] == []


def test_a_return_is_found() -> None:
    assert returns("1. `a.py:f`\n2. `b.py:g`\n3. `a.py:h`\n") == ["a.py in steps 1 and 3"]
