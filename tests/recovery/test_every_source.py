"""Every kind of source is read exactly once, whichever micro-batch fails and however: also the first one, which Spark
repeats from positions that it did not store itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from emberflow.errors import StepFailed
from emberflow.testing import LOCAL_HOSTS, SPARK, Host, stop_shared_session
from tests.recovery import every_source
from tests.support.recovery.processes import HANG_GUARD_S

FIRST_BATCH = "file 0.0"
LATER_BATCH = "collected 35"


@pytest.fixture(scope="module", autouse=True)
def _spark_session() -> Iterator[None]:
    yield
    stop_shared_session()


@pytest.mark.parametrize("value", [FIRST_BATCH, LATER_BATCH])
@pytest.mark.parametrize("parallelism", [(2, 2), (3, 2), (2, 4)])
@pytest.mark.parametrize("host", [host for host in LOCAL_HOSTS if host.streaming], ids=lambda host: host.name)
def test_a_local_program_fails_and_runs_again(
    tmp_path: Path, host: Host, value: str, parallelism: tuple[int, int]
) -> None:
    fail_and_run_again(tmp_path, host, value, parallelism)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("value", "parallelism"),
    [(FIRST_BATCH, (3, 2)), pytest.param(LATER_BATCH, (2, 4), marks=pytest.mark.nightly)],
)
def test_a_spark_program_fails_and_runs_again(
    tmp_path: Path, value: str, parallelism: tuple[int, int]
) -> None:
    fail_and_run_again(tmp_path, SPARK, value, parallelism)


def fail_and_run_again(folder: Path, host: Host, value: str, parallelism: tuple[int, int]) -> None:
    options = every_source.SPARK_OPTIONS if host is SPARK else {}

    def run(parallelism: int) -> None:
        env = host.environment(checkpoint_dir=folder / "checkpoint", options=options)
        every_source.run(env.set_parallelism(parallelism), folder, value)

    with pytest.raises(StepFailed, match="as the test wants it"):
        run(parallelism[0])
    if host is SPARK:
        commits = folder / "checkpoint" / "spark" / "commits"
        assert (commits / "0").exists() is (value == LATER_BATCH), "the batch under test"
    run(parallelism[1])
    assert every_source.committed(folder) == every_source.EXPECTED


@pytest.mark.parametrize(
    "engine",
    # By day, the first batch on Spark fails by an exception: see above.
    ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.nightly])],
)
def test_the_program_is_killed_in_its_first_batch(tmp_path: Path, engine: str) -> None:
    killed = start(engine, tmp_path, 3, FIRST_BATCH, "kill")
    killed.communicate(timeout=HANG_GUARD_S)
    assert (tmp_path / "failed").exists()
    assert every_source.committed(tmp_path) == []
    again = start(engine, tmp_path, 2)
    output, _ = again.communicate(timeout=HANG_GUARD_S)
    assert again.returncode == 0, output[-3000:]
    assert every_source.committed(tmp_path) == every_source.EXPECTED


def start(engine: str, folder: Path, parallelism: int, *failure: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(every_source.__file__), engine, str(folder), str(parallelism), *failure]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "EMBERFLOW_QUIET": "1"},
        start_new_session=True,
    )
