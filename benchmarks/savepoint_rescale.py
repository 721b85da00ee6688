"""100,000 keys of agents' memory: the time from the request to stop until the same job works with twice the parallelism.

Measured from `stop_with_savepoint` to the first output of the restored job, which shows that it has its memory.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measurement import Measure, Options, at_most
from benchmarks.session import spark_session
from emberflow.agents import Agent, AgentsExecutionEnvironment, InputEvent, OutputEvent, RunnerContext, action
from emberflow.savepoints import Savepoint
from emberflow.streams import CollectSink, JobClient, StreamExecutionEnvironment
from emberflow.testing import TestSource

KEYS = 100_000
TEXT = "what this customer said last time, and what was answered. " * 4
PATIENCE_S = 500


class Remembering(Agent):
    """A few fields of memory per key, some hundred bytes."""

    @action(InputEvent)
    @staticmethod
    def remember(event: InputEvent, ctx: RunnerContext) -> None:
        key, number = event.input
        memory = ctx.short_term_memory
        seen = memory.get("seen", 0) + 1
        memory.set("seen", seen)
        memory.set("profile.name", key)
        memory.set("profile.text", TEXT)
        memory.append("numbers", number)
        ctx.send_event(OutputEvent(output=(key, seen)))


def run(options: Options) -> list[Measure]:
    keys = options.pick(KEYS // 10, KEYS)
    measures = _measures("local", None, keys)
    with spark_session("savepoints") as session:
        return measures + _measures("Spark", session, keys)


def _measures(engine: str, session: Any, keys: int) -> list[Measure]:
    with tempfile.TemporaryDirectory(prefix="emberflow-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        inputs = [(f"customer-{number}", number) for number in range(keys)]
        first, out = start(session, 2, folder / "first", inputs, None)
        wait_for(first, out, keys)
        began = time.monotonic()
        path = first.savepoint(folder / "savepoint", stop=True)
        taken = time.monotonic()
        second, out = start(session, 4, folder / "second", [*inputs, inputs[7]], path)
        wait_for(second, out, 1)
        restored = time.monotonic()
        second.cancel()
        if out[0] != (inputs[7][0], 2):
            raise AssertionError(f"the restored job does not remember: {out[:3]}")
        savepoint = Savepoint.read(path)
        found = sum(step.summary.keys for step in savepoint.steps.values())
        if found != keys:
            raise AssertionError(f"{found} keys instead of {keys}")
        return [
            Measure(
                name=f"{engine}: savepoint and restore", value=restored - began, unit="s", bar=at_most(30)
            ),
            Measure(name=f"{engine}: stop with savepoint", value=taken - began, unit="s"),
            Measure(name=f"{engine}: until its first output", value=restored - taken, unit="s"),
            Measure(name=f"{engine}: size", value=savepoint.manifest.bytes / 1e6, unit="MB"),
        ]


def start(
    session: Any, parallelism: int, folder: Path, inputs: list[Any], savepoint: str | None
) -> tuple[JobClient, list[Any]]:
    out: list[Any] = []
    env = StreamExecutionEnvironment.get_execution_environment(
        engine="local" if session is None else "spark",
        spark=session,
        checkpoint_dir=folder,
        parallelism=parallelism,
    )
    if savepoint is not None:
        env.set_savepoint(savepoint)
    agents = AgentsExecutionEnvironment.get_execution_environment(env)
    stream = env.from_source(TestSource(inputs, bounded=False), source_name="inputs").uid("inputs")
    outputs = agents.from_datastream(stream, lambda value: value[0]).apply(Remembering()).to_datastream()
    outputs.sink_to(CollectSink(lambda batch: out.extend(batch.values))).uid("outputs")
    return env.execute_async("savepoints"), out


def wait_for(job: JobClient, out: list[Any], count: int) -> None:
    ends = time.monotonic() + PATIENCE_S
    while len(out) < count:
        if job.get_job_status().result().is_final or time.monotonic() > ends:
            job.get_job_execution_result().result()
            raise AssertionError(f"{len(out)} outputs instead of {count}")
        time.sleep(0.01)
