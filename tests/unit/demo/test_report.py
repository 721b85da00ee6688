"""The report: what its tables say."""

from __future__ import annotations

import pytest

from emberflow.demo.report import elapsed


@pytest.mark.parametrize(
    ("value", "shown"), [(-0.04, "0.0 s"), (-0.0, "0.0 s"), (0.04, "0.0 s"), (12.34, "12.3 s")]
)
def test_no_time_is_before_the_start(value: float, shown: str) -> None:
    assert elapsed(value) == shown
