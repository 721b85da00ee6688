"""Agents that actions and models call: results, memory, failures, guards, durability (A24)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentConfigOptions,
    AgentsExecutionEnvironment,
    Budget,
    ErrorEvent,
    Event,
    InputEvent,
    OutputEvent,
    ResourceType,
    Retry,
    RunnerContext,
    Secret,
)
from emberflow.cli.main import main
from emberflow.errors import ActionFailed, BudgetExceeded, InvalidArgument, NotSupported, ResourceFailed
from emberflow.observability.event_reader import read_events
from emberflow.testing import Reply, ScriptedChatModel, run_agent, tool_call
from tests.support.sub_agents import AGENT, boss, counted, doubler, manager

crashes: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    counted.clear()
    crashes.clear()
    ScriptedChatModel.calls_of("manager").clear()


def calling(act: Any, inner: Agent | None = None) -> Agent:
    agent = Agent("caller").add_action("act", [InputEvent], act)
    return agent.add_resource("inner", AGENT, doubler() if inner is None else inner)


def inner(*actions: Any) -> Agent:
    made = Agent("inner")
    for act in actions:
        made.add_action(act.__name__, [InputEvent], act)
    return made


async def call(event: InputEvent, ctx: RunnerContext) -> None:
    ctx.send_event(OutputEvent(await ctx.call_agent("inner", event.input)))


def test_the_result_is_the_output() -> None:
    def say(event: InputEvent, ctx: RunnerContext) -> None:
        for number in range(event.input):
            ctx.send_event(OutputEvent(number))

    assert run_agent(calling(call, inner(say)), [0, 1, 2]).outputs == [None, 0, [0, 1]]


def test_memory_is_its_own_and_lasts() -> None:
    found = run_agent(boss(), [1, 5])

    assert found.outputs == [[2, 4, ["seen"]], [10, 12, ["seen"]]]
    assert run_agent(calling(call), [1, 2]).outputs == [
        {"number": 2, "times": 1},
        {"number": 4, "times": 2},
    ]


def test_memory_of_every_kind_lasts() -> None:
    def write(event: InputEvent, ctx: RunnerContext) -> None:
        memory = ctx.short_term_memory
        place = memory.new_object("place")
        place.set("last", event.input)
        memory.append("seen", event.input)
        memory.set("nothing", None)
        ctx.sensory_memory.set("only", "now")
        ctx.send_event(Event(type="more"))

    def more(event: Event, ctx: RunnerContext) -> None:
        ctx.short_term_memory.append("seen", "more")
        if ctx.short_term_memory.get("seen").count("more") > 1:
            ctx.short_term_memory.delete("nothing")
        ctx.send_event(OutputEvent((ctx.short_term_memory.to_dict(), ctx.sensory_memory.keys())))

    agent = inner(write).add_action("more", ["more"], more)
    first, second = run_agent(calling(call, agent), [1, 2]).outputs
    assert first == ({"place": {"last": 1}, "seen": [1, "more"], "nothing": None}, ["only"])
    assert second == ({"place": {"last": 2}, "seen": [1, "more", 2, "more"]}, ["only"])


def test_a_failure_is_the_callers_to_handle_and_leaves_nothing() -> None:
    async def careful(event: InputEvent, ctx: RunnerContext) -> None:
        try:
            ctx.send_event(OutputEvent((await ctx.call_agent("inner", event.input))["times"]))
        except ActionFailed as error:
            ctx.send_event(OutputEvent(error.message))

    first, failed, last = run_agent(calling(careful), [1, 13, 2]).outputs
    assert (first, last) == (1, 2)
    assert "agent 'inner', action 'report', key 'test'" in failed
    with pytest.raises(ActionFailed, match=r"agent 'caller', action 'act'.*agent 'inner', action 'report'"):
        run_agent(calling(call), [13])


def test_its_own_actions_handle_its_errors() -> None:
    def fails(event: InputEvent, ctx: RunnerContext) -> None:
        raise ValueError("no")

    def sorry(event: ErrorEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(f"sorry: {event.message}"))

    agent = inner(fails).add_action("sorry", [ErrorEvent], sorry)
    assert run_agent(calling(call, agent), [1]).outputs == ["sorry: no"]


def test_its_guards_apply() -> None:
    tries: list[int] = []

    async def flaky(event: InputEvent, ctx: RunnerContext) -> None:
        tries.append(await ctx.call_tool("count", number=7))
        if ctx.attempt < 3:
            raise OSError("again")
        ctx.send_event(OutputEvent(ctx.attempt))

    def instead(event: InputEvent, ctx: RunnerContext) -> None:
        assert ctx.error is not None
        ctx.send_event(OutputEvent(f"instead: {ctx.error.message}"))

    def add(agent: Agent, attempts: int) -> Agent:
        retry = Retry(attempts=attempts, backoff_ms=1)
        agent.add_action("flaky", [InputEvent], flaky, retry=retry, fallback="instead")
        agent.add_action("instead", [], instead)
        return agent.add_resource("count", ResourceType.TOOL, doubler().resources[ResourceType.TOOL]["count"])

    assert run_agent(calling(call, add(Agent("inner"), 3)), [1]).outputs == [3]
    assert run_agent(calling(call, add(Agent("inner"), 2)), [1]).outputs == ["instead: again"]


def test_the_caller_pays() -> None:
    agent = manager().add_budget(Budget(tokens=5, per="run"))
    with pytest.raises(BudgetExceeded):
        run_agent(agent, ["What is 1 + 2?"])

    async def spends(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.spend(tokens=4)
        ctx.send_event(OutputEvent(ctx.budget_left("tokens")))

    paying = calling(call, inner(spends)).add_budget(Budget(tokens=10, per="run"))
    assert run_agent(paying, [1]).outputs == [6]


def test_a_model_calls_an_agent_as_a_tool() -> None:
    assert run_agent(manager(), ["What is 1 + 2?"]).outputs == ["It is 3."]
    first, second = ScriptedChatModel.calls_of("manager")
    assert first.tools == ["adder"]
    assert second.messages[-1].content == "3"
    assert counted == [3]


def test_what_goes_wrong_is_told_to_the_model() -> None:
    wanted = [
        tool_call("adder", input={"a": 1}),
        tool_call("adder"),
        tool_call("adder", input={"a": 1, "b": 2}),
    ]
    agent = manager(Reply(tool_calls=wanted), "It is 3.")
    assert run_agent(agent, ["What is 1 + 2?"]).outputs == ["It is 3."]

    told = [message.content for message in ScriptedChatModel.calls_of("manager")[1].messages[-3:]]
    assert "invalid arguments for the tool 'adder'" in told[0]
    assert "invalid arguments for the tool 'adder'" in told[1]
    assert told[2] == "3"


REFUSED = {
    "an unknown agent": ("iner", ResourceFailed, "no agent named 'iner'; did you mean 'inner'"),
    "a delayed event": ("inner", NotSupported, "sends a delayed event, but was called by another agent"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_work_is_refused(case: str) -> None:
    name, error, message = REFUSED[case]

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        await ctx.call_agent(name, 1)

    def later(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event_after(10, Event(type="late"))

    with pytest.raises(error, match=message):
        run_agent(calling(act, inner(later)), [1])


def test_a_plain_action_cannot_wait_for_an_agent() -> None:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.call_agent("inner", 1)

    with pytest.raises(InvalidArgument, match="cannot wait for the agent 'inner': it is a plain function"):
        run_agent(calling(act), [1])


def test_a_durable_call_cannot_call_an_agent() -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        async def inside() -> Any:
            return await ctx.call_agent("inner", 1)

        await ctx.durable_execute_async(inside)

    with pytest.raises(InvalidArgument, match="'inner' is called inside a durable call"):
        run_agent(calling(act), [1])


def crash_once(where: str) -> None:
    if where not in crashes:
        crashes.append(where)
        raise RuntimeError(f"a crash {where}")


@pytest.mark.parametrize("model", [False, True])
def test_calls_of_a_sub_agent_are_answered_from_the_log(model: bool, tmp_path: Path) -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        if model:
            answer = (await ctx.chat("_default_chat_model", "What is 1 + 2?")).content
        else:
            agents = await asyncio.gather(*[ctx.call_agent("doubler", number) for number in (1, 2, 3)])
            answer = [item["number"] for item in agents]
        crash_once("after all")
        ctx.send_event(OutputEvent(answer))

    def run() -> list[Any]:
        agent = manager() if model else boss()
        caller = Agent("caller").add_action("act", [InputEvent], act)
        for kind, named in agent.resources.items():
            for name, value in named.items():
                caller.add_resource(name, kind, value)
        env = AgentsExecutionEnvironment.get_execution_environment(
            engine="local", checkpoint_dir=tmp_path / "state", parallelism=1
        )
        env.get_config().set(AgentConfigOptions.BASE_LOG_DIR, str(tmp_path / "log"))
        found = env.from_list([{"key": "k", "value": 1}]).apply(caller).to_list()
        env.execute()
        return [item["k"] for item in found]

    with pytest.raises(ActionFailed, match="a crash after all"):
        run()
    made = list(counted)
    expected: Any = "It is 3." if model else [2, 4, 6]
    assert made == ([3] if model else [1, 2, 3])
    asked = len(ScriptedChatModel.calls_of("manager"))

    assert run() == [expected]
    assert counted == made
    assert len(ScriptedChatModel.calls_of("manager")) == asked
    kinds = [
        line["kind"]
        for line in read_events(tmp_path / "log")
        if line["type"].startswith(("tool", "chat model"))
    ]
    assert sorted(kinds) == sorted(["call", "reused"] * 3)


def test_a_run_with_its_agents_models_and_tools_is_one_tree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    run_agent(manager(), ["What is 1 + 2?"], options={AgentConfigOptions.BASE_LOG_DIR: str(tmp_path)})
    assert main(["events", "show", str(tmp_path), "--tree"]) == 0
    shown = capsys.readouterr().out
    lines = [line.lstrip(" │├└─") for line in shown.splitlines()]

    assert sum(line.startswith("run ") for line in lines) == 1
    assert "3 calls" in lines[0]
    names = [
        "start_action()",
        "chat model '_default_chat_model'",
        "adder: _input_event",
        "tool 'count'",
        "adder: _output_event",
    ]
    found = [next(at for at, line in enumerate(lines) if line.startswith(name)) for name in names]
    assert found == sorted(found)
    assert any(line.startswith("chat model '_default_chat_model'") and "14 tokens" in line for line in lines)


def test_calls_in_the_log_hide_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_TOKEN", "s3cr3t-value")

    class Service:
        def __init__(self, token: str) -> None:
            self.token = token

    async def leak(event: InputEvent, ctx: RunnerContext) -> None:
        token = ctx.get_resource("service", ResourceType.VECTOR_STORE).token
        try:
            await ctx.call_tool("tell", what=f"the token is {token}", password="hidden-one")
        except ValueError:
            ctx.send_event(OutputEvent("told"))

    def tell(what: str, password: str) -> None:
        raise ValueError(what)

    from emberflow.agents import ResourceDescriptor

    agent = (
        Agent("leaky")
        .add_action("leak", [InputEvent], leak)
        .add_resource(
            "service", ResourceType.VECTOR_STORE, ResourceDescriptor(clazz=Service, token=Secret("THE_TOKEN"))
        )
        .add_resource("tell", ResourceType.TOOL, tell)
    )
    assert run_agent(agent, [1], options={AgentConfigOptions.BASE_LOG_DIR: str(tmp_path)}).outputs == ["told"]
    (entry,) = [line for line in read_events(tmp_path) if line["kind"] == "call"]

    assert entry["type"] == "tool 'tell'"
    assert entry["attributes"]["arguments"] == {"what": "the token is ***", "password": "***"}
    text = "".join(path.read_text() for path in tmp_path.rglob("*.jsonl"))
    assert "s3cr3t-value" not in text
    assert "hidden-one" not in text
