"""An agent whose calls take as long as its input says. Every call leaves a line when it starts and one when it ends, and one
if it starts while a process is alive that started it before."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from pathlib import Path

from emberflow.agents import Agent, InputEvent, OutputEvent, RunnerContext, action


async def wait(folder: str, name: str, seconds: float, *, idempotency_key: str) -> str:
    for line in _lines(folder, "begun"):
        before, _, pid = line.split()
        if before == name and pid != str(os.getpid()) and stays_alive(pid):
            note(folder, "begun-beside", f"{line} and {os.getpid()}")
    note(folder, "begun", f"{name} {idempotency_key} {os.getpid()}")
    await asyncio.sleep(seconds)
    note(folder, "ended", f"{name} {idempotency_key} {os.getpid()}")
    return f"{name} answered"


def stays_alive(pid: str) -> bool:
    """Not a process that is just ending: it releases its locks slightly before it is gone."""
    for _ in range(2):
        # A process that has ended, but was not waited for, no longer has a directory.
        if not Path(f"/proc/{pid}/cwd").exists():
            return False
        time.sleep(0.5)
    return True


async def die_once(folder: str, *, kills: bool) -> None:
    marker = Path(folder) / "died"
    if not marker.exists():
        marker.touch()
        if kills:
            os.kill(os.getpid(), signal.SIGKILL)
        raise RuntimeError("a crash")


class SlowCalls(Agent):
    """An input is (key, number, [seconds of one call after the other]); at -1 the process dies, once; at -2 the
    action fails, once."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = str(folder)

    @action(InputEvent)
    async def ask(self, event: InputEvent, ctx: RunnerContext) -> None:
        key, number, waits = event.input
        memory = ctx.short_term_memory
        answers: list[str] = []
        for position, seconds in enumerate(waits):
            name = f"{key}.{number}.{position}"
            if seconds < 0:
                await die_once(self._folder, kills=seconds == -1)
                continue
            answers.append(await ctx.durable_execute_async(wait, self._folder, name, seconds))
            memory.set("calls", (memory.get("calls") or 0) + 1)
        ctx.send_event(OutputEvent((key, number, len(answers), memory.get("calls"))))


def note(folder: str, name: str, line: str) -> None:
    with (Path(folder) / name).open("a") as file:
        file.write(line + "\n")


def _lines(folder: str, name: str) -> list[str]:
    path = Path(folder) / name
    return path.read_text().splitlines() if path.exists() else []


def lines(folder: Path, name: str) -> list[str]:
    return [line.split()[0] for line in _lines(str(folder), name)]


def repeated_needlessly(folder: Path) -> list[str]:
    """Calls that were started while a process that had started them before was alive, and calls that one process started
    twice."""
    begun = [tuple(line.split()) for line in _lines(str(folder), "begun")]
    twice = [" ".join(item) for item, count in Counter(begun).items() if count > 1]
    return _lines(str(folder), "begun-beside") + twice
