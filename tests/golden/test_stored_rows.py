"""Rows and instants in state: what was stored is read as it was, and is stored without module paths."""

from __future__ import annotations

from pathlib import Path

from emberflow.events.codecs import decode, encode
from emberflow.streams import Instant, Row, RowKind

FILE = Path(__file__).parent / "v3" / "rows.bin"
VALUES = [
    Row(name="Ann", age=11, at=Instant(5, 6)),
    Row(name="Bob", age=None, at=None),
    Row("a", [Row(1)]),
    Row.of_kind(RowKind.DELETE, name="Ann"),
]
UPDATE = False


def test_stored_rows_are_read() -> None:
    if UPDATE and not FILE.exists():
        FILE.write_bytes(encode(VALUES))
    found = decode(FILE.read_bytes())
    assert found == VALUES
    assert [repr(row) for row in found] == [repr(row) for row in VALUES]
    assert [row.get_row_kind() for row in found] == [row.get_row_kind() for row in VALUES]
    assert b"emberflow." not in FILE.read_bytes()
