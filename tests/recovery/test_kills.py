"""Processes are killed with SIGKILL, or stopped with Ctrl-C, while they are working; the committed output finally equals
that of an undisturbed run, and no process is left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.recovery.processes import HANG_GUARD_S, PROGRAM, committed, finish, start


def until_more_is_committed(process: subprocess.Popen[str], folder: Path) -> None:
    """Interrupts while output is being committed, not while the program is still starting."""
    before = len(committed(folder))
    deadline = time.monotonic() + HANG_GUARD_S
    while len(committed(folder)) == before and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def kill_driver(engine: str, folder: Path, pause_s: float, *extra: str) -> None:
    process = start(engine, "STREAMING", folder, *extra)
    until_more_is_committed(process, folder)
    time.sleep(pause_s)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def interrupt(engine: str, folder: Path, *extra: str) -> None:
    """Ctrl-C, which the terminal sends to every process of the group."""
    command = [sys.executable, "-m", "emberflow.cli.main", "run", "--engine", engine, str(PROGRAM)]
    arguments = ["--", engine, "STREAMING", str(folder / "checkpoint"), str(folder / "out"), *extra]
    process = subprocess.Popen(
        command + arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell that runs the tests in the background makes them, and everything they start, ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    until_more_is_committed(process, folder)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=HANG_GUARD_S)
    assert process.returncode == 130, (output[-1000:], errors[-3000:])
    assert "Traceback" not in errors
    deadline = time.monotonic() + HANG_GUARD_S
    while processes_of_session(process.pid):
        assert time.monotonic() < deadline, processes_of_session(process.pid)
        time.sleep(0.2)


def processes_of_session(session_id: int) -> list[str]:
    """Command lines of all processes started by a session leader, directly or indirectly."""
    found: list[str] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            if int(fields[3]) == session_id and fields[0] != "Z":
                found.append((folder / "cmdline").read_text().replace("\0", " "))
        except (OSError, IndexError):
            continue
    return found


@pytest.mark.slow
def test_local_driver_killed_and_started_again(tmp_path: Path, undisturbed: list[str]) -> None:
    pauses = random.Random(7)
    for _ in range(3):
        kill_driver("local", tmp_path, pauses.uniform(0.0, 0.8))
    finish(start("local", "STREAMING", tmp_path))
    assert committed(tmp_path) == undisturbed


@pytest.mark.slow
def test_local_job_ends_on_ctrl_c(tmp_path: Path, undisturbed: list[str]) -> None:
    interrupt("local", tmp_path)
    finish(start("local", "STREAMING", tmp_path))
    assert committed(tmp_path) == undisturbed


@pytest.mark.spark
@pytest.mark.slow
def test_a_spark_job_continues_after_ctrl_c_a_killed_driver_and_a_killed_worker(
    tmp_path: Path, undisturbed: list[str]
) -> None:
    """One job, interrupted in each of its starts: starting Spark takes longer than everything else."""
    marker = tmp_path / "killed"
    # In whichever start reaches the middle of the input.
    in_the_middle = ("--kill-worker-once", str(marker))
    interrupt("spark", tmp_path, *in_the_middle)
    kill_driver("spark", tmp_path, 0.3, *in_the_middle)
    finish(start("spark", "STREAMING", tmp_path, *in_the_middle))
    assert marker.exists(), "the worker was never killed, so this test has shown nothing"
    assert committed(tmp_path) == undisturbed


@pytest.mark.spark
@pytest.mark.nightly
def test_a_spark_batch_has_the_same_totals_when_a_worker_is_killed(
    tmp_path: Path, undisturbed: list[str]
) -> None:
    """Batch mode has one watermark, at the end, so intermediate timers see final totals; windows and totals agree."""
    marker = tmp_path / "killed"
    finish(start("spark", "BATCH", tmp_path, "--kill-worker-once", str(marker)))
    assert marker.exists()

    def order_free(lines: list[str]) -> list[str]:
        return [line for line in lines if line.startswith(("('window'", "('total'", "('large'"))]

    assert order_free(committed(tmp_path)) == order_free(undisturbed)
