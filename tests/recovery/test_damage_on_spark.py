"""Like test_damage.py, on Spark: one job is killed once, and every case starts again from a copy, in one session.

Representative cases, because a start takes seconds: what the driver rejects before a query runs, what Spark rejects, and
one start with all harmless damage at once.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from emberflow.errors import CorruptData
from emberflow.testing.committed_files import read_committed
from emberflow.testing.spark_session import shared_session
from tests.support.recovery import damage_program
from tests.support.recovery.damage_cases import HARMLESS_ON_SPARK, REFUSED_ON_SPARK, strike, uncovered

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(2400)]


def resume(folder: Path, spark: Any) -> tuple[list[object], list[int]]:
    damage_program.run(folder, "spark", "", spark)
    return sorted(read_committed(folder / "output"), key=repr), damage_program.billed(folder)


def newest(folder: Path, pattern: str) -> Path:
    return sorted(folder.glob(pattern))[-1]


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job that was killed once; its files are copied for every case."""
    folder = tmp_path_factory.mktemp("spark") / "job"
    folder.mkdir()
    imports = "import pathlib; from tests.support.recovery.damage_program import run"
    command = [sys.executable, "-c", f"{imports}; run(pathlib.Path({str(folder)!r}), 'spark', '')"]
    subprocess.run(command, check=False, capture_output=True, timeout=1500)
    assert (folder / "died").exists()
    assert uncovered(folder) == []
    shutil.copytree(folder, folder.with_name("kept"))
    return folder


def restored(folder: Path) -> Path:
    shutil.rmtree(folder)
    shutil.copytree(folder.with_name("kept"), folder)
    return folder


def first_of_each_kind() -> list[tuple[str, str]]:
    kinds: dict[str, str] = {}
    for pattern, damage in REFUSED_ON_SPARK:
        kinds.setdefault(pattern, damage)
    return list(kinds.items())


def refuse_all(folder: Path, cases: list[tuple[str, str]]) -> None:
    assert cases
    for pattern, damage in cases:
        path = newest(restored(folder), pattern)
        strike(path, damage)
        with pytest.raises(CorruptData) as caught:
            resume(folder, shared_session())
        assert str(path) in str(caught.value), f"{pattern}, {damage}"
        assert caught.value.way_out


def test_a_damaged_file_of_each_kind_is_named(interrupted: Path) -> None:
    refuse_all(interrupted, first_of_each_kind())


@pytest.mark.nightly
def test_other_kinds_of_damage_are_named(interrupted: Path) -> None:
    refuse_all(interrupted, [case for case in REFUSED_ON_SPARK if case not in first_of_each_kind()])


def test_harmless_damage(interrupted: Path) -> None:
    folder = restored(interrupted)
    for pattern, damage in HARMLESS_ON_SPARK:
        strike(newest(folder, pattern), damage)
    (folder / "checkpoints" / "hold").touch()
    (folder / "checkpoints" / "client").mkdir(exist_ok=True)
    (folder / "checkpoints" / "client" / "0000000001.batch").write_bytes(b"?")
    output, calls = resume(folder, shared_session())
    assert uncovered(folder) == []
    numbers = [number for number in range(damage_program.NUMBERS) if number != 3]
    assert calls == numbers, "each call was made once"
    assert sorted(row[1] for row in output if row[1] != "total") == numbers  # pyright: ignore[reportIndexIssue]
    assert len(output) == len(numbers) + 3
