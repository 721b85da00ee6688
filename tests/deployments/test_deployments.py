"""The same program on a classic session, on a cluster of separate executor processes and through Spark Connect.

Started as processes of their own in an empty working directory: one process can hold one kind of session only.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("program.py")
HANG_GUARD_S = 400


def run(kind: str, mode: str, folder: Path) -> list[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), kind, mode],
        cwd=folder,
        env={**environment, "EMBERFLOW_QUIET": "1", "SPARK_WORKER_DIR": str(folder / "spark-work")},
        capture_output=True,
        text=True,
        timeout=HANG_GUARD_S,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return sorted(line for line in done.stdout.splitlines() if line.startswith("result "))


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
def test_spark_connect_batch(tmp_path: Path) -> None:
    assert run("connect", "BATCH", tmp_path) == expected("BATCH")


@pytest.mark.spark
def test_a_session_of_the_caller(tmp_path: Path) -> None:
    assert run("classic", "STREAMING", tmp_path) == expected("STREAMING")
