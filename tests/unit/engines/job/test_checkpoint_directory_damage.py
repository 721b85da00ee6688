"""The small files of a checkpoint directory: damaged or missing ones are named, and the advice works."""

from __future__ import annotations

from pathlib import Path

import pytest

from emberflow import StreamExecutionEnvironment
from emberflow.engines.job.manifest import last_start
from emberflow.engines.job.ownership import lock_directory
from emberflow.errors import CorruptData


def run(directory: Path) -> None:
    env = StreamExecutionEnvironment.get_execution_environment(
        engine="local", checkpoint_dir=str(directory), parallelism=1
    )
    env.from_collection([1, 2, 3]).key_by(lambda value: value % 2).sum().print()
    env.execute()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    run(tmp_path / "job")
    return tmp_path / "job"


@pytest.mark.parametrize("name", ["emberflow.json", "starts", "wiring.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "empty"])
def test_a_damaged_file_is_named(name: str, damage: str, directory: Path) -> None:
    path = directory / name
    data = path.read_bytes()
    flipped = data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 0x80]) + data[len(data) // 2 + 1 :]
    path.write_bytes({"flip": flipped, "cut": data[: len(data) // 2], "empty": b""}[damage])

    with pytest.raises(CorruptData) as caught:
        run(directory)

    assert f"{path} is corrupted" in caught.value.message
    assert caught.value.way_out


def test_a_missing_manifest_does_not_start_a_new_job(directory: Path) -> None:
    (directory / "emberflow.json").unlink()
    with pytest.raises(CorruptData, match=r"emberflow\.json is corrupted") as caught:
        run(directory)
    assert "it is missing, but a job has left local/chk-" in caught.value.cause


def test_a_lost_number_of_starts_can_be_rewritten_as_the_error_says(directory: Path) -> None:
    (directory / "starts").unlink()
    with pytest.raises(CorruptData, match=r"starts is corrupted") as caught:
        run(directory)
    assert "1000000" in caught.value.way_out
    (directory / "starts").write_text("1000000\n")
    run(directory)
    assert last_start(directory) == 1_000_001


def test_starts_in_the_format_of_the_previous_version(tmp_path: Path) -> None:
    (tmp_path / "starts").write_text("41")
    owner = lock_directory(tmp_path)
    assert [owner.next_epoch().epoch, owner.next_epoch().epoch] == [42, 43]
    owner.release()
