"""The same program on a classic session, on a cluster of separate executor processes and through Spark Connect.

Started as separate processes in an empty working directory: one process can have only one kind of session.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
"""Each one starts Spark and many queries, which takes long on a busy machine."""

PROGRAM = Path(__file__).with_name("program.py")
HANG_GUARD_S = 1700


def run(kind: str, mode: str, folder: Path) -> list[str]:
    done = run_program(folder, PROGRAM, kind, mode)
    return sorted(line for line in done.stdout.splitlines() if line.startswith("result "))


def run_program(folder: Path, program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, str(program), *arguments],
        cwd=folder,
        env={**environment, "EMBERFLOW_QUIET": "1", "SPARK_WORKER_DIR": str(folder / "spark-work")},
        capture_output=True,
        text=True,
        timeout=HANG_GUARD_S,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done


@cache
def expected(mode: str) -> list[str]:
    lines = run("local", mode, Path.cwd())
    assert len(lines) > 40
    return [line.replace("'installed'", "'shipped'") for line in lines]


@pytest.mark.spark
@pytest.mark.cluster
def test_separate_executor_processes(tmp_path: Path) -> None:
    assert run("cluster", "STREAMING", tmp_path) == expected("STREAMING")


@pytest.mark.spark
@pytest.mark.connect
def test_spark_connect(tmp_path: Path) -> None:
    assert run("connect", "STREAMING", tmp_path) == expected("STREAMING")


@pytest.mark.spark
@pytest.mark.connect
@pytest.mark.nightly
def test_spark_connect_batch(tmp_path: Path) -> None:
    assert run("connect", "BATCH", tmp_path) == expected("BATCH")


@pytest.mark.spark
@pytest.mark.nightly
def test_a_callers_session(tmp_path: Path) -> None:
    assert run("classic", "STREAMING", tmp_path) == expected("STREAMING")


FRAMES = Path(__file__).with_name("frames_program.py")
FAILED = [
    "could not process the value {'id': 3, 'name': 'x'}",
    "  cause: ValueError: no three, please",
    "  what to do: fix the function, or handle such values in it; EMBERFLOW_TRACEBACK=1 shows the Python stack",
]


@pytest.mark.spark
@pytest.mark.parametrize(
    "kind",
    [
        # The scenarios of tests/conformance/test_dataframes.py run in such a session.
        pytest.param("classic", marks=pytest.mark.nightly),
        pytest.param("connect", marks=[pytest.mark.connect, pytest.mark.nightly]),
    ],
)
def test_dataframes_in_a_callers_session(tmp_path: Path, kind: str) -> None:
    done = run_program(tmp_path, FRAMES, kind)
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("result ")] == [
        "result every type the same: True",
        "result (1, '2026-07-01 12:00:00')",
        "result (2, '2026-07-01 08:00:00')",
        "result the column 'v' has the type variant, which records cannot represent",
        "result the column 'v' has the type interval year, which records cannot represent",
        "result a table with two columns named 'v' cannot be a table of records",
    ]
    for name in ("map", "names", "agent", "stream"):
        check_what_is_shown(
            name, [line.removeprefix(f"shown {name} ") for line in lines if f"shown {name} " in line]
        )
    assert "doesn't contain a value" not in done.stderr, (
        "Spark warns about state that is read while it is missing"
    )


def check_what_is_shown(name: str, lines: list[str]) -> None:
    """Our message, complete and at the beginning; no marker, no Python stack."""
    text = "\n".join(lines)
    assert "EMBERFLOW-ERROR" not in text
    assert "Traceback" not in text
    first = next(number for number, line in enumerate(lines) if "emberflow: " in line)
    if name == "names":
        assert (
            lines[first].split("emberflow: ")[1].startswith("NotSerializable [EF2103]: the record {'idd': ")
        )
        assert lines[first].endswith("missing 'id'; unexpected 'idd'; did it write 'idd' for 'id'?")
        return
    assert lines[first].endswith(FAILED[0]) or name == "agent"
    assert "no three, please" in lines[first + 1]
    if name != "agent":
        assert lines[first : first + 3][1:] == FAILED[1:]
    assert first <= 2
    if name != "stream":
        # After the error of a streaming query Spark shows its plan and, through Connect, Java's stack.
        assert not any(line.startswith("\tat ") for line in lines)
