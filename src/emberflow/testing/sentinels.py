"""What a `TestSource` may contain besides records: crashes, pauses, latches and batch boundaries.

A crash happens once, also across restarts and processes: before it happens, it leaves a file in a folder that all of
them share. Create sentinels outside the function that builds the program, otherwise a restart creates new ones.
"""

from __future__ import annotations

import os
import signal
import tempfile
import uuid
from functools import cache
from pathlib import Path

from emberflow.errors import InvalidArgument


class SimulatedCrash(Exception):
    """What `Crash` raises."""


@cache
def crash_folder() -> str:
    """Where crashes of this process's tests leave their marks; created on first use."""
    return tempfile.mkdtemp(prefix="emberflow-crashes-")


class Sentinel:
    """Not a record: does something when it is reached."""

    def reach(self) -> None:
        """Called where the source would have produced a record."""


class Once(Sentinel):
    """Acts the first time it is reached, in whatever process."""

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._mark = Path(folder or crash_folder()) / f"{type(self).__name__}-{uuid.uuid4().hex}"

    @property
    def happened(self) -> bool:
        return self._mark.exists()

    def reach(self) -> None:
        try:
            # Leave the mark first: a crash without a trace would happen again and again.
            os.close(os.open(self._mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            return
        self.strike()

    def strike(self) -> None:
        raise NotImplementedError(type(self).__name__)


class Crash(Once):
    """Raises SimulatedCrash. `crash.reach()` inside a user function crashes that function once."""

    def strike(self) -> None:
        """Called by the source: raises, once."""
        raise SimulatedCrash("a crash that the test put into its input")

    def __repr__(self) -> str:
        return "Crash()"


class WorkerKill(Once):
    """Kills (SIGKILL) the worker process that reaches it; refuses to kill the process that created it."""

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        super().__init__(folder)
        self._made_by = os.getpid()

    def strike(self) -> None:
        """Called by the source: kills the worker's process, once."""
        if os.getpid() == self._made_by:
            raise InvalidArgument(
                "WorkerKill() was reached in the process that runs the test",
                way_out="use it on hosts with workers only; Crash() works everywhere",
            )
        os.kill(os.getpid(), signal.SIGKILL)

    def __repr__(self) -> str:
        return "WorkerKill()"


class Pause(Sentinel):
    """The items after it are available only `ms` later. A job that continues after it does not wait again."""

    def __init__(self, ms: int) -> None:
        if ms < 0:
            raise InvalidArgument(f"a pause of {ms} ms is invalid", way_out="give zero or more milliseconds")
        self.ms = ms

    def __repr__(self) -> str:
        return f"Pause({self.ms})"


class Latch(Sentinel):
    """The items after it are available once `open` was called, in whatever process. Unlike a pause, it does not depend on
    the speed of the machine."""

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._mark = Path(folder or crash_folder()) / f".latch-{uuid.uuid4().hex}"

    @property
    def is_open(self) -> bool:
        """Whether it was opened."""
        return self._mark.exists()

    def open(self) -> None:
        """Releases everything that waits for it."""
        self._mark.touch()

    def __repr__(self) -> str:
        return "Latch()"


class Cut(Sentinel):
    """A batch boundary: the items after it are read in another batch."""

    def __repr__(self) -> str:
        return "Cut()"
