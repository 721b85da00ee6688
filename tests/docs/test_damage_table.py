"""The table of damaged files in docs/durability.md is the one that the tests check."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import pytest

from tests.support.recovery.damage_cases import KINDS, NOT_OURS, SAVEPOINT, Kind, matches, table

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "durability.md"
LISTED = {
    "local/chk-{epoch}-{fencing epoch}.ckpt": ["local/chk-00000001-000001.ckpt"],
    "spark/": ["spark/offsets/0"],
    "client/{batch}.batch": ["client/0000000001.batch"],
    "dead-letters/{agent}/letters/": ["dead-letters/a/letters/letters-1.jsonl"],
    "…/redrive/": ["dead-letters/a/redrive/00000001.json", "dead-letters/a/redrive/.next"],
    "approvals/": [f"approvals/{name}" for name in ("1.question.json", "1.answer.json", "history.jsonl")],
    "calls/": ["calls/1.0.calls", "calls/1.lease"],
    "calls/decisions/": ["calls/decisions/query.1.0"],
    "limits/": ["limits/model.json"],
    "owners/{fencing epoch}.json": ["owners/0000000001.json"],
}
"""Their names in docs/operations.md, and examples; any other name there is that of a file."""


def test_the_table_in_the_docs_is_the_tested_one() -> None:
    text = PAGE.read_text(encoding="utf-8")
    shown = text.partition("<!-- damage table -->")[2].partition("<!-- end of damage table -->")[0]
    assert shown.strip() == table(), "python -m tests.docs.test_damage_table writes it"


def test_every_file_of_the_directory_has_a_row() -> None:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = text.partition("## The checkpoint directory")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    names = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert len(names) > 20
    assert LISTED.keys() <= set(names)
    known = [pattern for kind in KINDS for pattern in (kind.pattern, *kind.covers)] + list(NOT_OURS)
    for name in names:
        for example in LISTED.get(name, [name]):
            found = PurePosixPath("checkpoints", example)
            assert any(matches(found, pattern) for pattern in known), example


@pytest.mark.parametrize("kind", [*KINDS, *SAVEPOINT], ids=lambda kind: kind.file)
def test_every_row_is_checked_by_a_test(kind: Kind) -> None:
    assert bool(kind.hosts) != bool(kind.test)
    assert kind.hosts or (ROOT / kind.test).is_file()


if __name__ == "__main__":
    before, start, rest = PAGE.read_text(encoding="utf-8").partition("<!-- damage table -->")
    behind = rest.partition("<!-- end of damage table -->")[2]
    PAGE.write_text(f"{before}{start}\n{table()}\n<!-- end of damage table -->{behind}", encoding="utf-8")
