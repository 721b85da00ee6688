"""Directories for this user only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emberflow.errors import CheckpointUnusable
from emberflow.events.private_files import make_folders
from emberflow.streams import StreamExecutionEnvironment


def test_all_new_directories_are_private(tmp_path: Path) -> None:
    assert make_folders(tmp_path / "a" / "b")
    assert not make_folders(tmp_path / "a" / "b")
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b")] == [0o700, 0o700]


def test_a_directory_in_which_none_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in /proc: the error is that of a directory which does not exist, and names the way out."""
    real = Path.mkdir

    def mkdir(path: Path, *args: Any) -> None:
        if path.parent == tmp_path:
            raise FileNotFoundError(2, "No such file or directory", str(path))
        real(path, *args)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with pytest.raises(FileNotFoundError):
        make_folders(tmp_path / "state" / "job")
    env = StreamExecutionEnvironment.get_execution_environment(
        engine="local", checkpoint_dir=tmp_path / "state"
    )
    env.from_collection([1]).print()
    with pytest.raises(CheckpointUnusable, match="cannot be used") as caught:
        env.execute()
    assert "choose a directory that this user may read and write" in (caught.value.way_out or "")
