"""A job that waits for people: one key has asked a question, the input of another one is a redriven dead letter.

`leave` stops it there, answers and redrives; `resume` starts it again and waits until it has emitted both, or has failed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from emberflow import StreamExecutionEnvironment
from emberflow.agents import Agent, AgentsExecutionEnvironment, InputEvent, OutputEvent, RunnerContext, action
from emberflow.approvals.answering import give_answer, questions
from emberflow.dead_letters.redrive import letters, redrive
from emberflow.errors import CorruptData, InvalidArgument
from emberflow.testing import TestSource
from emberflow.testing.committed_files import literal_files, read_committed

INPUT = [("asks", 1), ("fails", 2)]
HANGS_S = 300


class Desk(Agent):
    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    @action(InputEvent)
    async def serve(self, event: InputEvent, ctx: RunnerContext) -> None:
        key, number = event.input
        if key == "fails" and not (Path(self._folder) / "fixed").exists():
            raise ValueError("a dead letter")
        answer = str(await ctx.ask_human("Pay?")) if key == "asks" else None
        ctx.send_event(OutputEvent((key, number, answer)))


def leave(folder: Path, backend: str) -> None:
    job = _started(folder, backend)
    home = folder / "checkpoints"
    until(lambda: bool(questions(home)) and bool(letters(home)), job)
    job.cancel()
    (folder / "fixed").touch()
    give_answer(home, questions(home)[0].id, "approve", by="eve")
    redrive(letters(home))


def resume(folder: Path, backend: str) -> list[Any]:
    """What the job has emitted. An open question is answered again."""
    job = _started(folder, backend)
    home = folder / "checkpoints"

    def is_done() -> bool:
        # A person who encounters the damage waits for the job to report it, too; the job may settle a question in between.
        with contextlib.suppress(CorruptData, InvalidArgument):
            for question in questions(home):
                (folder / "asked again").touch()
                give_answer(home, question.id, "approve", by="eve")
        return len(read_committed(folder / "output")) >= len(INPUT)

    try:
        until(is_done, job)
    finally:
        job.cancel()
    return sorted(read_committed(folder / "output"), key=repr)


def until(is_reached: Callable[[], bool], job: Any) -> None:
    began = time.monotonic()
    while not is_reached():
        if job.get_job_status().result().name not in ("CREATED", "RUNNING", "RESTARTING"):
            job.get_job_execution_result().result()
        assert time.monotonic() - began < HANGS_S
        time.sleep(0.02)


def _started(folder: Path, backend: str) -> Any:
    env = StreamExecutionEnvironment.get_execution_environment(
        engine="local", checkpoint_dir=str(folder / "checkpoints"), parallelism=1
    )
    env.enable_checkpointing(20)
    env.set_option("state_backend", backend)
    agents = AgentsExecutionEnvironment.get_execution_environment(env)
    agents.get_config().set_str("on-error", "dead-letter")
    stream = env.add_source(TestSource(INPUT, bounded=False)).uid("in")
    out = agents.from_datastream(stream, lambda item: item[0]).apply(Desk(str(folder))).to_datastream()
    out.sink_to(literal_files(folder / "output")).uid("out")
    return env.execute_async()
