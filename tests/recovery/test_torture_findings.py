"""Regression tests for what the torture test found, each with a minimal program."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentsExecutionEnvironment,
    InputEvent,
    OutputEvent,
    RunnerContext,
    action,
)
from emberflow.durable.log import StoredCallLog
from emberflow.durable.stores.file_store import FileCallStore
from emberflow.engines.job.call_service import ThreadCalls
from emberflow.engines.spark.driver.offsets import OffsetPlanner
from emberflow.engines.spark.wire.job_spec import dump_spec
from emberflow.errors import ActionFailed, CheckpointUnusable
from emberflow.event_time.clock import SystemClock
from emberflow.operators.agents.calls.durable_calls import RETURNED, CallRecord
from emberflow.streams import DataGeneratorSource, DiscardingSink, RateLimiterStrategy
from emberflow.testing import LOCAL, literal_files, read_committed
from tests.support.recovery.billing import Billing, billed
from tests.support.recovery.billing import bill as charge
from tests.support.spark_specs import spec_of

HANG_GUARD_S = 300
COUNT = 20


def test_a_waiting_call_is_not_garbage_collected() -> None:
    """A call may wait for an object that only it references, such as the reader of a connection."""
    calls = ThreadCalls()
    begun = threading.Event()
    waits_for: list[weakref.ref[asyncio.Future[int]]] = []
    ended: list[Any] = []

    async def wait() -> int:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        waits_for.append(weakref.ref(future))
        asyncio.get_running_loop().call_soon(begun.set)
        return await future

    calls.start("step", 1, wait, lambda result, error: ended.append((result, error)))
    assert begun.wait(HANG_GUARD_S)
    for _ in range(3):
        gc.collect()
    future = waits_for[0]()
    assert future is not None, "the call was collected while it waited"
    future.get_loop().call_soon_threadsafe(future.set_result, 7)
    calls.wait_while(lambda: not ended)
    assert ended == [(7, None)]


def paced_source() -> DataGeneratorSource:
    return DataGeneratorSource(
        lambda index: index, count=COUNT, rate_limiter_strategy=RateLimiterStrategy.per_second(100)
    )


class SetBack:
    """The system's clock, until it is set back by an hour."""

    def __init__(self) -> None:
        self.back_ms = 0

    def now_ms(self) -> int:
        return SystemClock().now_ms() - self.back_ms


def test_a_clock_set_back_does_not_stop_a_local_source() -> None:
    clock = SetBack()
    seen: list[int] = []

    def note(value: int) -> int:
        seen.append(value)
        if value == 5:
            clock.back_ms = 3_600_000
        return value

    env = LOCAL.environment(options={"clock": clock})
    env.add_source(paced_source()).map(note).sink_to(DiscardingSink())
    client = env.execute_async("set back")
    deadline = time.monotonic() + HANG_GUARD_S
    while len(seen) < COUNT and time.monotonic() < deadline:
        time.sleep(0.01)
    client.cancel()
    assert seen == list(range(COUNT))


def test_a_clock_set_back_does_not_stop_the_planner_of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    env = LOCAL.environment()
    env.add_source(paced_source()).sink_to(DiscardingSink())
    spec = spec_of(
        env.job_graph(),
        job_id="set back",
        start_positions={0: [[position, False] for position in paced_source().start(1)]},
        max_records=3,
    )
    planner = OffsetPlanner(dump_spec(spec), 0)
    offset = planner.latest(planner.initial())
    now_s = time.time
    monkeypatch.setattr(time, "time", lambda: now_s() - 3_600)
    deadline = time.monotonic() + HANG_GUARD_S
    while not offset["channels"][0][1] and time.monotonic() < deadline:
        offset = planner.latest(offset)
    assert offset["channels"][0][1], f"the source stands still at {offset}"


def bill(folder: Path, checkpoint_ms: int) -> None:
    """Inputs at a rate; the agent crashes once between the two calls of input 5."""
    env = LOCAL.environment(checkpoint_dir=folder / "checkpoints")
    env.enable_checkpointing(checkpoint_ms)
    source = DataGeneratorSource(
        lambda index: ("a", index + 1),
        count=8,
        rate_limiter_strategy=RateLimiterStrategy.per_second(10),
        parallelism=1,
    )
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    inputs = agents_env.from_datastream(env.add_source(source), lambda value: value[0])
    inputs.apply(Billing(folder, "raise")).to_datastream().sink_to(literal_files(folder / "output")).uid(
        "out"
    )
    env.execute("billing")


def test_calls_stay_recorded_until_their_input_is_read_again(tmp_path: Path) -> None:
    """The second start commits more often than the first: its first checkpoint covers less than the work done before."""
    with pytest.raises(ActionFailed, match="a crash between two calls"):
        bill(tmp_path, checkpoint_ms=60_000)
    bill(tmp_path, checkpoint_ms=20)
    assert read_committed(tmp_path / "output") == [("a", n * 10, (n + 1_000) * 10) for n in range(1, 9)]
    assert sorted(item for item, _ in billed(tmp_path)) == sorted([*range(1, 9), *range(1_001, 1_009)])


def test_calls_after_a_parked_action_stay_recorded(tmp_path: Path) -> None:
    """The first attempt at a batch got further than the second, which reached its deadline at an earlier action."""
    call = CallRecord("step/key-2/2/1", "module.function", "digest", "function()", RETURNED, 7)
    first = StoredCallLog(FileCallStore(tmp_path), claims=True)
    first.begin(1)
    first.write_now(call)
    first.close()
    second = StoredCallLog(FileCallStore(tmp_path), claims=True)
    second.begin(1)
    second.park({"step/key-2/1/": 0})
    for epoch in range(2, 5):
        second.begin(epoch)
        assert second.find(call.call_id) == call


@pytest.mark.parametrize("dead_name", ["a-dead", "z-dead"])
def test_dropping_the_claim_of_a_dead_process_keeps_other_claims(dead_name: str, tmp_path: Path) -> None:
    """A worker was killed while running an action, and another one had started it again when a third one read both parts."""
    dead, alive, newcomer = (FileCallStore(tmp_path) for _ in range(3))
    dead.owner, alive.owner = dead_name, "m-alive"
    first = StoredCallLog(dead, claims=True)
    assert first.claim("step/key-1/1/")
    first.close()
    second = StoredCallLog(alive, claims=True)
    second.refresh()
    assert second.claim("step/key-1/1/")
    second.flush()
    third = StoredCallLog(newcomer, claims=True)
    third.begin(1)
    assert not third.claim("step/key-1/1/")
    second.ended("step/key-1/1/")
    second.flush()
    third.begin(2)
    assert third.claim("step/key-1/1/")
    second.close()
    third.close()


class LateEnd(Agent):
    """Its call is recorded; the action ends after a checkpoint has failed."""

    def __init__(self, folder: Path, failed: list[str]) -> None:
        super().__init__("late")
        self.folder = str(folder)
        self.failed = failed

    def __deepcopy__(self, memo: Any) -> LateEnd:
        return self

    @action(InputEvent)
    async def act(self, event: InputEvent, ctx: RunnerContext) -> None:
        value = await ctx.durable_execute_async(charge, self.folder, event.input)
        while not self.failed:  # noqa: ASYNC110 - it is to end right behind the failure
            await asyncio.sleep(0)
        ctx.send_event(OutputEvent(value))


def test_a_failed_checkpoint_that_exists_does_not_drop_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder's sync fails after the rename: the job stops, and starts again from exactly this checkpoint."""
    failed: list[str] = []
    fsync = os.fsync

    def failing(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if not failed and path.endswith("checkpoints/local") and (tmp_path / "billed").exists():
            failed.append(path)
            raise OSError(errno.EIO, "the disk does not answer")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", failing)

    def run() -> None:
        env = LOCAL.environment(checkpoint_dir=tmp_path / "checkpoints").enable_checkpointing(50)
        agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
        inputs = agents_env.from_datastream(env.from_collection([1, 2, 3]), lambda value: value)
        outputs = inputs.apply(LateEnd(tmp_path, failed)).to_datastream()
        outputs.sink_to(literal_files(tmp_path / "output")).uid("out")
        env.execute("late")

    with pytest.raises(CheckpointUnusable):
        run()
    assert failed
    run()
    assert sorted(read_committed(tmp_path / "output")) == [10, 20, 30]
    assert sorted(item for item, _ in billed(tmp_path)) == [1, 2, 3]
