"""Every kind of file that a job stores is damaged between two starts: the job names it and refuses to start, or continues
unharmed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from emberflow.errors import EmberflowError
from emberflow.testing.committed_files import read_committed
from tests.support.recovery import damage_program
from tests.support.recovery.damage_cases import DAMAGES, KINDS, LOCAL, SAME, SINK, Kind, strike, uncovered


@pytest.fixture(scope="module", params=LOCAL)
def interrupted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A job that was killed in the middle, in the folder that it must be in when it continues."""
    host: str = request.param
    folder = tmp_path_factory.mktemp(host) / "job"
    folder.mkdir()
    engine, _, backend = host.partition("-")
    program = f"run(pathlib.Path({str(folder)!r}), {engine!r}, {backend!r})"
    imports = "import pathlib; from tests.support.recovery.damage_program import run"
    command = [sys.executable, "-c", f"{imports}; {program}"]
    ended = subprocess.run(command, check=False, capture_output=True, timeout=300)
    assert ended.returncode < 0, ended.stderr.decode()
    shutil.copytree(folder, folder.with_name("kept"))
    return host, folder


@pytest.fixture(scope="module")
def undamaged(interrupted: tuple[str, Path]) -> tuple[list[object], list[int]]:
    return resume(*interrupted)


def resume(host: str, folder: Path) -> tuple[list[object], list[int]]:
    engine, _, backend = host.partition("-")
    damage_program.run(folder, engine, backend)
    return sorted(read_committed(folder / "output"), key=repr), damage_program.billed(folder)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.hosts], ids=lambda kind: kind.file)
def test_a_damaged_file(
    kind: Kind, damage: str, interrupted: tuple[str, Path], undamaged: tuple[list[object], list[int]]
) -> None:
    host, folder = interrupted
    if host not in kind.hosts:
        pytest.skip(f"C5: {host} has no such file")
    shutil.rmtree(folder)
    shutil.copytree(folder.with_name("kept"), folder)
    path = kind.newest(folder)
    strike(path, damage)
    try:
        outcome, reported = SAME, ""
        assert resume(host, folder) == undamaged
    except EmberflowError as error:
        outcome, reported = f"`{type(error).__name__}`", str(error)
    assert outcome in kind.outcomes[DAMAGES.index(damage)].split(", or "), reported
    if outcome != SAME:
        # Staged files have been moved by the start that found them damaged.
        names = [str(path), str(path.parent), str(path).removesuffix("-wal"), f"/{path.name}"]
        if outcome == SINK:
            names = [str(folder / "output")]
        assert any(name in reported for name in names), reported
        assert "what to do: " in reported


def test_every_file_has_a_row_in_the_table(
    interrupted: tuple[str, Path], undamaged: tuple[list[object], list[int]]
) -> None:
    _, folder = interrupted
    assert uncovered(folder.with_name("kept")) == []
    assert uncovered(folder) == []
    (folder / "checkpoints" / "new-kind.json").touch()
    assert uncovered(folder) == ["checkpoints/new-kind.json"]


def test_without_damage_nothing_is_lost(
    interrupted: tuple[str, Path], undamaged: tuple[list[object], list[int]]
) -> None:
    output, calls = undamaged
    numbers = [number for number in range(damage_program.NUMBERS) if number != 3]
    assert calls == numbers, "each call was made once"
    assert len(output) == len(numbers) + 3
