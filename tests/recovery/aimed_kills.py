"""A job whose processes can be stopped at a chosen step of a commit, so that a test can kill them all there.

The first time a call is made it takes longer than a batch waits; when it is repeated it is answered at once: a repeated
batch finds that the actions parked by the previous attempt have ended. `arm` names the step; the first process of the job
that reaches it leaves a mark and stops.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from emberflow.agents import Agent, Event, InputEvent, OutputEvent, RunnerContext, action
from emberflow.connectors.files.file_sink import FileSink
from emberflow.durable.decisions import FileDecisions
from emberflow.streams import DataGeneratorSource, KeyedProcessFunction, RateLimiterStrategy
from emberflow.testing import literal_files

FOLDER = "EMBERFLOW_TEST_KILLS"
ARMED, STRUCK = "armed", "struck"
STEPS = (
    "row staged",
    "decision stored",
    "part prepared",
    "ledger written",
    "part visible",
    "epoch done",
    "sink committed",
)


def arm(folder: Path, step: str) -> None:
    draft = folder / "arming"
    draft.write_text(step)
    draft.rename(folder / ARMED)


def step(name: str) -> None:
    folder = Path(os.environ.get(FOLDER, "/nonexistent"))
    try:
        if (folder / ARMED).read_text() != name:
            return
        os.rename(folder / ARMED, folder / STRUCK)
    except FileNotFoundError:
        return
    while True:
        time.sleep(60)


class AimedSink(FileSink):
    """The file sink, with steps at which it can be stopped."""

    def writer(self, context: Any) -> Any:
        writer = super().writer(context)
        write, prepare = writer.write, writer.prepare

        def staged(batch: Any) -> None:
            write(batch)
            step("row staged")

        def prepared() -> Any:
            found = prepare()
            step("part prepared")
            return found

        writer.write, writer.prepare = staged, prepared
        return writer

    def commit_fenced(self, job_id: str, sink_id: str, epoch: int, prepared: Any, fencing_epoch: int) -> None:
        with _renames_are_steps():
            super().commit_fenced(job_id, sink_id, epoch, prepared, fencing_epoch)
        step("sink committed")


@contextmanager
def _renames_are_steps() -> Generator[None]:
    replace = os.replace

    def replaced(source: Any, target: Any) -> None:
        replace(source, target)
        kind = Path(target).suffix
        step({".json": "ledger written", ".done": "epoch done"}.get(kind, "part visible"))

    os.replace = replaced
    try:
        yield
    finally:
        os.replace = replace


def aimed_files(folder: Path) -> AimedSink:
    made = AimedSink.__new__(AimedSink)
    made.__dict__.update(literal_files(folder).__dict__)
    return made


_decide = FileDecisions.decide


def _decide_then_step(self: FileDecisions, name: str, data: bytes) -> bool:
    decided = _decide(self, name, data)
    step("decision stored")
    return decided


FileDecisions.decide = _decide_then_step


async def slow_once(folder: str, name: str) -> str:
    """Slower than a batch waits the first time; answered at once when it is repeated."""
    path = Path(folder) / "made" / name
    first = not path.exists()
    with path.open("a") as file:
        file.write("made\n")
    await asyncio.sleep(1.6 if first else 0)
    return name.upper()


class Desk(Agent):
    """An input is (key, number); the key determines what happens to it."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = str(folder)

    @action(InputEvent)
    async def work(self, event: InputEvent, ctx: RunnerContext) -> None:
        key, number = event.input
        if key == "human":
            answer = await ctx.ask_human(f"May number {number} pass?", options=("yes", "no"))
        elif key == "letter" and not (Path(self._folder) / "redriven").exists():
            raise ValueError("cannot be done yet")
        elif number % 3 == 0:
            answer = await ctx.durable_execute_async(slow_once, self._folder, f"{key}-{number}")
        else:
            answer = "at once"
        seen = (ctx.short_term_memory.get("seen") or 0) + 1
        ctx.short_term_memory.set("seen", seen)
        ctx.send_event(OutputEvent(("done", key, number, str(answer), seen)))
        ctx.send_event_after(200, Event("later", {"number": number}))

    @action("later")
    def later(self, event: Event, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(("later", ctx.key, event.get_attr("number"))))


class Echo(KeyedProcessFunction):
    """Emits everything once more when processing time has advanced."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        service = ctx.timer_service()
        at_ms = service.current_processing_time() + 50
        service.register_processing_time_timer(at_ms)
        yield value

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ("echo", ctx.get_current_key())


class EachBatch:
    """For foreachBatch: one file per batch; a batch that already has its file is skipped, like sinks do."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, rows: Any, batch_id: int) -> None:
        path = self._folder / "output" / f"{batch_id:06d}.json"
        found = [tuple(row) for row in rows.collect()]
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            draft = path.with_suffix(".tmp")
            draft.write_text(json.dumps(found))
            draft.rename(path)
        step("sink committed")


def as_row(value: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*value, None, None)[:5]


KEYS = ("ann", "bob", "eve", "joe")
INPUTS = 240
GATE = "gate"


class GatedSource(DataGeneratorSource):
    """Returns no more inputs than the test has released: whatever the machine's speed, some are left for every step."""

    def __init__(self, folder: Path) -> None:
        pace = RateLimiterStrategy.per_second(6)
        # Unbounded: only such a job processes redriven letters.
        super().__init__(made_input, count=None, rate_limiter_strategy=pace, parallelism=1)
        self._gate = folder / GATE

    def available(self, channel: int, position: Any, elapsed_ms: int) -> int | None:
        due = super().available(channel, position, elapsed_ms)
        return max(0, min(due or 0, let_in(self._gate.parent) - position[0]))


def let_in(folder: Path, more: int = 0) -> int:
    """How many inputs may be read; `more` than before, up to all."""
    gate = folder / GATE
    allowed = min((int(gate.read_text()) if gate.exists() else 0) + more, INPUTS)
    if more:
        draft = gate.with_suffix(".tmp")
        draft.write_text(str(allowed))
        draft.rename(gate)
    return allowed


def made_input(index: int) -> tuple[str, int]:
    """One question to people and one letter among inputs of the other keys."""
    if index in (7, 11):
        return ("human" if index == 7 else "letter"), index
    return KEYS[index % 4], index


def expected() -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    seen: dict[str, int] = {}
    for index in range(INPUTS):
        key, number = made_input(index)
        seen[key] = seen.get(key, 0) + 1
        answer = "yes" if key == "human" else f"{key}-{number}".upper() if number % 3 == 0 else "at once"
        found += [("done", key, number, answer, seen[key]), ("later", key, number)]
    return sorted(found)
