"""The values of secrets in what is observed of an agent: its log messages and its event log."""

from __future__ import annotations

import gc
import logging
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentConfigOptions,
    AgentExecutionOptions,
    AgentsExecutionEnvironment,
    ErrorHandling,
    InputEvent,
    OutputEvent,
    ResourceDescriptor,
    ResourceType,
    RunnerContext,
    Secret,
)
from emberflow.operators.agents.resources.resource_cache import ResourceCache
from emberflow.plan.agents.agent_plan import AgentPlan
from tests.support.event_logs import lines_below

KEY = "sk-of-the-resource-314159"


class Service:
    """Repeats its key where it should not."""

    def __init__(self, api_key: str) -> None:
        self.api_key = api_key

    def close(self) -> None:
        raise ConnectionError(f"no goodbye for {self.api_key}")


def look_up(order: dict[str, Any]) -> str:
    """Finds an order."""
    return "found"


def fail(order: dict[str, Any]) -> str:
    """Finds none."""
    raise LookupError(f"no order {order}")


async def act(event: InputEvent, ctx: RunnerContext) -> None:
    key = ctx.get_resource("service", ResourceType.VECTOR_STORE).api_key
    await ctx.call_tool("look_up", order={"note": [f"asked with {key}"]})
    if event.input == "fail":
        await ctx.call_tool("fail", order={"note": key})
    ctx.send_event(OutputEvent({"said": [f"my key is {key}"]}))


def agent() -> Agent:
    made = Agent("careless").add_action("act", [InputEvent], act)
    described = ResourceDescriptor(clazz=Service, api_key=Secret("SERVICE_KEY"))
    made.add_resource("service", ResourceType.VECTOR_STORE, described)
    return made.add_resource("look_up", ResourceType.TOOL, look_up).add_resource(
        "fail", ResourceType.TOOL, fail
    )


def observe(event: Any, context: Any) -> None:
    if event.type == OutputEvent.EVENT_TYPE:
        raise ValueError(f"cannot show {event.attributes}")


@pytest.mark.parametrize("line_break", ["", "\n"])
def test_neither_the_log_nor_the_event_log_contains_secrets(
    line_break: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SERVICE_KEY", KEY + line_break)
    env = AgentsExecutionEnvironment.get_execution_environment(engine="local", parallelism=1)
    config = env.get_config()
    config.set(AgentConfigOptions.BASE_LOG_DIR, str(tmp_path))
    config.set(AgentConfigOptions.EVENT_LISTENERS, [observe])
    config.set(AgentExecutionOptions.ON_ERROR, ErrorHandling.SKIP)
    inputs = [{"key": value, "value": value} for value in ("fine", "fail")]
    outputs = env.from_list(inputs).apply(agent()).to_list()
    with caplog.at_level(logging.WARNING):
        env.execute("careless")
    (output,) = outputs
    assert output == {"fine": {"said": [f"my key is {KEY}{line_break}"]}}, "the data itself is not changed"
    assert KEY not in caplog.text
    for said in (
        "no goodbye for ***",
        "an event listener of agent 'careless' failed",
        "the input is skipped",
    ):
        assert said in caplog.text
    assert KEY.encode() not in b"".join(path.read_bytes() for path in tmp_path.rglob("*.jsonl"))
    lines = lines_below(tmp_path)
    by_kind = {kind: [line for line in lines if line["kind"] == kind] for kind in ("event", "call", "error")}
    assert f"my key is ***{line_break}" in [
        line["attributes"]["output"]["said"][0] for line in by_kind["event"] if "output" in line["attributes"]
    ]
    arguments = [line["attributes"]["arguments"] for line in by_kind["call"]]
    assert {"order": {"note": [f"asked with ***{line_break}"]}} in arguments
    assert "no order {'note': '***" in by_kind["error"][0]["error"]


LITERAL = "tok-of-a-command-271828"


async def pass_on(event: InputEvent, ctx: RunnerContext) -> None:
    key = ctx.get_resource("service", ResourceType.VECTOR_STORE).api_key
    note = {"note": f"asked with {key} and {LITERAL}"}
    ctx.send_event(OutputEvent(await ctx.call_agent("inner", note)))


async def receive(event: InputEvent, ctx: RunnerContext) -> None:
    found = await ctx.call_tool("look_up", order=event.input)
    try:
        await ctx.call_tool("fail", order=event.input)
    except LookupError:
        await ctx.durable_execute_async(look_up, event.input)
    ctx.send_event(OutputEvent([found, event.input]))


class Command:
    """Gets its arguments like a program."""

    def __init__(self, args: list[str]) -> None:
        self.args = args


def test_secrets_passed_to_a_sub_agent_are_masked_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own resources were created with no secrets; one secret is a literal of a resource that nobody has created."""
    monkeypatch.setenv("SERVICE_KEY", KEY)
    inner = Agent("inner").add_action("receive", [InputEvent], receive)
    inner.add_resource("look_up", ResourceType.TOOL, look_up).add_resource("fail", ResourceType.TOOL, fail)
    outer = Agent("outer").add_action("pass on", [InputEvent], pass_on)
    outer.add_resource("inner", ResourceType.AGENT, inner).add_resource(
        "service", ResourceType.VECTOR_STORE, ResourceDescriptor(clazz=Service, api_key=Secret("SERVICE_KEY"))
    )
    outer.add_resource(
        "command",
        ResourceType.VECTOR_STORE,
        ResourceDescriptor(clazz=Command, args=["-v", "--token", LITERAL]),
    )
    env = AgentsExecutionEnvironment.get_execution_environment(
        engine="local", parallelism=1, checkpoint_dir=tmp_path / "state"
    )
    env.get_config().set(AgentConfigOptions.BASE_LOG_DIR, str(tmp_path / "logs"))
    outputs = env.from_list([{"key": "k", "value": "go"}]).apply(outer).to_list()
    env.execute()
    assert outputs == [{"k": ["found", {"note": f"asked with {KEY} and {LITERAL}"}]}]
    logged = b"".join(path.read_bytes() for path in (tmp_path / "logs").rglob("*.jsonl"))
    recorded = b"".join(path.read_bytes() for path in (tmp_path / "state").rglob("*.calls"))
    assert logged.count(b"asked with *** and ***") >= 4
    assert b"asked with *** and ***" in recorded
    for secret in (KEY, LITERAL):
        assert secret.encode() not in logged + recorded


def test_the_log_masks_secrets_as_long_as_their_resources_exist(caplog: pytest.LogCaptureFixture) -> None:
    cache = ResourceCache(AgentPlan.from_agent(agent()))
    log = logging.getLogger("emberflow.agents")
    cache.secrets.add(KEY)
    log.warning("%s of %d%%", KEY, 5)
    log.warning(f"100% of {KEY}")
    del cache
    gc.collect()
    log.warning("now %s", KEY)
    assert caplog.messages == ["*** of 5%", "100% of ***", f"now {KEY}"]
