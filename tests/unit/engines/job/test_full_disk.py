"""A program that is started again while the disk of its checkpoints is full."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from emberflow.engines.job import savepoint_start
from emberflow.errors import CheckpointUnusable
from emberflow.testing import LOCAL


def test_the_error_names_the_directory_and_the_next_start_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> list[Any]:
        return LOCAL.run(lambda env: env.from_collection([1]), checkpoint_dir=tmp_path)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(savepoint_start, "write_wiring", full)
        with pytest.raises(CheckpointUnusable, match=r"cannot be written\n  cause: OSError: .*No space left"):
            run()
    assert run() == [1]
