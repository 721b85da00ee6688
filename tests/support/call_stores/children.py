"""Starts appenders as real processes, and kills them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.call_stores.places import Place

ROOT = Path(__file__).resolve().parents[3]
HANG_GUARD_S = 400


class Appender:
    def __init__(self, place: Place, command: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.support.call_stores.appender",
                place.to_json(),
                command,
                *arguments,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])},
        )
        self.owner = self.line()

    def line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> list[str]:
        """What it had reported when it died."""
        self._process.kill()
        # A line without a line break does not count.
        return [line.strip() for line in self._rest().splitlines(keepends=True) if line.endswith("\n")]

    def finish(self) -> list[str]:
        said = self._rest()
        assert self._process.returncode == 0, said
        return said.split()

    def _rest(self) -> str:
        # Not communicate(): it does not know what line() has in its buffer.
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        said = self._process.stdout.read()
        self._process.wait(HANG_GUARD_S)
        return said

    def running(self) -> bool:
        return self._process.poll() is None


@contextmanager
def appender(place: Place, command: str, *arguments: str) -> Iterator[Appender]:
    child = Appender(place, command, *arguments)
    try:
        yield child
    finally:
        if child.running():
            child.kill()
