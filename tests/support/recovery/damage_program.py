"""A small job with everything that is stored: durable calls, timers, memory, a question, a dead letter, a file sink.

The first `run` kills its process in the middle; later ones continue. `local` dies in an action, Spark when a sink has
committed a micro-batch that Spark has not: then the decisions of its tasks exist as well.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from emberflow import StreamExecutionEnvironment
from emberflow.agents import Agent, AgentsExecutionEnvironment, InputEvent, OutputEvent, RunnerContext, action
from emberflow.streams import FileSink, KeyedProcessFunction, RuntimeContext, ValueStateDescriptor
from emberflow.testing import Pause, TestSource
from emberflow.testing.committed_files import literal_files

NUMBERS = 40
DIES_AT = 27
DIES_IN_BATCH = 3


def bill(folder: str, number: int) -> int:
    """The outside world: counts its requests."""
    with (Path(folder) / "billed").open("a") as file:
        file.write(f"{number}\n")
    return number * 10


def die(folder: Path) -> None:
    if not (folder / "died").exists():
        (folder / "died").touch()
        for process in (int((folder / "driver").read_text()), os.getpid()):
            os.kill(process, signal.SIGKILL)


class DyingSink(FileSink):
    def commit_fenced(self, job_id: str, sink_id: str, epoch: int, *rest: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().commit_fenced(job_id, sink_id, epoch, *rest)
        if epoch >= DIES_IN_BATCH:
            die(Path(self.base_path).parent)


class Billing(Agent):
    def __init__(self, folder: str, *, dies: bool) -> None:
        super().__init__()
        self._folder = folder
        self._dies = dies

    @action(InputEvent)
    def charge(self, event: InputEvent, ctx: RunnerContext) -> None:
        number = event.input[1]
        if number == 3:
            raise ValueError("a dead letter")
        first = ctx.durable_execute(bill, self._folder, number)
        if number == DIES_AT and self._dies:
            die(Path(self._folder))
        memory = ctx.short_term_memory
        memory.set("seen", (memory.get("seen") or 0) + 1)
        ctx.send_event(OutputEvent((event.input[0], number, first, memory.get("seen"))))


class Counts(KeyedProcessFunction):
    """Also emits what a key has seen when its timer at the end of the input fires."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._seen = runtime_context.get_state(ValueStateDescriptor("seen"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        count = (self._seen.value() or 0) + 1
        self._seen.update(count)
        ctx.timer_service().register_event_time_timer(10**12)
        yield (*value, count)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield (ctx.get_current_key(), "total", self._seen.value())


def run(folder: Path, engine: str, backend: str, spark: Any = None) -> None:
    (folder / "driver").write_text(str(os.getpid()))
    options = {"spark": spark} if spark is not None else {}
    env = StreamExecutionEnvironment.get_execution_environment(
        engine=engine, checkpoint_dir=str(folder / "checkpoints"), parallelism=1, **options
    )
    env.enable_checkpointing(20)
    if engine == "local":
        env.set_option("state_backend", backend)
    else:
        env.set_option("max_records_per_batch", 8)
    items: list[Any] = []
    for number in range(NUMBERS):
        items.append((f"k{number % 3}", number))
        if engine == "local" and number % 4 == 3:
            items.append(Pause(80))
    agent = Billing(str(folder), dies=engine == "local")
    agents = AgentsExecutionEnvironment.get_execution_environment(env)
    agents.get_config().set_str("on-error", "dead-letter")
    stream = env.add_source(TestSource(items, batch=4)).uid("in")
    out = agents.from_datastream(stream, lambda item: item[0]).apply(agent).to_datastream()
    counted = out.key_by(lambda item: item[0]).process(Counts()).uid("counts")
    sink = literal_files(folder / "output")
    if engine == "spark":
        sink = DyingSink(
            sink.base_path,
            sink.encoder,
            sink.bucket_assigner,
            sink.rolling_policy,
            sink.output_file_config,
        )
    counted.sink_to(sink).uid("out")
    env.execute()


def billed(folder: Path) -> list[int]:
    return sorted(int(line) for line in (folder / "billed").read_text().splitlines())
