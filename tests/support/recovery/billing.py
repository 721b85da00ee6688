"""An agent whose calls cost money: each one leaves a line in a file, and the process dies between two of them."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from emberflow.agents import Agent, InputEvent, OutputEvent, RunnerContext, action


async def bill(folder: str, item: int, *, idempotency_key: str) -> int:
    """The outside world: counts its requests."""
    with (Path(folder) / "billed").open("a") as file:
        file.write(f"{item} {idempotency_key}\n")
    return item * 10


def bill_now(folder: str, item: int, *, idempotency_key: str) -> int:
    with (Path(folder) / "billed").open("a") as file:
        file.write(f"{item} {idempotency_key}\n")
    return item * 10


class Billing(Agent):
    """`how` it dies, once, between the two calls of input 5: `raise` or `kill`."""

    def __init__(self, folder: Path, how: str) -> None:
        super().__init__()
        self._folder = str(folder)
        self._how = how

    @action(InputEvent)
    async def charge(self, event: InputEvent, ctx: RunnerContext) -> None:
        number = event.input[1]
        first = await ctx.durable_execute_async(bill, self._folder, number)
        if number == 5:
            self._die()
        second = await ctx.durable_execute_async(bill, self._folder, number + 1_000)
        ctx.send_event(OutputEvent((event.input[0], first, second)))

    def _die(self) -> None:
        marker = Path(self._folder) / "died"
        if marker.exists():
            return
        marker.touch()
        if self._how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise RuntimeError("a crash between two calls")


class PlainBilling(Billing):
    @action(InputEvent)
    def charge(self, event: InputEvent, ctx: RunnerContext) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        number = event.input[1]
        first = ctx.durable_execute(bill_now, self._folder, number)
        if number == 5:
            self._die()
        second = ctx.durable_execute(bill_now, self._folder, number + 1_000)
        ctx.send_event(OutputEvent((event.input[0], first, second)))


def billed(folder: Path) -> list[tuple[int, str]]:
    lines: list[Any] = [line.split() for line in (folder / "billed").read_text().splitlines()]
    return [(int(item), key) for item, key in lines]
