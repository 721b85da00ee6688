"""A second driver with the checkpoint directory of a job that is running or suspended."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from tests.recovery.torture.actors import Job
from tests.recovery.torture.processes import kill_session

PATIENCE_S = 120.0


class SecondDriver:
    """Must be rejected, with a reason, as long as the first one is alive."""

    def __init__(self, job: Job, log: Path, *, pause_first: bool) -> None:
        self._job = job
        self._log = log
        self._paused = pause_first
        if pause_first:
            job.pause(signal.SIGSTOP)
        self._process = job.start_second(log)
        self._began = time.monotonic()

    def look(self, first_ended: bool) -> list[str] | None:
        """None while it runs; otherwise what is wrong with its end."""
        code = self._process.poll()
        if code is None and time.monotonic() < self._began + PATIENCE_S and not first_ended:
            return None
        self.end()
        if first_ended:
            return []
        if code is None:
            return [f"a second driver was not refused within {PATIENCE_S:.0f} s"]
        text = self._log.read_text(errors="replace")
        if code == 0:
            return ["a second driver was not refused: it ended with exit code 0"]
        if "[EF" not in text:
            return [f"a second driver was refused without a reason: {self._job.last_words(self._log)}"]
        return []

    def end(self) -> None:
        kill_session(self._process.pid)
        self._process.wait()
        if self._paused:
            self._job.pause(signal.SIGCONT)
            self._paused = False
