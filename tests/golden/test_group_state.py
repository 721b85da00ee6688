"""A key group that was stored in this format or the previous one: its run continues, cold keys and pages are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from emberflow.events.batch import MAX_WATERMARK, Batch
from tests.golden.group_state import KEYS, layout_of, read, scope_of
from tests.support.stored_agent import opened

FILES = Path(__file__).parent


@pytest.mark.parametrize("version", ["v1", "v2", "v3"])
def test_a_stored_group_continues(version: str) -> None:
    hot, cold = read(FILES / version / "agent_group.json")
    layout = layout_of(hot, cold)
    assert {key for key, _ in layout.all_entries()} == set(KEYS)
    scope = scope_of(layout)
    assert len(scope.entries) < len(KEYS), "some keys are cold"
    operator, calls, outputs = opened(scope)
    operator.resume()
    calls.finish()
    operator.receive(0, (0, 0), Batch([4], None, None, ["key-1"]), None)
    calls.finish()
    operator.receive(0, (0, 0), Batch([]), MAX_WATERMARK)
    operator.close()
    found = [item for item in outputs if isinstance(item, tuple)]
    assert [(key, *value[1:]) for key, value in found] == [
        ("key-0", 2, [1, 2], 3_000),
        ("key-0", 3, [1, 2, 3], 3_000),
        ("key-1", 2, [1, 4], 3_000),
    ]
    assert layout.commit(scope) is not None
