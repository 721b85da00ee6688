"""What followed from a failure and is paid for is not paid again: a repeated run takes the same way (A14, A16, A24)."""

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
    ResourceType,
    Retry,
    RunnerContext,
    action,
)
from emberflow.errors import ActionFailed, ReplayMismatch
from emberflow.streams import DataStream, StreamExecutionEnvironment
from emberflow.testing import LOCAL, LOCAL_SQLITE, SPARK, Host, on_every_host
from tests.support.small_agents import applied


def pay(folder: str, what: str, *, fails_first: bool = False) -> str:
    """A call outside; leaves a mark in a file."""
    paid = Path(folder) / f"{what}.paid"
    made = paid.read_text() if paid.exists() else ""
    paid.write_text(f"{made}x")
    if fails_first and not made:
        raise ConnectionError(f"no {what} now")
    return what


async def pay_slowly(folder: str, what: str) -> str:
    """Never ends the first time."""
    try:
        return pay(folder, what, fails_first=True)
    except ConnectionError:
        await asyncio.Event().wait()
        raise


def payments(folder: Path) -> dict[str, int]:
    return {path.stem: len(path.read_text()) for path in folder.glob("*.paid")}


class Inner(Agent):
    """Apologizes if its call fails."""

    def __init__(self, folder: str) -> None:
        super().__init__("inner")
        self.folder = folder

    @action(InputEvent)
    async def attempt(self, event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(
            OutputEvent(await ctx.durable_execute_async(pay, self.folder, "inner", fails_first=True))
        )

    @action(ErrorEvent)
    async def failed(self, event: ErrorEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(await ctx.durable_execute_async(pay, self.folder, "sorry")))


async def with_a_substitute(folder: str, ctx: RunnerContext) -> list[str]:
    """Calls and an agent; the last call fails the first time, when everything before it is paid for."""
    try:
        slow = await asyncio.wait_for(ctx.durable_execute_async(pay_slowly, folder, "slow"), 0.1)
    except TimeoutError:
        slow = await ctx.durable_execute_async(pay, folder, "quick")
    try:
        first = await ctx.durable_execute_async(pay, folder, "primary", fails_first=True)
    except ConnectionError:
        first = await ctx.durable_execute_async(pay, folder, "secondary")
    inner = await ctx.call_agent("inner", "go")
    return [slow, first, inner, await ctx.durable_execute_async(pay, folder, "last", fails_first=True)]


EXPECTED = ["quick", "secondary", "sorry", "last"]
PAID = {"slow": 1, "quick": 1, "primary": 1, "secondary": 1, "inner": 1, "sorry": 1, "last": 2}


class Outer(Agent):
    """Its first action fails once, without a durable call; the handler's calls are as above."""

    def __init__(self, folder: str) -> None:
        super().__init__("outer")
        self.folder = folder
        self.add_resource("inner", ResourceType.AGENT, Inner(folder))

    @action(InputEvent)
    async def begin(self, event: InputEvent, ctx: RunnerContext) -> None:
        pay(self.folder, "begin", fails_first=True)
        ctx.send_event(OutputEvent(await ctx.durable_execute_async(pay, self.folder, "not needed")))

    @action(ErrorEvent)
    async def failed(self, event: ErrorEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(await with_a_substitute(self.folder, ctx)))


@on_every_host(hosts=[LOCAL, LOCAL_SQLITE, SPARK])
def test_a_repeated_run_takes_the_way_that_it_has_paid_for(host: Host, tmp_path: Path) -> None:
    agent, checkpoints = Outer(str(tmp_path)), tmp_path / "checkpoints"

    def build(env: StreamExecutionEnvironment) -> DataStream:
        return applied(env, env.from_collection([("ann", 1)]), agent)

    with pytest.raises(ActionFailed, match="no last now"):
        host.run(build, checkpoint_dir=checkpoints)
    assert host.run(build, checkpoint_dir=checkpoints) == [EXPECTED]
    assert payments(tmp_path) == {"begin": 1, **PAID}


def run(act: Any, folder: Path, *, on_error: str = "fail", agent: Agent | None = None, **guards: Any) -> Any:
    env = AgentsExecutionEnvironment.get_execution_environment(
        engine="local", checkpoint_dir=folder / "checkpoints", parallelism=1
    )
    env.get_config().set(AgentExecutionOptions.ON_ERROR, on_error)
    agent = (agent or Agent("outer")).add_action("act", [InputEvent], act, **guards)
    agent.add_resource("inner", ResourceType.AGENT, Inner(str(folder)))
    outputs = env.from_list([{"key": "k", "value": 1}]).apply(agent).to_list()
    env.execute()
    return [item["k"] for item in outputs]


def test_so_does_a_further_attempt(tmp_path: Path) -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(await with_a_substitute(str(tmp_path), ctx)))

    assert run(act, tmp_path, retry=Retry(attempts=2, backoff_ms=1)) == [EXPECTED]
    assert payments(tmp_path) == PAID


def test_a_further_attempt_makes_all_calls_again_that_failed_together(tmp_path: Path) -> None:
    """Nothing that was paid for followed from their failures."""

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        first = await ctx.durable_execute_async(pay, str(tmp_path), "first")
        try:
            await ctx.durable_execute_async(pay, str(tmp_path), "primary", fails_first=True)
        except ConnectionError:
            await ctx.durable_execute_async(pay, str(tmp_path), "secondary", fails_first=True)
        ctx.send_event(OutputEvent(first))

    assert run(act, tmp_path, retry=Retry(attempts=2, backoff_ms=1)) == ["first"]
    assert payments(tmp_path) == {"first": 1, "primary": 2, "secondary": 1}


async def cleans_up(folder: str, ctx: RunnerContext) -> str:
    try:
        return await ctx.durable_execute_async(pay_slowly, folder, "slow")
    finally:
        await ctx.durable_execute_async(pay, folder, "clean up")


def test_a_call_that_a_time_limit_of_the_action_ended_is_made_again(tmp_path: Path) -> None:
    """The action has not given it up to do something else, whatever it does on its way out."""

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(await cleans_up(str(tmp_path), ctx)))

    assert run(act, tmp_path, retry=Retry(attempts=2, backoff_ms=1), timeout_ms=1_000) == ["slow"]
    assert payments(tmp_path) == {"slow": 2, "clean up": 1}


class Unreadable:
    """Can be stored, but not read."""

    def __reduce__(self) -> Any:
        return int, ("not a number",)


async def unreadable(folder: str) -> Any:
    pay(folder, "unreadable")
    return [Unreadable()]


def test_an_answer_that_cannot_be_read_back_is_not_paid_for_in_every_attempt(tmp_path: Path) -> None:
    """Nor recorded: it would make the whole log unreadable. Nothing that is recorded followed from it, so the second start tries
    again."""

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        await ctx.durable_execute_async(unreadable, str(tmp_path))

    async def instead(event: InputEvent, ctx: RunnerContext) -> None:
        assert ctx.error is not None
        ctx.send_event(OutputEvent((ctx.error.error_type, ctx.error.attempts)))
        pay(str(tmp_path), "last", fails_first=True)

    def once() -> Any:
        agent = Agent("outer").add_action("instead", [], instead)
        return run(act, tmp_path, agent=agent, retry=Retry(attempts=3, backoff_ms=1), fallback="instead")

    with pytest.raises(ActionFailed, match="no last now"):
        once()
    assert once() == [("NotSerializable", 1)]
    assert payments(tmp_path) == {"unreadable": 2, "last": 2}


# changed code


def stop_after_paying(tmp_path: Path) -> None:
    async def old(event: InputEvent, ctx: RunnerContext) -> None:
        await ctx.durable_execute_async(pay, str(tmp_path), "old")
        raise RuntimeError("the job stops")

    with pytest.raises(ActionFailed, match="the job stops"):
        run(old, tmp_path)


@pytest.mark.parametrize("handled_by", ["fallback", "error events", "skip", "the action"])
def test_changed_code_is_reported_whoever_handles_failures(tmp_path: Path, handled_by: str) -> None:
    """A handler would pay for a substitute of what is recorded, and a skipped input would lose it."""
    stop_after_paying(tmp_path)

    async def changed(event: InputEvent, ctx: RunnerContext) -> None:
        try:
            await ctx.durable_execute_async(pay, str(tmp_path), "new")
        except Exception:
            if handled_by != "the action":
                raise
            # As careless code does; it must not pay for anything either.
            await ctx.durable_execute_async(pay, str(tmp_path), "instead")

    async def instead(event: Any, ctx: RunnerContext) -> None:
        await ctx.durable_execute_async(pay, str(tmp_path), "instead")

    agent = Agent("outer")
    if handled_by in ("fallback", "error events"):
        agent.add_action("instead", [] if handled_by == "fallback" else [ErrorEvent], instead)
    with pytest.raises(
        ReplayMismatch, match=r"was .*pay\(.*'old'\) when it was recorded, and is .*pay\(.*'new'\) now"
    ):
        run(
            changed,
            tmp_path,
            agent=agent,
            on_error="skip" if handled_by == "skip" else "fail",
            fallback="instead" if handled_by == "fallback" else None,
        )
    assert payments(tmp_path) == {"old": 1}


def test_an_action_that_is_inserted_before_others_is_reported(tmp_path: Path) -> None:
    """It would take the place of the next one, whose answers would not be found."""
    stop_after_paying(tmp_path)

    async def old(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(await ctx.durable_execute_async(pay, str(tmp_path), "old")))

    def inserted(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.short_term_memory.set("seen", True)

    agent = Agent("outer").add_action("inserted", [InputEvent], inserted)
    with pytest.raises(
        ReplayMismatch, match=r"action 'inserted' made no durable call; .* made .*pay\(.*'old'\)"
    ):
        run(old, tmp_path, agent=agent)
    assert payments(tmp_path) == {"old": 1}
    assert run(old, tmp_path) == ["old"]
    assert payments(tmp_path) == {"old": 1}


def test_an_action_that_catches_the_report_fails_all_the_same(tmp_path: Path) -> None:
    stop_after_paying(tmp_path)

    async def changed(event: InputEvent, ctx: RunnerContext) -> None:
        try:
            await ctx.durable_execute_async(pay, str(tmp_path), "new")
        except Exception:
            ctx.send_event(OutputEvent("guessed"))

    with pytest.raises(ReplayMismatch):
        run(changed, tmp_path)
    assert payments(tmp_path) == {"old": 1}
