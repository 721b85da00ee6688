"""An agent whose calls take as long as its input says. Every call leaves a line when it begins and one when it ends."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from emberflow.agents import Agent, InputEvent, OutputEvent, RunnerContext, action


async def wait(folder: str, name: str, seconds: float, idempotency_key: str) -> str:
    with (Path(folder) / "begun").open("a") as file:
        file.write(f"{name} {idempotency_key} {os.getpid()}\n")
    await asyncio.sleep(seconds)
    with (Path(folder) / "ended").open("a") as file:
        file.write(f"{name} {idempotency_key} {os.getpid()}\n")
    return f"{name} answered"


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


def lines(folder: Path, name: str) -> list[str]:
    path = folder / name
    return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []
