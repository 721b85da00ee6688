"""The log of durable calls fails: that is the job's trouble, whatever an action makes of it (A13)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    AgentsExecutionEnvironment,
    ErrorEvent,
    InputEvent,
    OutputEvent,
    Retry,
    RunnerContext,
)
from emberflow.engines.call_log import StoredCallLog
from emberflow.errors import CallLogFailed
from emberflow.operators.durable import CallRecord
from tests.unit.operators.memory_log import MemoryLog
from tests.unit.operators.test_agent_calls import AgentHarness, Turn


def harness(act: Any, log: MemoryLog, restore: bytes | None = None) -> AgentHarness:
    async def tell(event: ErrorEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent((event.error_type, event.message)))

    retry = Retry(attempts=3, backoff_ms=0)
    agent = Agent("a").add_action("act", [InputEvent], act, retry=retry)
    made = AgentHarness(agent.add_action("tell", [ErrorEvent], tell), restore=restore)
    made.head.log = log  # type: ignore[assignment]
    return made


class FullLog(MemoryLog):
    """Answers are not written while the disk is full."""

    full = True

    def write_now(self, record: CallRecord) -> None:
        if self.full and not record.call_id.endswith("end"):
            raise CallLogFailed("the log of durable calls cannot be written", way_out="free space")
        super().write_now(record)


async def refuse(self: StoredCallLog, record: CallRecord) -> None:
    raise CallLogFailed("the log of durable calls cannot be written", way_out="free space")


async def as_it_is(ctx: RunnerContext) -> Any:
    return await ctx.durable_execute_async(max, 1, 2)


async def in_a_group(ctx: RunnerContext) -> Any:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(as_it_is(ctx))
    return task.result()


async def wrapped(ctx: RunnerContext) -> Any:
    try:
        return await as_it_is(ctx)
    except Exception as error:
        raise ValueError("no answer") from error


@pytest.mark.parametrize("ask", [as_it_is, wrapped])
def test_a_log_that_fails_is_no_outcome_of_an_action(ask: Any) -> None:
    """What was let go leaves nothing behind, and is begun again when there is room: no retry, no error event."""

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        await Turn()
        ctx.send_event(OutputEvent((await ask(ctx), ctx.attempt)))

    log = FullLog()
    made = harness(act, log)
    made.send([("k", 1)])
    data = made.park()
    made.calls.finish_all()
    made.close()
    assert not log.records
    log.full = False
    made = harness(act, log, data)
    made.resume()
    made.calls.finish_all()
    assert made.values == [(2, 1)]
    made.close()


@pytest.mark.parametrize("ask", [as_it_is, in_a_group, wrapped])
def test_a_log_that_fails_stops_the_job_whatever_the_action_makes_of_it(ask: Any, tmp_path: Path) -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent((await ask(ctx), ctx.attempt)))

    env = AgentsExecutionEnvironment.get_execution_environment(
        engine="local", parallelism=1, checkpoint_dir=str(tmp_path)
    )
    env.get_config().set(AgentExecutionOptions.ON_ERROR, "skip")
    agent = Agent("a").add_action("act", [InputEvent], act, retry=Retry(attempts=2, backoff_ms=0))
    env.from_list([{"key": "k", "value": 1}]).apply(agent).to_list()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StoredCallLog, "write", refuse)
        with pytest.raises(CallLogFailed, match="the log of durable calls cannot be written"):
            env.execute()
