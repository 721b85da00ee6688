"""Stopping: Ctrl-C and cancel() end a job cleanly, leave no process behind, and the job goes on when started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.recovery.processes import HANG_GUARD_S, PROGRAM, committed, finish, start


def processes_of_session(session_id: int) -> list[str]:
    """Command lines of everything that was started from a session leader, however deep."""
    found: list[str] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            if int(fields[3]) == session_id and fields[0] != "Z":
                found.append((folder / "cmdline").read_text().replace("\0", " "))
        except (OSError, IndexError):
            continue
    return found


def interrupt_and_go_on(engine: str, folder: Path, undisturbed: list[str]) -> None:
    command = [sys.executable, "-m", "emberflow.cli.main", "run", "--engine", engine, str(PROGRAM)]
    arguments = ["--", engine, "STREAMING", str(folder / "checkpoint"), str(folder / "out")]
    process = subprocess.Popen(
        command + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + HANG_GUARD_S
    while not committed(folder) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    # The terminal sends Ctrl-C to every process of the group.
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=HANG_GUARD_S)
    assert process.returncode == 130, (output[-1000:], errors[-3000:])
    assert "Traceback" not in errors
    while processes_of_session(process.pid):
        assert time.monotonic() < deadline, processes_of_session(process.pid)
        time.sleep(0.2)
    finish(start(engine, "STREAMING", folder))
    assert committed(folder) == undisturbed


def test_local_job_ends_on_ctrl_c(tmp_path: Path, undisturbed: list[str]) -> None:
    interrupt_and_go_on("local", tmp_path, undisturbed)


@pytest.mark.spark
def test_spark_job_ends_on_ctrl_c_and_leaves_no_process(tmp_path: Path, undisturbed: list[str]) -> None:
    interrupt_and_go_on("spark", tmp_path, undisturbed)
