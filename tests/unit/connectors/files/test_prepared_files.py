"""What a file sink's writer prepares: the format in checkpoints does not change, and earlier ones are read."""

from __future__ import annotations

from typing import Any

import pytest

from emberflow.connectors.files.staged_files import PreparedFile, StagedFile

WHOLE = PreparedFile(StagedFile("part.0", "day/part-0", 12, 34, 5), "/out")


@pytest.mark.parametrize(
    ("stored", "prepared"),
    [
        (["part.0", "day/part-0"], PreparedFile(StagedFile("part.0", "day/part-0"))),
        (["part.0", "day/part-0", "/out"], PreparedFile(StagedFile("part.0", "day/part-0"), "/out")),
        (["part.0", "day/part-0", "/out", 12, 34, 5], WHOLE),
    ],
)
def test_stored_formats_are_read(stored: list[Any], prepared: PreparedFile) -> None:
    assert PreparedFile.from_stored(stored) == prepared


def test_the_stored_format() -> None:
    assert WHOLE.to_stored() == ["part.0", "day/part-0", "/out", 12, 34, 5]
