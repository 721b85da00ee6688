"""A batch with columns of different lengths cannot be built: no record is lost silently."""

from __future__ import annotations

from typing import Any

import pytest

from emberflow.errors import EngineFailed
from emberflow.events.batch import MIN_WATERMARK, Batch, marks_of


@pytest.mark.parametrize(
    "columns",
    [
        {"timestamps": [1]},
        {"timestamps": [1, 2, 3]},
        {"watermarks": [1]},
        {"watermarks": []},
        {"keys": ["a"]},
        {"keys": []},
        {"timestamps": [1, None], "watermarks": [1, 2, 3], "keys": ["a", "b"]},
    ],
)
def test_columns_of_different_lengths_are_refused(columns: dict[str, Any]) -> None:
    with pytest.raises(EngineFailed, match="columns of different lengths: 2 values, "):
        Batch(["a", "b"], **columns)


def test_missing_columns_are_as_long_as_the_values() -> None:
    batch = Batch(["a", "b"])
    assert list(batch.stamps()) == [None, None]
    assert list(marks_of(None, batch)) == [MIN_WATERMARK, MIN_WATERMARK]
    timed = Batch(["a", "b"], [1, None], [0, 1])
    assert list(timed.stamps()) == [1, None]
    assert list(marks_of([0, 1], timed)) == [0, 1]
