"""Agents with calls in flight: checkpoints do not wait for them, and calls lost in a crash are made again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import Agent, AgentsExecutionEnvironment, Event, InputEvent, OutputEvent, RunnerContext
from emberflow.engines.local.checkpointing.checkpoints import Checkpoint, read_checkpoint
from emberflow.errors import EmberflowError, NotSerializable
from emberflow.events.codecs import decode
from emberflow.operators.agents.agent_run import RUN
from emberflow.streams import DataStream, StreamExecutionEnvironment
from emberflow.testing import (
    LOCAL,
    LOCAL_2,
    LOCAL_SQLITE,
    SPARK,
    Crash,
    Host,
    Pause,
    TestSource,
    WorkerKill,
    literal_files,
    per_key,
    read_committed,
    spark_missing,
)
from tests.support.waiting import until

HANG_GUARD_S = 300
INPUTS = [(key, number) for number in range(4) for key in ("ann", "bob", "cid")]
HOSTS = {"file": LOCAL, "sqlite": LOCAL_SQLITE}


class Waiting(Agent):
    """Memory is changed before, between and after two slow calls."""

    def __init__(self, wait_s: float = 0.3) -> None:
        super().__init__("waiting")
        self._wait_s = wait_s
        self.add_action("first", [InputEvent], self.first)
        self.add_action("second", ["asked"], self.second)

    async def first(self, event: Event, ctx: RunnerContext) -> None:
        key, number = event.get_attr("input")
        memory = ctx.short_term_memory
        memory.set("count", memory.get("count", 0) + 1)
        ctx.sensory_memory.set("doubled", number * 2)
        ctx.send_event(OutputEvent((key, "asked", memory.get("count"), ctx.run_id)))
        await asyncio.sleep(self._wait_s / 2)
        memory.append("numbers", number)
        ctx.send_event(Event("asked", {"number": number}))

    async def second(self, event: Event, ctx: RunnerContext) -> None:
        ctx.short_term_memory.delete("count.nothing")
        await asyncio.sleep(self._wait_s / 2)
        ctx.send_event(
            OutputEvent(
                (
                    ctx.key,
                    ctx.short_term_memory.get("count"),
                    ctx.short_term_memory.get("numbers"),
                    ctx.sensory_memory.get("doubled"),
                    event.id,
                )
            )
        )


def applied(env: StreamExecutionEnvironment, source: Any, agent: Agent) -> DataStream:
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    stream = env.add_source(source)
    return agents_env.from_datastream(stream, lambda value: value[0]).apply(agent).to_datastream()


@pytest.fixture(scope="module")
def undisturbed() -> dict[Any, list[Any]]:
    found = LOCAL.run(lambda env: applied(env, TestSource(INPUTS), Waiting(0)))
    assert len(found) == 2 * len(INPUTS)
    return per_key(found)


def stored(folder: Path) -> tuple[Checkpoint | None, dict[str, dict[Any, dict[str, Any]]]]:
    """The newest checkpoint and its entries, from either backend."""
    database = folder / "state.db"
    if not database.exists():
        for path in sorted((folder / "local").glob("chk-*.ckpt"), reverse=True):
            try:
                return read_checkpoint(path)
            except FileNotFoundError:
                continue
        return None, {}
    entries: dict[str, dict[Any, dict[str, Any]]] = {}
    connection = sqlite3.connect(database)
    try:
        row = connection.execute("select data from checkpoint where id = 1").fetchone()
        for uid, data in connection.execute("select uid, data from entries"):
            entries.setdefault(uid, {}).update(decode(data))
    except sqlite3.OperationalError:
        return None, {}
    finally:
        connection.close()
    return (None if row is None else decode(row[0])), entries


def runs_in(folder: Path) -> dict[Any, Any]:
    """Keys that are in flight in the newest checkpoint."""
    _, entries = stored(folder)
    return {key: entry[RUN] for keys in entries.values() for key, entry in keys.items() if RUN in entry}


def prepared(
    host: Host, folder: Path, source: Any, agent: Agent, every_ms: int
) -> StreamExecutionEnvironment:
    env = host.environment(checkpoint_dir=folder / "checkpoints")
    env.enable_checkpointing(every_ms)
    applied(env, source, agent).sink_to(literal_files(folder / "output")).uid("files")
    return env


@pytest.mark.parametrize("backend", HOSTS)
def test_a_crash_with_calls_in_flight(
    backend: str, tmp_path: Path, undisturbed: dict[Any, list[Any]]
) -> None:
    source = TestSource(
        [
            *INPUTS[:5],
            Pause(120),
            Crash(),
            *INPUTS[5:9],
            Pause(120),
            Crash(),
            *INPUTS[9:],
            Pause(120),
            Crash(),
        ]
    )
    crashes, waited = 0, 0
    while True:
        env = prepared(HOSTS[backend], tmp_path, source, Waiting(), every_ms=20)
        try:
            env.execute()
        except EmberflowError as error:
            if "a crash that the test put into its input" not in str(error):
                raise
            crashes += 1
            waited += len(runs_in(tmp_path / "checkpoints"))
        else:
            break
    assert crashes == 3
    assert waited > 0, "no checkpoint had a run in flight, so this test has shown nothing"
    assert per_key(read_committed(tmp_path / "output")) == undisturbed
    assert runs_in(tmp_path / "checkpoints") == {}


@pytest.mark.slow
@pytest.mark.parametrize("backend", HOSTS)
def test_a_killed_process_with_calls_in_flight(
    backend: str, tmp_path: Path, undisturbed: dict[Any, list[Any]]
) -> None:
    pauses, in_flight = random.Random(5), 0
    for _ in range(3):
        process = started(backend, tmp_path)
        until(lambda process=process: runs_in(tmp_path / "checkpoints") or process.poll() is not None)
        time.sleep(pauses.uniform(0, 0.25))
        # A process that has already finished shows nothing, but does no harm either.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        in_flight += bool(runs_in(tmp_path / "checkpoints"))
    assert in_flight, "no run was in flight at a kill, so this test has shown nothing"
    process = started(backend, tmp_path)
    output, _ = process.communicate(timeout=HANG_GUARD_S)
    assert process.returncode == 0, output[-3000:]
    assert per_key(read_committed(tmp_path / "output")) == undisturbed


def started(backend: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.recovery.test_agent_recovery", backend, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "EMBERFLOW_QUIET": "1"},
        start_new_session=True,
    )


def main(backend: str, folder: str) -> None:
    items = [part for item in INPUTS for part in (item, Pause(20))]
    prepared(HOSTS[backend], Path(folder), TestSource(items), Waiting(0.6), every_ms=30).execute()


class Gate(Agent):
    """Inputs of the key "slow" wait until a file exists."""

    def __init__(self, file: Path) -> None:
        super().__init__("gate")
        self.file = file
        self.add_action("act", [InputEvent], self.act)

    async def act(self, event: Event, ctx: RunnerContext) -> None:
        key, number = event.get_attr("input")
        while key == "slow" and not self.file.exists():  # noqa: ASYNC110 - the test makes it, from outside
            await asyncio.sleep(0.01)
        ctx.send_event(OutputEvent((key, number)))


QUICK = [(f"key{number}", number) for number in range(20)]


@pytest.mark.parametrize("bounded", [True, False])
def test_a_slow_key_delays_neither_other_keys_nor_checkpoints(bounded: bool, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    source = TestSource([("slow", 1), *QUICK[:10], Pause(50), ("slow", 2), *QUICK[10:]], bounded=bounded)
    client = prepared(LOCAL, tmp_path, source, Gate(gate), every_ms=20).execute_async()
    output = tmp_path / "output"
    until(lambda: len(read_committed(output)) == len(QUICK))
    assert sorted(read_committed(output)) == sorted(QUICK)
    (run,) = runs_in(tmp_path / "checkpoints").values()
    assert run[-1] == [(("slow", 2), None)], "the second input waits behind the first"
    gate.touch()
    if bounded:
        client.get_job_execution_result().result()
    until(lambda: len(read_committed(output)) == len(QUICK) + 2)
    assert [value for value in read_committed(output) if value[0] == "slow"] == [("slow", 1), ("slow", 2)]
    if not bounded:
        client.cancel()


@pytest.mark.parametrize(
    ("before", "after"),
    [(1, 1), (1, 2), (2, 1), (2, 2)],
)
def test_a_stopped_job_continues_with_another_parallelism(before: int, after: int, tmp_path: Path) -> None:
    """Stopped after its input has ended and with one call in flight: every subtask finishes afterwards."""
    gate = tmp_path / "gate"
    source = TestSource([("slow", 1), *QUICK, ("slow", 2)])
    host = replace(LOCAL_2, parallelism=before)
    client = prepared(host, tmp_path, source, Gate(gate), every_ms=20).execute_async()
    until(lambda: len(read_committed(tmp_path / "output")) == len(QUICK))
    client.cancel()
    assert list(runs_in(tmp_path / "checkpoints")) == ["slow"]
    gate.touch()
    other = replace(host, parallelism=after)
    other._execute(prepared(other, tmp_path, source, Gate(gate), every_ms=20))
    assert per_key(read_committed(tmp_path / "output")) == per_key([("slow", 1), ("slow", 2), *QUICK])


def test_an_input_that_cannot_be_stored_is_named(tmp_path: Path) -> None:
    source = TestSource([("slow", 1), ("slow", (number for number in [1])), Pause(500)])
    env = prepared(LOCAL, tmp_path, source, Gate(tmp_path / "gate"), every_ms=20)
    with pytest.raises(NotSerializable) as caught:
        env.execute()
    text = str(caught.value)
    assert "'slow'" in text
    assert "generator" in text


class Killed(Waiting):
    """Kills its worker in the middle of a batch, once."""

    def __init__(self, kill: WorkerKill) -> None:
        super().__init__(0.02)
        self._kill = kill

    async def first(self, event: Event, ctx: RunnerContext) -> None:
        await super().first(event, ctx)
        if event.get_attr("input")[1] == 2:
            self._kill.reach()


@pytest.mark.spark
@pytest.mark.skipif(bool(spark_missing()), reason=f"A13 on Spark: {spark_missing()}")
def test_a_spark_worker_is_killed_while_agents_wait(
    tmp_path: Path, undisturbed: dict[Any, list[Any]]
) -> None:
    kill = WorkerKill(tmp_path)
    source = TestSource(INPUTS, batch=5)
    agent = Killed(kill)
    run = SPARK.run_to_files(lambda env: applied(env, source, agent), tmp_path)
    assert kill.happened
    assert per_key(run.values) == undisturbed


if __name__ == "__main__":
    main(*sys.argv[1:])


def test_checkpoints_do_not_bypass_the_limit(tmp_path: Path) -> None:
    """An agent at its limit lets a checkpoint complete without waiting for its calls, and reads no more because of it."""
    read: list[int] = []

    def note(value: Any) -> Any:
        read.append(value)
        return value

    async def wait(event: Any, ctx: Any) -> None:
        await asyncio.sleep(3_600)

    env = LOCAL.environment(checkpoint_dir=tmp_path / "checkpoints")
    env.enable_checkpointing(20)
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    agents_env.get_config().set("max-in-flight", 10)
    agent = Agent("full").add_action("wait", [InputEvent], wait)
    stream = env.from_collection(list(range(100_000))).map(note)
    agents_env.from_datastream(stream, lambda value: value).apply(agent).to_list()
    client = agents_env.execute_async("full")
    before = -1
    while before != len(read):
        before = len(read)
        for _ in range(5):
            newest = checkpoints(tmp_path)
            until(lambda newest=newest: checkpoints(tmp_path) > newest)
    client.cancel()
    assert 0 < len(read) < 20_000


def checkpoints(folder: Path) -> int:
    """The number of the newest checkpoint."""
    return max((int(path.stem.split("-")[1]) for path in folder.rglob("chk-*.ckpt")), default=-1)
