"""Windows that were open when this or the previous version stored them: they continue as if nothing had happened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emberflow.streams import SlidingEventTimeWindows
from emberflow.testing import OperatorHarness
from tests.golden.stored_windows import Sum, add, first, kinds, read, sent, shown

FILES = Path(__file__).parent
MORE = [("a", 9), ("b", 14), ("a", 22)]


def test_shared_panes_become_windows_of_a_function_that_cannot_share_them() -> None:
    stored = read(FILES / "v3" / "windows.json")["sliding"]
    windows = SlidingEventTimeWindows.of(20, 5)
    found: list[list[Any]] = []
    for function in (add, Sum()):
        harness = OperatorHarness(
            lambda stream, function=function: stream.key_by(first).window(windows).reduce(function, shown),
            restore=stored,
        )
        harness.send(MORE, [stamp for _, stamp in MORE])
        harness.end()
        found.append(sorted(harness.values))
    assert found[0] == found[1] != []


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
