"""Models and tools in actions: their calls are durable automatically, under the resource's name (A14)."""

from __future__ import annotations

import asyncio
import contextvars
import pickle
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    AgentsExecutionEnvironment,
    BaseChatModelSetup,
    Budget,
    ChatMessage,
    FunctionTool,
    InputEvent,
    MessageRole,
    OutputEvent,
    Prompt,
    ResourceDescriptor,
    ResourceType,
    RunnerContext,
    Tool,
)
from emberflow.agents.models.chat_model import BaseChatModelConnection
from emberflow.errors import ActionFailed, BudgetExceeded, ReplayMismatch
from emberflow.operators.agents.resources.durable_views import inside_a_call
from emberflow.plan.agents.options import ReplayMismatchHandling
from emberflow.testing import run_agent

MODEL, TOOL = ResourceType.CHAT_MODEL, ResourceType.TOOL

asked: list[Any] = []
crashes: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    asked.clear()
    crashes.clear()


class Service(BaseChatModelConnection):
    async def chat(self, messages: Any, tools: Any = None, idempotency_key: str = "", **kwargs: Any) -> Any:
        asked.append((messages[-1].content, kwargs, idempotency_key))
        await asyncio.sleep(0)
        if messages[-1].content == "busy" and len(asked) == 1:
            raise TooMany
        return ChatMessage(
            role=MessageRole.ASSISTANT,
            content=f"re: {messages[-1].content}",
            extra_args={"usage": {"prompt_tokens": 3, "completion_tokens": 4}},
        )


def add(a: int, b: int) -> int:
    """The sum."""
    asked.append(("add", a, b))
    return a + b


def crash_once(where: str) -> None:
    if where not in crashes:
        crashes.append(where)
        raise RuntimeError(f"a crash {where}")


def agent(act: Any, **settings: Any) -> Agent:
    return (
        Agent("asker")
        .add_action("act", [InputEvent], act)
        .add_resource(
            "service", ResourceType.CHAT_MODEL_CONNECTION, ResourceDescriptor(clazz=Service, max_concurrent=3)
        )
        .add_resource(
            "gpt", MODEL, ResourceDescriptor(clazz=BaseChatModelSetup, connection="service", **settings)
        )
        .add_resource("add", TOOL, add)
    )


def run(act: Any, folder: Path, inputs: list[Any], mismatch: Any = None, **settings: Any) -> list[Any]:
    env = AgentsExecutionEnvironment.get_execution_environment(
        engine="local", checkpoint_dir=folder, parallelism=1
    )
    if mismatch is not None:
        env.get_config().set(AgentExecutionOptions.ON_REPLAY_MISMATCH, mismatch)
    outputs = env.from_list([{"key": "k", "value": item} for item in inputs]).apply(agent(act, **settings))
    found = outputs.to_list()
    env.execute()
    return [item["k"] for item in found]


async def asks_and_adds(event: InputEvent, ctx: RunnerContext) -> None:
    model = ctx.get_resource("gpt", MODEL)
    first = await model.chat("one")
    total = await ctx.get_resource("add", TOOL).call({"a": 1, "b": 2})
    both = await asyncio.gather(ctx.chat("gpt", "two"), ctx.call_tool("add", a=3, b=4))
    crash_once("after all")
    ctx.send_event(OutputEvent([first.content, total, both[0].content, both[1]]))


def test_calls_of_models_and_tools_are_answered_from_the_log(tmp_path: Path) -> None:
    with pytest.raises(ActionFailed, match="a crash after all"):
        run(asks_and_adds, tmp_path, [0])
    before = [item[0] for item in asked]

    assert run(asks_and_adds, tmp_path, [0]) == [["re: one", 3, "re: two", 7]]
    assert before == ["one", "add", "two", "add"]
    assert [item[0] for item in asked] == before, "nothing is paid twice"


def test_they_are_numbered_with_the_other_calls_in_the_order_of_the_code(tmp_path: Path) -> None:
    keys: list[str] = []

    async def other(*, idempotency_key: str) -> None:
        keys.append(idempotency_key)

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        await ctx.durable_execute_async(other)
        later, sooner = ctx.chat("gpt", "b"), ctx.durable_execute_async(other)
        await sooner
        await later
        ctx.send_event(OutputEvent("done"))

    run(act, tmp_path, [0])
    keys.append(asked[0][2])
    assert sorted(int(key.rpartition("/")[2]) for key in keys) == [1, 2, 3]
    assert keys[-1].endswith("/2"), "numbered where it is written, not where it is awaited"


@pytest.mark.parametrize("form", ["by hand", "inside a function"])
def test_a_model_given_to_a_durable_call_is_recorded_once(form: str, tmp_path: Path) -> None:
    async def ask(model: Any, text: str) -> str:
        return (await model.chat(text)).content

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        model = ctx.get_resource("gpt", MODEL)
        if form == "by hand":
            said = (await ctx.durable_execute_async(model.chat, [ChatMessage(content="one")])).content
        else:
            said = await ctx.durable_execute_async(ask, model, "one")
        again = await ctx.durable_execute_async(add, 1, 2)
        crash_once("at the end")
        ctx.send_event(OutputEvent([said, again]))

    with pytest.raises(ActionFailed):
        run(act, tmp_path, [0])
    assert run(act, tmp_path, [0]) == [["re: one", 3]]
    assert len(asked) == 2


def test_a_mismatch_names_the_resource_and_shows_both_sides(tmp_path: Path) -> None:
    questions = ["one", "another"]

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        await ctx.chat("gpt", questions.pop(0))
        crash_once("after the answer")

    with pytest.raises(ActionFailed):
        run(act, tmp_path, [0], temperature=0.5)
    with pytest.raises(ReplayMismatch) as caught:
        run(act, tmp_path, [0], temperature=0.5)
    assert (
        "durable call 1 of the action was chat model 'gpt'('one', None, temperature=0.5) when it was recorded, "
        "and is chat model 'gpt'('another', None, temperature=0.5) now"
    ) in str(caught.value)


def test_other_settings_are_another_call(tmp_path: Path) -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        await ctx.chat("gpt", "one")
        crash_once("after the answer")

    with pytest.raises(ActionFailed):
        run(act, tmp_path, [0], model="small")
    with pytest.raises(ReplayMismatch, match="model='large'"):
        run(act, tmp_path, [0], model="large")
    run(act, tmp_path, [0], ReplayMismatchHandling.RESTART, model="large")
    assert [item[1]["model"] for item in asked] == ["small", "large"]


def test_it_works_without_a_log() -> None:
    crashes.append("after all")
    assert run_agent(agent(asks_and_adds), [0]).outputs == [["re: one", 3, "re: two", 7]]


def test_durable_can_be_turned_off(tmp_path: Path) -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        await ctx.get_resource("gpt", MODEL, durable=False).chat("one")
        await ctx.chat("gpt", "two")
        crash_once("after both")
        ctx.send_event(OutputEvent(1))

    with pytest.raises(ActionFailed):
        run(act, tmp_path, [0])
    run(act, tmp_path, [0])
    assert [item[0] for item in asked] == ["one", "two", "one"]
    assert asked[1][2].endswith("/1"), "what is not recorded has no number"


def test_a_view_equals_the_resource_except_for_its_calls() -> None:
    seen: list[Any] = []

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        model, tool = ctx.get_resource("gpt", "chat_model"), ctx.get_resource("add", "tool")
        connection = ctx.get_resource("service", ResourceType.CHAT_MODEL_CONNECTION)
        seen.extend(
            [
                isinstance(model, BaseChatModelSetup),
                isinstance(tool, Tool) and isinstance(tool, FunctionTool),
                isinstance(connection, BaseChatModelConnection),
                model.model == "m",
                tool.name == "add" and "a" in tool.metadata.args_schema["properties"],
                tool(2, 3) == 5,  # pyright: ignore[reportCallIssue]
                model == ctx.get_resource("gpt", MODEL) and hash(model) is not None,
                repr(tool) == "FunctionTool('add')",
                isinstance(pickle.loads(pickle.dumps(tool)), FunctionTool),
            ]
        )

    run_agent(agent(act, model="m"), [0])
    assert seen == [True] * 9


def test_prompt_arguments_and_messages_pass_through() -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        said = await ctx.chat("gpt", [ChatMessage(content="hi")], prompt_args={"who": "Ann"}, top_p=1)
        assert said.usage is not None
        ctx.send_event(OutputEvent((said.content, said.usage.total_tokens)))

    found = run_agent(agent(act, prompt=Prompt.from_text("for {who}")), [0]).outputs
    assert found == [("re: hi", 7)]
    assert asked[0][1] == {"top_p": 1}


def test_a_model_without_coroutines_is_durable_too(tmp_path: Path) -> None:
    class Plain:
        def chat(self, text: str) -> str:
            asked.append(text)
            return text.upper()

    def act(event: InputEvent, ctx: RunnerContext) -> None:
        said = ctx.get_resource("plain", MODEL).chat("x")
        crash_once("after it")
        ctx.send_event(OutputEvent(said))

    def again() -> list[Any]:
        env = AgentsExecutionEnvironment.get_execution_environment(engine="local", checkpoint_dir=tmp_path)
        plain = agent(act).add_resource("plain", MODEL, Plain())
        found = env.from_list([{"key": "k", "value": 0}]).apply(plain).to_list()
        env.execute()
        return found

    with pytest.raises(ActionFailed):
        again()
    assert again() == [{"k": "X"}]
    assert asked == ["x"]


async def asks_twice(event: InputEvent, ctx: RunnerContext) -> None:
    await ctx.chat("gpt", "one")
    await ctx.chat("gpt", "two")
    crash_once("after both")
    ctx.send_event(OutputEvent(ctx.budget_left("tokens")))


def test_tokens_of_answers_count_against_budgets() -> None:
    crashes.append("after both")
    with pytest.raises(BudgetExceeded, match="14 tokens"):
        run_agent(agent(asks_twice).add_budget(Budget(tokens=13)), [0])
    assert run_agent(agent(asks_twice).add_budget(Budget(tokens=15)), [0]).outputs == [1]


def test_a_model_is_not_called_when_the_budget_is_used_up() -> None:
    crashes.append("after both")
    with pytest.raises(BudgetExceeded):
        run_agent(agent(asks_twice).add_budget(Budget(tokens=7)), [0])
    assert len(asked) == 1


def test_an_answer_from_the_log_is_spent_once(tmp_path: Path) -> None:
    def again() -> list[Any]:
        env = AgentsExecutionEnvironment.get_execution_environment(engine="local", checkpoint_dir=tmp_path)
        limited = agent(asks_twice).add_budget(Budget(tokens=15, per="key"))
        found = env.from_list([{"key": "k", "value": 0}]).apply(limited).to_list()
        env.execute()
        return found

    with pytest.raises(ActionFailed, match="a crash after both"):
        again()
    assert again() == [{"k": 1}]
    assert len(asked) == 2


def test_an_unknown_model_is_named() -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        await ctx.chat("gtp", "one")

    with pytest.raises(Exception, match="did you mean 'gpt'"):
        run_agent(agent(act), [0])


class TooMany(Exception):
    status_code = 429
    retry_after = 0.01


def test_a_429_is_not_recorded_as_the_answer(tmp_path: Path) -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        said = await ctx.chat("gpt", "busy")
        crash_once("after the answer")
        ctx.send_event(OutputEvent(said.content))

    with pytest.raises(ActionFailed, match="a crash after the answer"):
        run(act, tmp_path, [0])
    assert run(act, tmp_path, [0]) == ["re: busy"]
    assert [item[0] for item in asked] == ["busy", "busy"], (
        "rejected once, answered once, and then from the log"
    )
    assert len({item[2] for item in asked}) == 1, "the service sees that it is the same call"


class Turn:
    def __await__(self) -> Generator[None]:
        yield


def test_a_dropped_call_is_closed_in_any_context() -> None:
    async def waits() -> None:
        with inside_a_call():
            await Turn()

    call = waits()
    contextvars.copy_context().run(call.send, None)
    call.close()
