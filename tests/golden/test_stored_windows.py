"""Windows that were open when this or the previous version stored them: they continue as if nothing had happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from emberflow.testing import OperatorHarness
from tests.golden.stored_windows import kinds, read, sent

FILES = Path(__file__).parent
MORE = [("a", 9), ("b", 14), ("a", 22)]


@pytest.mark.parametrize(
    ("version", "name"),
    [(version, name) for version in ("v2", "v3") for name in read(FILES / version / "windows.json")],
)
def test_stored_windows_continue(version: str, name: str) -> None:
    kind = kinds()[name]
    whole = sent(kind)
    already = len(whole.values)
    restored = OperatorHarness(kind, restore=read(FILES / version / "windows.json")[name])
    for harness in (whole, restored):
        harness.send(MORE, [stamp for _, stamp in MORE])
        harness.end()
    found, wanted = restored.values, whole.values[already:]
    for key in "ab":
        assert [item for item in found if item[0] == key] == [item for item in wanted if item[0] == key]
    assert wanted
    assert restored.scope is not None
    left = {key: list(entry) for key, entry in restored.scope.entries.items() if entry}
    assert name == "count" or left == {}
