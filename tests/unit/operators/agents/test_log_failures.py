"""The durable call log fails: that is a failure of the job, however an action handles it (A13)."""

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
from emberflow.approvals.answering import questions
from emberflow.durable.log import StoredCallLog
from emberflow.errors import ApprovalsFailed, CallLogFailed
from emberflow.operators.agents.calls.durable_calls import ActionCalls, CallRecord
from tests.support.agent_harness import AgentHarness, Turn
from tests.support.memory_log import MemoryLog


def harness(act: Any, log: MemoryLog, restore: bytes | None = None) -> AgentHarness:
    async def tell(event: ErrorEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent((event.error_type, event.message)))

    retry = Retry(attempts=3, backoff_ms=0)
    agent = Agent("a").add_action("act", [InputEvent], act, retry=retry)
    made = AgentHarness(agent.add_action("tell", [ErrorEvent], tell), restore=restore)
    made.head.runtime.log = log
    return made


class FullLog(MemoryLog):
    """Answers are not written while the disk is full."""

    full = True

    def write_now(self, record: CallRecord) -> None:
        if self.full and not record.call_id.endswith("end"):
            raise CallLogFailed("the durable call log cannot be written", way_out="free space")
        super().write_now(record)


async def refuse(self: StoredCallLog, record: CallRecord) -> None:
    raise CallLogFailed("the durable call log cannot be written", way_out="free space")


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
def test_a_failure_of_the_log_is_not_an_outcome_of_an_action(ask: Any) -> None:
    """A detached action leaves nothing, and is started again when there is space: no retry, no error event."""

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
def test_a_failure_of_the_log_stops_the_job_however_the_action_handles_it(ask: Any, tmp_path: Path) -> None:
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
        with pytest.raises(CallLogFailed, match="the durable call log cannot be written"):
            env.execute()


def test_failures_of_the_log_raised_by_a_call_are_not_recorded() -> None:
    """A person's answer that cannot be read: the call is made again when the fault is gone."""

    async def broken() -> Any:
        raise ApprovalsFailed("the answer is corrupted", way_out="restore it")

    async def whole() -> Any:
        return "approve"

    log = MemoryLog()
    for make, expected in ((broken, ApprovalsFailed), (whole, None)):
        calls = ActionCalls(log, "a/1/", restarts=False)
        call = calls.next(max, (1, 2), {})
        if expected is None:
            assert asyncio.run(calls.run(call, make, None)) == "approve"
        else:
            with pytest.raises(expected):
                asyncio.run(calls.run(call, make, None))
            assert not log.records
            assert not calls.failed


def test_a_question_stays_open_when_the_log_fails(tmp_path: Path) -> None:
    """It may have been answered by now, and a later start starts the action again."""

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        asked = asyncio.ensure_future(ctx.ask_human("Pay?"))
        while not questions(tmp_path):  # noqa: ASYNC110 (the file is all that tells)
            await asyncio.sleep(0.01)
        try:
            await as_it_is(ctx)
        finally:
            asked.cancel()

    env = AgentsExecutionEnvironment.get_execution_environment(
        engine="local", parallelism=1, checkpoint_dir=str(tmp_path)
    )
    agent = Agent("a").add_action("act", [InputEvent], act, retry=Retry(attempts=2, backoff_ms=0))
    env.from_list([{"key": "k", "value": 1}]).apply(agent).to_list()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StoredCallLog, "write", refuse)
        with pytest.raises(CallLogFailed):
            env.execute()
    assert len(questions(tmp_path)) == 1
