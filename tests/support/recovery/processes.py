"""Starts the recovery program as a process, and reads what it has committed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("program.py")
HANG_GUARD_S = 500


def start(engine: str, mode: str, folder: Path, *extra: str) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        str(PROGRAM),
        engine,
        mode,
        str(folder / "checkpoint"),
        str(folder / "out"),
        *extra,
    ]
    environment = {**os.environ, "EMBERFLOW_QUIET": "1"}
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str]) -> None:
    output, _ = process.communicate(timeout=HANG_GUARD_S)
    assert process.returncode == 0, output[-3000:]


def committed(folder: Path) -> list[str]:
    files = [path for path in (folder / "out").rglob("*") if path.is_file()]
    visible = [
        path for path in files if not any(part[0] in "._" for part in path.relative_to(folder / "out").parts)
    ]
    return sorted(line for path in visible for line in path.read_text().splitlines())
