"""What a type checker or a linter is configured to ignore is named, rule by rule."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

from tests.support.source_tree import ROOT, short

FOLDERS = ("src", "tests", "examples", "benchmarks", "docs", "typings")
RULES = r"\[(?:report\w+)(?:, report\w+)*\]"
ALLOWED = re.compile(
    rf"pyright: ignore{RULES}"  # one line
    r"|pyright: report\w+=(?:false|none|error)(?:, report\w+=(?:false|none|error))*"  # one file
    r"|noqa: [A-Z]+[0-9]+(?:, [A-Z]+[0-9]+)*"
)
SILENCING = re.compile(r"(?:type:\s*ignore|pyright:|noqa|mypy:|basedpyright:)", re.IGNORECASE)


def unnamed(text: str) -> list[tuple[int, str]]:
    comments = [
        token
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    ]
    return [
        (token.start[0], part.strip())
        for token in comments
        for part in token.string.split("#")
        if SILENCING.match(part.strip()) and not ALLOWED.match(part.strip())
    ]


def test_ignores_name_their_rule() -> None:
    files = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py*") if is_source(path))
    assert len(files) > 500
    found = [
        f"{short(path)}:{line} {comment}"
        for path in files
        for line, comment in unnamed(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def is_source(path: Path) -> bool:
    return path.suffix in {".py", ".pyi"} and "__pycache__" not in path.parts


@pytest.mark.parametrize(
    ("comment", "wrong"),
    [
        ("# type: ignore", 1),
        ("# type: ignore[arg-type]", 1),
        ("# pyright: ignore", 1),
        ("# pyright: basic", 1),
        ("# noqa", 1),
        ("# pyright: ignore[reportArgumentType]", 0),
        ("# pyright: ignore[reportArgumentType, reportCallIssue]  # noqa: E731", 0),
        ("# pyright: ignore[reportArgumentType]  # noqa", 1),
        ("# pyright: reportUnknownMemberType=false", 0),
        ("# pyright says so", 0),
    ],
)
def test_the_check_recognizes_rules(comment: str, wrong: int) -> None:
    assert len(unnamed(f"x = 1  {comment}\n")) == wrong
