"""An agent for jobs whose calls are kept in any store: calls that outlast a micro-batch, quick ones, and a key that fails
once, after all others have their answers and before all of those are committed."""

from __future__ import annotations

import asyncio
from pathlib import Path

from emberflow.agents import Agent, InputEvent, OutputEvent, RunnerContext, action
from tests.support.recovery.slow_calls import die_once, lines, wait

FAILING = "fails"


class ParkedCalls(Agent):
    """An input is (key, seconds of its call)."""

    def __init__(self, folder: Path, keys: int) -> None:
        super().__init__()
        self._folder = str(folder)
        self._others = keys - 1

    @action(InputEvent)
    async def ask(self, event: InputEvent, ctx: RunnerContext) -> None:
        key, seconds = event.input
        answer = await ctx.durable_execute_async(wait, self._folder, key, seconds)
        if key == FAILING:
            # Other processes write the file.
            while len(set(lines(Path(self._folder), "answered"))) < self._others:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            await die_once(self._folder, kills=False)
        else:
            # After the call: its answer is in the log.
            with (Path(self._folder) / "answered").open("a") as file:
                file.write(f"{key}\n")
        ctx.send_event(OutputEvent((key, answer)))
