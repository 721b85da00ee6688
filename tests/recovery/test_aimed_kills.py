"""All processes are killed at every single step between the first staged row and Spark's commit of a micro-batch, with
parked runs, delayed events, processing-time timers, an approval and a redriven letter in between: nothing is lost,
repeated or out of order (A13, A14, C5)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from emberflow.approvals.answering import give_answer
from emberflow.approvals.asking import APPROVALS_FOLDER
from emberflow.dead_letters.redrive import letters, redrive
from emberflow.testing import read_committed
from tests.recovery.aimed_kills import INPUTS, KEYS, STEPS, STRUCK, arm, expected, let_in
from tests.recovery.torture.processes import kill_session, until

PROGRAM = "tests.recovery.aimed_program"
HANG_GUARD_S = 900
SHARE = 15
"""Inputs that are released at a time."""

# Only a guard: a dozen starts of Spark on a machine that is eight times slower.
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(4 * HANG_GUARD_S)]


def start(folder: Path, sink: str = "files") -> subprocess.Popen[bytes]:
    log = (folder / "log").open("ab")
    command = [sys.executable, "-m", PROGRAM, str(folder), sink]
    environment = {**os.environ, "EMBERFLOW_QUIET": "1"}
    return subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)


def made(folder: Path) -> int:
    return len(list((folder / "made").iterdir())) if (folder / "made").is_dir() else 0


def ended(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is not None


def act(folder: Path) -> None:
    """What people do while the job is down: they answer the question, and redrive a letter."""
    checkpoint = folder / "checkpoint"
    for question in (checkpoint / APPROVALS_FOLDER).glob("*.question.json"):
        if not question.with_name(question.name.replace(".question.", ".answer.")).exists():
            give_answer(checkpoint, question.name.partition(".")[0], "yes")
    found = letters(checkpoint)
    if found:
        (folder / "redriven").touch()
        redrive(found)


def strike(folder: Path, step: str, sink: str = "files", in_repetition: bool = False) -> None:
    """Starts the job and kills all its processes at the step; then people act. Inputs are released before and after the step
    is chosen: calls that were never made before are parked by then, and there is certainly more to commit."""
    wanted = made(folder) + 2
    let_in(folder, SHARE)
    if in_repetition:
        arm(folder, step)
    process = start(folder, sink)
    try:
        if not in_repetition:
            assert until(lambda: made(folder) >= wanted or ended(process), HANG_GUARD_S), log_of(folder)
            arm(folder, step)
        let_in(folder, SHARE)
        until(lambda: (folder / STRUCK).exists() or ended(process), HANG_GUARD_S)
        assert (folder / STRUCK).exists(), f"{step}: {log_of(folder)}"
    finally:
        kill_session(process.pid)
        process.wait()
    (folder / STRUCK).unlink()
    act(folder)


BY_DAY = ("decision stored", "part visible", "sink committed")
"""Between any two of them one part of the commit is done: the decision, what is visible, the sink's ledger."""


@pytest.mark.parametrize(
    "steps", [BY_DAY, pytest.param(STEPS, marks=pytest.mark.nightly)], ids=["by day", "all"]
)
def test_killed_at_every_step_of_a_commit(tmp_path: Path, steps: tuple[str, ...]) -> None:
    for number, step in enumerate(steps):
        strike(tmp_path, step, in_repetition=number % 3 == 2)
    let_in(tmp_path, INPUTS)

    def complete() -> bool:
        found = read_committed(tmp_path / "output")
        echoed = {item[1] for item in found if item[0] == "echo"}
        return sum(item[0] != "echo" for item in found) >= len(expected()) and len(echoed) == len(KEYS) + 2

    finish(tmp_path, "files", complete)
    found = read_committed(tmp_path / "output")
    assert sorted(item for item in found if item[0] != "echo") == expected()
    done = [item for item in found if item[0] == "done"]
    for key in {item[1] for item in done}:
        numbers = [item[2] for item in done if item[1] == key]
        assert numbers == sorted(numbers), "the order within a key is kept"
    echoes = [item for item in found if item[0] == "echo"]
    assert {item[1] for item in echoes} == {item[1] for item in done}


@pytest.mark.nightly
def test_each_batch_is_killed_between_the_users_commit_and_sparks(tmp_path: Path) -> None:
    """A query that the user starts on `to_dataframe()`, with foreachBatch."""
    for step in ("decision stored", "sink committed", "sink committed"):
        strike(tmp_path, step, "each-batch")
    let_in(tmp_path, INPUTS)

    def rows() -> list[Any]:
        files = sorted((tmp_path / "output").glob("*.json"))
        return [tuple(row) for path in files for row in json.loads(path.read_text())]

    finish(tmp_path, "each-batch", lambda: len(rows()) >= len(of_a_query()))
    assert_complete(rows())


@pytest.mark.nightly
def test_parquet_of_spark_is_stopped_between_its_commit_and_sparks(tmp_path: Path) -> None:
    """Spark's own file sink has committed a batch that Spark cannot commit: there is a directory in place of its file."""
    for _ in range(2):
        let_in(tmp_path, SHARE)
        process = start(tmp_path, "parquet")
        commits = tmp_path / "spark" / "commits"
        try:
            wanted = made(tmp_path) + 2
            assert until(lambda wanted=wanted: made(tmp_path) >= wanted, HANG_GUARD_S), log_of(tmp_path)
            # Not the next one, which may be about to be committed.
            blocked = commits / str(len(list(commits.glob("[0-9]*"))) + 2)
            blocked.mkdir(parents=True)
            let_in(tmp_path, SHARE)
            assert until(lambda process=process: process.poll() is not None, HANG_GUARD_S), log_of(tmp_path)
        finally:
            kill_session(process.pid)
            process.wait()
        blocked.rmdir()
        act(tmp_path)
    let_in(tmp_path, INPUTS)

    def rows() -> list[Any]:
        return committed_parquet(tmp_path / "output")

    finish(tmp_path, "parquet", lambda: len(rows()) >= len(of_a_query()))
    assert_complete(rows())


def committed_parquet(folder: Path) -> list[Any]:
    """What Spark's file sink has committed, according to its own log, which repeats entries when it is compacted."""
    paths: set[str] = set()
    for entry in (folder / "_spark_metadata").glob("[0-9]*"):
        lines = entry.read_text().splitlines()[1:]
        paths |= {
            urllib.parse.unquote(urllib.parse.urlparse(json.loads(line)["path"]).path) for line in lines
        }
    return [tuple(row.values()) for path in paths for row in pq.ParquetFile(path).read().to_pylist()]


def finish(folder: Path, sink: str, complete: Callable[[], bool]) -> None:
    """Waits until all expected output exists, and then for a while in which more would appear."""
    process = start(folder, sink)
    try:
        until(lambda: (act(folder), complete() or ended(process))[1], HANG_GUARD_S)
        assert complete(), log_of(folder)
        time.sleep(2)
        assert not ended(process), log_of(folder)
    finally:
        kill_session(process.pid)
        process.wait()


def of_a_query() -> list[tuple[Any, ...]]:
    """A DataFrame contains the outputs; dead letters are not stored, and so cannot be redriven."""
    return [item for item in expected() if item[1] != "letter"]


def assert_complete(rows: list[Any]) -> None:
    found = [tuple(value for value in row if value is not None) for row in rows]
    assert sorted(found) == of_a_query()


def log_of(folder: Path) -> str:
    return (folder / "log").read_text(errors="replace")[-4000:]
