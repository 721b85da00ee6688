"""Processes are killed with SIGKILL in the middle of their work; what is committed in the end equals an undisturbed run."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.support.recovery.processes import HANG_GUARD_S, committed, finish, start


def kill_driver_and_go_on(engine: str, folder: Path, undisturbed: list[str], kills: int) -> None:
    pauses = random.Random(7)
    for _ in range(kills):
        process = start(engine, "STREAMING", folder)
        # Kill while output is being committed, not while the program is still starting.
        before = len(committed(folder))
        deadline = time.monotonic() + HANG_GUARD_S
        while len(committed(folder)) == before and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(pauses.uniform(0.0, 0.8))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    finish(start(engine, "STREAMING", folder))
    assert committed(folder) == undisturbed


def test_local_driver_killed_and_started_again(tmp_path: Path, undisturbed: list[str]) -> None:
    kill_driver_and_go_on("local", tmp_path, undisturbed, kills=3)


@pytest.mark.spark
def test_spark_gives_the_same_as_local_when_a_worker_is_killed_in_a_batch(
    tmp_path: Path, undisturbed: list[str]
) -> None:
    marker = tmp_path / "killed"
    finish(start("spark", "STREAMING", tmp_path, "--kill-worker-once", str(marker)))
    assert marker.exists(), "the worker was never killed, so this test has shown nothing"
    assert committed(tmp_path) == undisturbed


@pytest.mark.spark
def test_spark_driver_killed_and_started_again(tmp_path: Path, undisturbed: list[str]) -> None:
    kill_driver_and_go_on("spark", tmp_path, undisturbed, kills=1)


@pytest.mark.spark
def test_spark_batch_gives_the_same_totals_when_a_worker_is_killed(
    tmp_path: Path, undisturbed: list[str]
) -> None:
    """Batch mode has one watermark, at the end, so intermediate timers see final totals; windows and totals agree."""
    marker = tmp_path / "killed"
    finish(start("spark", "BATCH", tmp_path, "--kill-worker-once", str(marker)))
    assert marker.exists()

    def order_free(lines: list[str]) -> list[str]:
        return [line for line in lines if line.startswith(("('window'", "('total'", "('large'"))]

    assert order_free(committed(tmp_path)) == order_free(undisturbed)
