"""All processes are killed at every single step between the first staged row and Spark's commit of a micro-batch, with
runs parked, delayed events, processing-time timers, an approval and a redriven letter that come meanwhile: nothing is
lost, repeated or out of order (A13, A14, C5)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from emberflow.engines.approval_answers import give_answer
from emberflow.engines.approvals import APPROVALS_FOLDER
from emberflow.engines.dead_letters import letters, redrive
from emberflow.testing import read_committed
from tests.recovery.aimed_kills import STEPS, STRUCK, arm, expected
from tests.recovery.torture.processes import kill_session, until

PROGRAM = "tests.recovery.aimed_program"
HANG_GUARD_S = 900

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def start(folder: Path) -> subprocess.Popen[bytes]:
    log = (folder / "log").open("ab")
    command = [sys.executable, "-m", PROGRAM, str(folder)]
    environment = {**os.environ, "EMBERFLOW_QUIET": "1"}
    return subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)


def made(folder: Path) -> int:
    return len(list((folder / "made").iterdir())) if (folder / "made").is_dir() else 0


def act(folder: Path) -> None:
    """What people do while the job is down: they answer, and ask for another try of a letter."""
    checkpoint = folder / "checkpoint"
    for question in (checkpoint / APPROVALS_FOLDER).glob("*.question.json"):
        if not question.with_name(question.name.replace(".question.", ".answer.")).exists():
            give_answer(checkpoint, question.name.partition(".")[0], "yes")
    found = letters(checkpoint)
    if found:
        (folder / "redriven").touch()
        redrive(found)


def test_killed_at_every_step_of_a_commit(tmp_path: Path) -> None:
    for number, step in enumerate(STEPS):
        process = start(tmp_path)
        try:
            if number % 3 != 2:
                # Calls that were never made before: they are parked. Otherwise at once: in the repeated batch.
                wanted = made(tmp_path) + 2
                assert until(lambda wanted=wanted: made(tmp_path) >= wanted, HANG_GUARD_S), log_of(tmp_path)
            arm(tmp_path, step)
            assert until((tmp_path / STRUCK).exists, HANG_GUARD_S), f"{step}: {log_of(tmp_path)}"
        finally:
            kill_session(process.pid)
            process.wait()
        (tmp_path / STRUCK).unlink()
        act(tmp_path)
    process = start(tmp_path)
    try:
        assert until(lambda: (act(tmp_path), process.poll() is not None)[1], HANG_GUARD_S), log_of(tmp_path)
    finally:
        kill_session(process.pid)
        process.wait()
    assert process.returncode == 0, log_of(tmp_path)

    found = read_committed(tmp_path / "output")
    assert sorted(item for item in found if item[0] != "echo") == expected()
    done = [item for item in found if item[0] == "done"]
    for key in {item[1] for item in done}:
        numbers = [item[2] for item in done if item[1] == key]
        assert numbers == sorted(numbers), "the order within a key is kept"
    echoes = [item for item in found if item[0] == "echo"]
    assert {item[1] for item in echoes} == {item[1] for item in done}


def log_of(folder: Path) -> str:
    return (folder / "log").read_text(errors="replace")[-4000:]
