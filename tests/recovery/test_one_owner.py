"""Two processes on one checkpoint directory: the second is rejected, and one that was replaced commits nothing more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.recovery.processes import HANG_GUARD_S, PROGRAM, committed, finish

ENGINES = ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.nightly])]


def start(engine: str, folder: Path, **variables: str) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        str(PROGRAM),
        engine,
        "STREAMING",
        str(folder / "checkpoint"),
        str(folder / "out"),
    ]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "EMBERFLOW_QUIET": "1", **variables},
        start_new_session=True,
    )


def until_committed(process: subprocess.Popen[str], folder: Path) -> None:
    give_up = time.monotonic() + HANG_GUARD_S
    while not committed(folder):
        assert process.poll() is None, process.communicate()[0][-3000:]
        assert time.monotonic() < give_up
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_suspended_process_that_was_replaced_commits_nothing(
    engine: str, tmp_path: Path, undisturbed: list[str]
) -> None:
    first = start(engine, tmp_path)
    try:
        until_committed(first, tmp_path)
        os.killpg(first.pid, signal.SIGSTOP)

        # Its lock is held while it is suspended.
        refused, _ = start(engine, tmp_path).communicate(timeout=HANG_GUARD_S)
        assert "CheckpointInUse [EF3004]" in refused
        assert f"is in use by process {first.pid} on " in refused
        assert f"stop it (kill {first.pid})" in refused
        assert "An error occurred while calling" not in refused

        finish(start(engine, tmp_path, EMBERFLOW_TAKE_OVER="1"))
        assert committed(tmp_path) == undisturbed

        os.killpg(first.pid, signal.SIGCONT)
        said, _ = first.communicate(timeout=HANG_GUARD_S)
        assert first.returncode != 0
        assert "OwnershipLost [EF3005]" in said
        assert committed(tmp_path) == undisturbed
    finally:
        if first.poll() is None:
            os.killpg(first.pid, signal.SIGKILL)
            first.communicate()
    # The directory is intact: a finished job that is started again has nothing to do.
    finish(start(engine, tmp_path))
    assert committed(tmp_path) == undisturbed


@pytest.mark.slow
def test_a_killed_process_frees_the_directory_at_once(tmp_path: Path, undisturbed: list[str]) -> None:
    first = start("local", tmp_path)
    until_committed(first, tmp_path)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    finish(start("local", tmp_path))
    assert committed(tmp_path) == undisturbed
