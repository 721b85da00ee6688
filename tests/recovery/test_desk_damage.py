"""Questions, answers and redriven letters are damaged between two starts: no action gets a wrong answer or a wrong input."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from emberflow.errors import EmberflowError
from tests.support.recovery import desk_program
from tests.support.recovery.damage_cases import DAMAGES, KINDS, LOCAL, OPEN, SAME, Kind, strike, uncovered

OF_PEOPLE = [kind for kind in KINDS if kind.test == "tests/recovery/test_desk_damage.py"]
EXPECTED = [("asks", 1, "approve"), ("fails", 2, None)]


@pytest.fixture(scope="module", params=LOCAL)
def stopped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    backend = str(request.param).partition("-")[2]
    folder = tmp_path_factory.mktemp(backend) / "job"
    folder.mkdir()
    desk_program.leave(folder, backend)
    shutil.copytree(folder, folder.with_name("kept"))
    return backend, folder


def test_every_file_has_a_row_in_the_table(stopped: tuple[str, Path]) -> None:
    backend, folder = stopped
    assert uncovered(folder.with_name("kept")) == []
    assert desk_program.resume(folder, backend) == EXPECTED
    assert uncovered(folder) == []


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", OF_PEOPLE, ids=lambda kind: kind.file)
def test_a_damaged_file(kind: Kind, damage: str, stopped: tuple[str, Path]) -> None:
    backend, folder = stopped
    shutil.rmtree(folder)
    shutil.copytree(folder.with_name("kept"), folder)
    path = kind.newest(folder)
    strike(path, damage)
    left = path.read_bytes() if path.exists() else None
    try:
        assert desk_program.resume(folder, backend) == EXPECTED
        outcome, reported = OPEN if (folder / "asked again").exists() else SAME, ""
    except EmberflowError as error:
        outcome, reported = f"`{type(error).__name__}`", str(error)
        assert str(path) in reported
        assert "what to do: " in reported
        assert (path.read_bytes() if path.exists() else None) == left, "nothing is removed"
    assert outcome == kind.outcomes[DAMAGES.index(damage)], reported
