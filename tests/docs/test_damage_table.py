"""The table of damaged files in docs/durability.md is the one that the tests check."""

from __future__ import annotations

from pathlib import Path

from tests.recovery.damage_cases import table

PAGE = Path(__file__).parents[2] / "docs" / "durability.md"


def test_the_table_is_the_one_that_is_tested() -> None:
    text = PAGE.read_text(encoding="utf-8")
    shown = text.partition("<!-- damage table -->")[2].partition("<!-- end of damage table -->")[0]
    assert shown.strip() == table(), "python -m tests.docs.test_damage_table writes it"


if __name__ == "__main__":
    before, start, rest = PAGE.read_text(encoding="utf-8").partition("<!-- damage table -->")
    behind = rest.partition("<!-- end of damage table -->")[2]
    PAGE.write_text(f"{before}{start}\n{table()}\n<!-- end of damage table -->{behind}", encoding="utf-8")
