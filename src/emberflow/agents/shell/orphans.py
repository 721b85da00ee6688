"""Kills what the commands of a call have left behind when their supervisor, which would do so, was killed.

They are recognized by the environment that they were given: its HOME exists for this call only. What has replaced its own
environment is not found.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

_LONGEST_S = 10.0


def kill_orphans(home: str) -> None:
    """Blocks until there are none; does nothing where there is no /proc."""
    mark = b"HOME=" + os.fsencode(home)
    until = time.monotonic() + _LONGEST_S
    # Those that multiply are found again.
    while (found := _started_with(mark)) and time.monotonic() < until:
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)


def _started_with(mark: bytes) -> list[int]:
    found: list[int] = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        # Those of other users cannot be read; one that has been killed has no environment any more.
        with contextlib.suppress(OSError):
            if name.isdigit():
                with open(f"/proc/{name}/environ", "rb") as file:
                    if mark in file.read().split(b"\0"):
                        found.append(int(name))
    return found
