"""The driver is killed with 1,000 runs in flight: how long the next one takes, from its Spark session to its first output.

Both are separate processes: `python -m benchmarks.recovery_spark FOLDER`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.agent_jobs import with_agent
from benchmarks.measurement import Measure, Options, at_most
from benchmarks.processes import family
from benchmarks.session import environment, spark_session
from emberflow.agents import Agent, InputEvent, OutputEvent, RunnerContext, action
from emberflow.streams import CollectSink, RuntimeExecutionMode

RUNS = 1_000
CALL_S = 3.0
LIMIT_S = 300


async def wait(folder: str, key: str) -> str:
    with (Path(folder) / "begun").open("a") as file:
        file.write(f"{key}\n")
    await asyncio.sleep(CALL_S)
    return key


class Waiting(Agent):
    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    @action(InputEvent)
    async def call(self, event: InputEvent, ctx: RunnerContext) -> None:
        # One call that has ended when the driver dies, and one that has not.
        await ctx.durable_execute_async(asyncio.sleep, 0.1)
        ctx.send_event(OutputEvent(await ctx.durable_execute_async(wait, self._folder, event.input[0])))


def run(options: Options) -> list[Measure]:
    with tempfile.TemporaryDirectory(prefix="emberflow-recovery-") as folder:
        first = _start(folder)
        _until(lambda: _count(folder, "begun") >= RUNS, "all runs are in flight")
        for pid in reversed(family(first.pid)):
            os.kill(pid, signal.SIGKILL)
        first.wait()
        made = _count(folder, "begun")
        second = _start(folder)
        if second.wait(LIMIT_S) != 0:
            raise RuntimeError("the second driver failed")
        times = dict(line.split() for line in (Path(folder) / "times").read_text().splitlines())
        again = _count(folder, "begun") - made
    first_s = float(times["first"]) - float(times["session"])
    last_s = float(times["last"]) - float(times["session"])
    options.details["calls_made_again"] = again
    return [
        Measure(
            name="first output after the new driver has a session", value=first_s, unit="s", bar=at_most(10)
        ),
        Measure(name="last of 1,000 outputs", value=last_s, unit="s", note=f"calls take {CALL_S:.0f} s"),
        Measure(name="calls made again, of 1,000 that were in flight", value=again, unit=""),
    ]


def _start(folder: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "benchmarks.recovery_spark", folder])


def _count(folder: str, name: str) -> int:
    path = Path(folder) / name
    return len(path.read_text().splitlines()) if path.exists() else 0


def _until(condition: Any, what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited in vain until {what}")
        time.sleep(0.05)


def main(folder: str) -> None:
    with spark_session("recovery") as session:
        session_s = time.time()
        env = environment(session, checkpoint_dir=f"{folder}/checkpoints")
        env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
        arrived: list[float] = []
        inputs = [(f"k{number}", number) for number in range(RUNS)]
        with_agent(env.from_collection(inputs), Waiting(folder)).sink_to(
            CollectSink(lambda batch: arrived.extend([time.time()] * len(batch.values)))
        )
        env.execute("recovery")
        lines = [f"session {session_s}", f"first {min(arrived)}", f"last {max(arrived)}"]
        (Path(folder) / "times").write_text("\n".join(lines))


if __name__ == "__main__":
    main(sys.argv[1])
