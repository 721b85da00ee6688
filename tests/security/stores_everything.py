"""A program that creates every kind of file that a job stores: `stores_everything.py ENGINE STATE_BACKEND FOLDER UMASK`.

Records, calls, questions, letters, redriven letters, limits, event logs, checkpoints and a savepoint.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from emberflow.agents import (
    Agent,
    AgentConfigOptions,
    AgentExecutionOptions,
    AgentsExecutionEnvironment,
    BaseChatModelSetup,
    ErrorHandling,
    InputEvent,
    OutputEvent,
    ResourceDescriptor,
    RunnerContext,
    action,
    chat_model_connection,
    chat_model_setup,
)
from emberflow.approvals.answering import give_answer, questions
from emberflow.dead_letters.redrive import letters, redrive, to_file
from emberflow.streams import BucketAssigner, Encoder, FileSink, StreamExecutionEnvironment
from emberflow.testing import ScriptedChatModel, TestSource, When

PATIENCE_S = 400


class StoresEverything(Agent):
    @chat_model_connection
    @staticmethod
    def service() -> ResourceDescriptor:
        return ResourceDescriptor(clazz=ScriptedChatModel, replies=[When(reply="yes")], max_concurrent=2)

    @chat_model_setup
    @staticmethod
    def clerk() -> ResourceDescriptor:
        return ResourceDescriptor(clazz=BaseChatModelSetup, connection="service")

    @action(InputEvent)
    @staticmethod
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        what = event.input[0]
        ctx.short_term_memory.set("long", "a page " * 1_000)
        if what == "broken":
            raise ValueError("broken")
        if what == "ask":
            await ctx.ask_human("Go on?")
        if what == "wait":
            await ctx.ask_human("Nobody answers this one")
        if what == "chat":
            await ctx.chat("clerk", "Is it?")
        ctx.send_event(OutputEvent(what))


def program(engine: str, backend: str, folder: Path) -> Any:
    env = StreamExecutionEnvironment.get_execution_environment(
        engine=engine, checkpoint_dir=str(folder / "checkpoint")
    )
    if engine == "local":
        env.set_option("state_backend", backend)
    env.enable_checkpointing(20)
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    config = agents_env.get_config()
    config.set(AgentExecutionOptions.ON_ERROR, ErrorHandling.DEAD_LETTER)
    config.set(AgentConfigOptions.BASE_LOG_DIR, str(folder / "events"))
    inputs = [("ask", ""), ("broken", ""), ("chat", ""), ("wait", "")]
    stream = env.add_source(TestSource(inputs, bounded=False))
    outputs = agents_env.from_datastream(stream, lambda value: value[0]).apply(StoresEverything())
    results = outputs.to_datastream()
    results.sink_to(
        FileSink.for_row_format(folder / "out", Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .build()
    )
    results.print()
    return env.execute_async()


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def answer(directory: Path) -> bool:
    waiting = [question for question in questions(directory) if question.question == "Go on?"]
    for question in waiting:
        give_answer(directory, question.id, "approve", note="fine")
    return bool(waiting)


def family() -> set[int]:
    """This process and all that it has started."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def listening(pids: set[int]) -> set[str]:
    """Addresses of their open ports, as the kernel writes them."""
    sockets: set[str] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for path in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    sockets.add(os.readlink(path))
    found: set[str] = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                found.add(fields[1].partition(":")[0])
    return found


def main(engine: str, backend: str, folder: Path, umask: int) -> None:
    os.umask(umask)
    directory = folder / "checkpoint"
    job = program(engine, backend, folder)
    try:
        until(lambda: directory.exists() and answer(directory))
        until(lambda: letters(directory))
        to_file(letters(directory), folder / "letters.jsonl")
        redrive(letters(directory))
        until(lambda: len(letters(directory)) == 2)
        until(lambda: sum(len(path.read_text().split()) for path in (folder / "out").glob("part-*")) == 2)
        job.savepoint(str(folder / "savepoints" / "first"))
        # While the job runs: temporary files exist, too.
        for path in sorted(folder.rglob("*")):
            try:
                found = path.lstat()
            except FileNotFoundError:
                continue
            sys.stdout.write(f"mode {found.st_mode:o} {path.relative_to(folder)}\n")
        for address in listening(family()):
            sys.stdout.write(f"listens {address}\n")
    finally:
        job.cancel()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4], 8))
