"""A run that goes on after a handled failure fares the same when it is repeated after a failure of the job (A14, A16)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import Agent, ErrorEvent, Event, InputEvent, OutputEvent, RunnerContext, action
from emberflow.errors import ActionFailed, StepFailed
from emberflow.streams import DataStream, StreamExecutionEnvironment
from emberflow.testing import LOCAL, LOCAL_SQLITE, SPARK, Host, on_every_host
from tests.support.small_agents import applied


class Tried(Event):
    EVENT_TYPE = "tried"


class Worked(Event):
    EVENT_TYPE = "worked"


def call(folder: str, key: str, what: str, fails_first: bool = False) -> str:
    """A call outside; leaves a line in a file."""
    paid = Path(folder) / f"{key}-{what}"
    made = paid.read_text() if paid.exists() else ""
    paid.write_text(f"{made}x")
    if fails_first and not made:
        raise ConnectionError("not now")
    return what


class Persistent(Agent):
    """Its first call fails once. After a handled failure it makes another call than after a success."""

    def __init__(self, folder: str) -> None:
        super().__init__("persistent")
        self.folder = folder

    @action(InputEvent)
    @staticmethod
    def begin(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(Tried())

    @action(Tried)
    async def attempt(self, event: Tried, ctx: RunnerContext) -> None:
        await ctx.durable_execute_async(call, self.folder, ctx.key, "attempt", True)
        ctx.send_event(Worked())

    @action(Worked)
    async def worked(self, event: Worked, ctx: RunnerContext) -> None:
        ctx.send_event(
            OutputEvent((ctx.key, await ctx.durable_execute_async(call, self.folder, ctx.key, "worked")))
        )

    @action(ErrorEvent)
    async def failed(self, event: ErrorEvent, ctx: RunnerContext) -> None:
        done = await ctx.durable_execute_async(call, self.folder, ctx.key, "failed")
        ctx.send_event(OutputEvent((ctx.key, f"{done}: {event.error_type}")))


class BreaksOnce:
    """A step after the agent: nothing of what the runs did before is committed."""

    def __init__(self, folder: Path) -> None:
        self._marker = folder / "broken"

    def __call__(self, value: Any) -> Any:
        if not self._marker.exists():
            self._marker.touch()
            raise RuntimeError("the step breaks")
        return value


@on_every_host(hosts=[LOCAL, LOCAL_SQLITE])
def test_a_handled_failure_is_the_same_after_a_restart(host: Host, tmp_path: Path) -> None:
    agent, checkpoints = Persistent(str(tmp_path)), tmp_path / "checkpoints"

    def build(env: StreamExecutionEnvironment) -> DataStream:
        return applied(env, env.from_collection([("ann", 1)]), agent).map(BreaksOnce(tmp_path))

    with pytest.raises(StepFailed, match="the step"):
        host.run(build, checkpoint_dir=checkpoints)
    assert host.run(build, checkpoint_dir=checkpoints) == [("ann", "failed: ConnectionError")]
    assert {path.name: path.read_text() for path in tmp_path.glob("ann-*")} == {
        "ann-attempt": "x",
        "ann-failed": "x",
    }


class Careless(Agent):
    """The same without a handler: the input is skipped."""

    def __init__(self, folder: str) -> None:
        super().__init__("careless")
        self.folder = folder

    @action(InputEvent)
    async def attempt(self, event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(
            OutputEvent(
                (ctx.key, await ctx.durable_execute_async(call, self.folder, ctx.key, "attempt", True))
            )
        )


@on_every_host(hosts=[LOCAL, LOCAL_SQLITE])
def test_a_skipped_input_is_skipped_again_after_a_restart(host: Host, tmp_path: Path) -> None:
    agent, checkpoints = Careless(str(tmp_path)), tmp_path / "checkpoints"
    (tmp_path / "bob-attempt").write_text("x")

    def build(env: StreamExecutionEnvironment) -> DataStream:
        stream = env.from_collection([("ann", 1), ("bob", 1)])
        return applied(env, stream, agent, skip=True).map(BreaksOnce(tmp_path))

    with pytest.raises(StepFailed, match="the step"):
        host.run(build, checkpoint_dir=checkpoints)
    assert host.run(build, checkpoint_dir=checkpoints) == [("bob", "attempt")]
    assert (tmp_path / "ann-attempt").read_text() == "x"


class Strict(Careless):
    """The handler makes the job fail."""

    @action(ErrorEvent)
    @staticmethod
    def failed(event: ErrorEvent, ctx: RunnerContext) -> None:
        raise RuntimeError("the handler fails the job")


@on_every_host(hosts=[LOCAL, LOCAL_SQLITE, SPARK])
def test_a_failure_whose_handler_fails_the_job_is_not_repeated_forever(host: Host, tmp_path: Path) -> None:
    agent, checkpoints = Strict(str(tmp_path)), tmp_path / "checkpoints"

    def build(env: StreamExecutionEnvironment) -> DataStream:
        return applied(env, env.from_collection([("ann", 1)]), agent)

    with pytest.raises(ActionFailed, match="the handler fails"):
        host.run(build, checkpoint_dir=checkpoints)
    assert host.run(build, checkpoint_dir=checkpoints) == [("ann", "attempt")]
    assert (tmp_path / "ann-attempt").read_text() == "xx"
