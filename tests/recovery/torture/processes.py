"""The processes of a tortured job, found in /proc by the session that its driver leads."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    parent: int
    command: str


def processes_of(session: int) -> list[Process]:
    """All live processes of the session, without zombies."""
    found: list[Process] = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # The name may contain anything, so parse the rest from its closing bracket on.
            state, parent, _, own_session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(own_session) == session and state != "Z":
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.append(Process(int(folder.name), int(parent), command))
        except OSError:
            continue  # It has just ended.
    return found


def workers_of(session: int) -> list[int]:
    """Python workers: processes forked by a daemon of pyspark."""
    found = processes_of(session)
    daemons = {item.pid for item in found if "pyspark.daemon" in item.command}
    return sorted(item.pid for item in found if item.pid in daemons and item.parent in daemons)


def talking_to(port: int, pids: list[int]) -> list[int]:
    """Those with a connection to a port of this machine: a call in flight."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    wanted = {f"socket:[{row[9]}]" for row in rows if int(row[2].rpartition(":")[2], 16) == port}
    return [pid for pid in pids if wanted & _open_files(pid)]


def _open_files(pid: int) -> set[str]:
    found: set[str] = set()
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    return found


def executors_of(session: int) -> list[int]:
    return sorted(
        item.pid for item in processes_of(session) if "CoarseGrainedExecutorBackend" in item.command
    )


def below(session: int, pids: list[int]) -> set[int]:
    """All descendants of processes."""
    found = processes_of(session)
    family = set(pids)
    while more := {item.pid for item in found if item.parent in family} - family:
        family |= more
    return family - set(pids)


def kill(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def kill_session(session: int) -> None:
    """Kills everything at once, like a power failure; repeats until nothing is left."""
    until(lambda: not (kill(found := [item.pid for item in processes_of(session)]), found)[1], 30)


def until(condition: Callable[[], object], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
