"""What can go wrong inside an agent, each with the message that explains it."""

from __future__ import annotations

import asyncio
import functools
import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentConfigOptions,
    AgentExecutionOptions,
    AgentsExecutionEnvironment,
    ConditionEvaluationFailureStrategy,
    ErrorHandling,
    Event,
    InputEvent,
    OutputEvent,
    Resource,
    ResourceDescriptor,
    ResourceType,
    RunnerContext,
    Secret,
)
from emberflow.errors import (
    ActionFailed,
    EmberflowError,
    InvalidArgument,
    MemoryTooLarge,
    NotSerializable,
    NotSupported,
    ResourceFailed,
    StepLimitReached,
    UnknownResource,
)
from emberflow.testing import run_agent

SKIP = {AgentExecutionOptions.ON_ERROR: ErrorHandling.SKIP}


def agent_of(function: Any) -> Agent:
    return Agent("shop").add_action("act", [InputEvent], function)


def failure(agent: Agent, kind: type[EmberflowError], options: dict[Any, Any] | None = None) -> str:
    """The message of the error; every such input can be skipped as well."""
    with pytest.raises(kind) as caught:
        run_agent(agent, [{"key": "ann", "value": 1}], options=options)
    assert type(caught.value) is kind
    assert run_agent(agent, [{"key": "ann", "value": 1}], options={**(options or {}), **SKIP}).outputs == []
    text = str(caught.value)
    assert text.count("agent 'shop'") >= 1
    return text


def sends(make: Any) -> Agent:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(make())

    return agent_of(act)


def test_an_event_that_cannot_be_serialised() -> None:
    text = failure(sends(lambda: OutputEvent(number for number in [1])), NotSerializable)
    assert "agent 'shop', action 'act', key 'ann', event InputEvent(input=1): the event OutputEvent(" in text
    assert "cannot be serialized" in text
    assert "cannot pickle 'generator' object" in text
    assert "send data, not locks, connections, files or generators" in text


@pytest.mark.parametrize(
    "use",
    [
        lambda ctx, call: ctx.send_event(OutputEvent(call)),
        lambda ctx, call: ctx.send_event(Event("asked", {"answer": call})),
        lambda ctx, call: ctx.short_term_memory.set("answer", call),
    ],
)
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_a_call_that_is_sent_or_stored_instead_of_its_answer(use: Any) -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        use(ctx, ctx.durable_execute_async(str, 1))

    text = failure(agent_of(act), NotSerializable)
    assert "cannot pickle 'coroutine' object" in text
    assert "what to do: await the call" in text
    gc.collect()


def test_an_event_that_is_too_large() -> None:
    text = failure(sends(lambda: Event("big", {"data": b"x" * 10_000_000})), NotSerializable)
    assert "the event 'big' has 10,000," in text
    assert "keep large data in a file or store and send its address" in text
    allowed = {AgentExecutionOptions.MAX_EVENT_BYTES: 11_000_000}
    assert run_agent(sends(lambda: OutputEvent("x" * 10_000_000)), [1], options=allowed).outputs


def test_memory_that_grows_too_large() -> None:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        for _ in range(100):
            ctx.short_term_memory.append("log", "x" * 100)

    text = failure(agent_of(act), MemoryTooLarge, {AgentExecutionOptions.MAX_MEMORY_BYTES: 1_000})
    assert "short-term memory would grow to 1,003 bytes by writing 'log'; the limit is 1,000" in text
    assert "raise the option 'memory.max-bytes'" in text


def test_a_value_that_memory_cannot_store() -> None:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.sensory_memory.set("file", (number for number in [1]))

    text = failure(agent_of(act), NotSerializable)
    assert "sensory memory: the value for 'file' cannot be stored: <generator object" in text
    assert "store data, not locks, connections, files or generators" in text


def test_a_plain_action_that_raises() -> None:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        raise KeyError("price")

    text = failure(agent_of(act), ActionFailed)
    assert "agent 'shop', action 'act', key 'ann', event InputEvent(input=1): the action raised" in text
    assert "cause: KeyError: 'price'" in text
    assert "fix the action; one bad input need not stop the job" in text
    assert "what was processed since the last checkpoint is not committed" in text


def test_an_async_action_that_raises() -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        await asyncio.sleep(0)
        raise TimeoutError("the model did not answer")

    assert "cause: TimeoutError: the model did not answer" in failure(agent_of(act), ActionFailed)


@pytest.mark.parametrize("waits", [False, True])
def test_a_cancelled_call_is_a_failure_like_any_other(waits: bool) -> None:
    async def waiting(event: InputEvent, ctx: RunnerContext) -> None:
        raise asyncio.CancelledError("by the client library")

    def plain(event: InputEvent, ctx: RunnerContext) -> None:
        raise asyncio.CancelledError("by the client library")

    text = failure(agent_of(waiting if waits else plain), ActionFailed)
    assert "cause: CancelledError: by the client library" in text


def test_actions_that_trigger_each_other_forever() -> None:
    agent = (
        Agent("shop")
        .add_action("ping", [InputEvent, "pong"], lambda event, ctx: ctx.send_event(Event("ping")))
        .add_action("pong", ["ping"], lambda event, ctx: ctx.send_event(Event("pong")))
    )
    text = failure(agent, StepLimitReached, {AgentExecutionOptions.MAX_STEPS: 10})
    assert "one input triggered more than 10 actions" in text
    assert "actions that trigger each other in a cycle never end by themselves" in text
    assert "raise the option 'max-steps'" in text


def test_the_step_limit_counts_calls_as_well() -> None:
    async def again(event: Event, ctx: RunnerContext) -> None:
        ctx.send_event(Event("again"))

    agent = Agent("shop").add_action("again", [InputEvent, "again"], again)
    assert "more than 7 actions" in failure(agent, StepLimitReached, {AgentExecutionOptions.MAX_STEPS: 7})


def test_exactly_the_allowed_number_of_steps() -> None:
    def count(event: Event, ctx: RunnerContext) -> None:
        left = event.get_attr("left") if event.type == "count" else 9
        ctx.send_event(Event("count", {"left": left - 1}) if left else OutputEvent("done"))

    agent = Agent("shop").add_action("count", [InputEvent, "count"], count)
    assert run_agent(agent, [0, 0], options={AgentExecutionOptions.MAX_STEPS: 10}).outputs == ["done"] * 2


def test_an_event_sent_after_the_action_has_ended() -> None:
    kept: list[RunnerContext] = []

    def act(event: InputEvent, ctx: RunnerContext) -> None:
        kept.append(ctx)
        kept[0].send_event(OutputEvent(1))

    with pytest.raises(InvalidArgument) as caught:
        run_agent(agent_of(act), [1, 2])
    text = str(caught.value)
    assert "action 'act' sends an event after it has ended" in text
    assert "await everything the action starts before it returns" in text


def test_something_that_is_not_an_event() -> None:
    text = failure(sends(lambda: {"output": 1}), InvalidArgument)
    assert "{'output': 1} is not an event" in text
    assert "pass an Event to send_event(), e.g. OutputEvent(output)" in text


def test_a_coroutine_that_is_not_awaited() -> None:
    async def later(event: InputEvent, ctx: RunnerContext) -> None:
        raise AssertionError

    text = failure(agent_of(lambda event, ctx: later(event, ctx)), InvalidArgument)
    assert "the action returned a coroutine that is never awaited" in text
    assert "async def act(event, ctx)" in text


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_a_call_that_is_not_awaited() -> None:
    def double(a: int) -> int:
        "Doubles."
        return 2 * a

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        answer = ctx.get_resource("double", ResourceType.TOOL).call(a=1)
        ctx.send_event(OutputEvent(answer.content if event.input == "read" else answer + 1))

    agent = agent_of(act).add_resource("double", ResourceType.TOOL, double)
    for given in ("read", "added"):
        with pytest.raises(ActionFailed) as failed:
            run_agent(agent, [given])
        assert "await the call, such as `await model.chat(…)`" in failed.value.way_out
        del failed
        # The coroutine is in the traceback; Python warns about it when it is gone.
        gc.collect()


def test_a_call_that_is_awaited_although_it_blocks() -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        await ctx.durable_execute(len, "x")  # pyright: ignore[reportGeneralTypeIssues]

    assert "call it without `await`" in failure(agent_of(act), ActionFailed)


def test_a_coroutine_function_in_a_plain_durable_call() -> None:
    async def fetch(url: str) -> str:
        return url

    def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.durable_execute(fetch, "x")  # pyright: ignore[reportUnusedCoroutine]

    text = failure(agent_of(act), InvalidArgument)
    assert "action 'act': fetch is a coroutine function" in text
    assert "await ctx.durable_execute_async(…)" in text


def test_a_partial_of_a_coroutine_function_in_a_plain_durable_call() -> None:
    async def fetch(url: str) -> str:
        return url

    def partly(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.durable_execute(functools.partial(fetch, "x"))  # pyright: ignore[reportUnusedCoroutine]

    assert "fetch is a coroutine function" in failure(agent_of(partly), InvalidArgument)


def test_an_attribute_that_the_event_class_needs() -> None:
    class Priced(Event):
        price: int

    def take(event: Priced, ctx: RunnerContext) -> None:
        raise AssertionError

    take.__annotations__["event"] = Priced
    agent = sends(lambda: Event("Priced", {"cost": 1})).add_action("take", [Priced], take)
    text = failure(agent, InvalidArgument)
    assert "action 'take'" in text
    assert "an event of type 'Priced' has no attribute 'price', which Priced needs" in text


def test_a_condition_on_the_input_that_fails() -> None:
    def picky(event: Event) -> bool:
        return event.attributes["amount"] > 5

    options = {
        AgentConfigOptions.CONDITION_EVALUATION_FAILURE_STRATEGY: ConditionEvaluationFailureStrategy.FAIL
    }
    agent = Agent("shop").add_action("act", [picky], lambda event, ctx: None)
    text = failure(agent, ActionFailed, options)
    assert "key 'ann', event InputEvent(input=1): its triggers could not be evaluated" in text
    assert "picky()' of action 'act' failed: KeyError: 'amount'" in text


def test_long_term_memory_is_not_supported_yet() -> None:
    text = failure(agent_of(lambda event, ctx: ctx.long_term_memory), NotSupported)
    assert "long-term memory needs a vector store" in text


# Resources that are not available.


class Model(Resource):
    def __init__(self, api_key: str = "", broken: bool = False) -> None:
        if broken:
            raise ConnectionError("nobody answers")


class Needs(Resource):
    def __init__(self, other: str) -> None:
        self._other = other

    def open(self) -> None:
        self.resource_context.get_resource(self._other, ResourceType.CHAT_MODEL)


def asks_for(name: str, **resources: ResourceDescriptor) -> Agent:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.get_resource(name, ResourceType.CHAT_MODEL)

    agent = agent_of(act)
    for known, descriptor in resources.items():
        agent.add_resource(known, ResourceType.CHAT_MODEL, descriptor)
    return agent


def test_an_unknown_resource_with_a_suggestion() -> None:
    text = failure(asks_for("modell", model=ResourceDescriptor(clazz=Model)), UnknownResource)
    assert "agent 'shop' has no chat_model named 'modell'; did you mean 'model'?" in text
    assert "its chat_model resources: 'model'" in text
    assert "add_resource('modell', ResourceType.CHAT_MODEL, …)" in text


def test_a_resource_of_another_type() -> None:
    agent = asks_for("model").add_resource("model", ResourceType.PROMPT, "text")
    assert "there is a prompt of that name" in failure(agent, UnknownResource)


def test_resources_that_need_each_other() -> None:
    text = failure(
        asks_for(
            "first",
            first=ResourceDescriptor(clazz=Needs, other="second"),
            second=ResourceDescriptor(clazz=Needs, other="first"),
        ),
        ResourceFailed,
    )
    assert (
        "resources depend on each other in a cycle: chat_model 'first' -> chat_model 'second' -> chat_model 'first'"
        in text
    )


def test_a_resource_that_cannot_be_created() -> None:
    text = failure(asks_for("model", model=ResourceDescriptor(clazz=Model, broken=True)), ResourceFailed)
    assert "the chat_model 'model' could not be created" in text
    assert "cause: ConnectionError: nobody answers" in text
    assert "check the arguments of its descriptor" in text


def test_a_resource_class_that_does_not_exist() -> None:
    text = failure(asks_for("model", model=ResourceDescriptor(clazz="no.such.Model")), ResourceFailed)
    assert "the resource class no.such.Model cannot be imported" in text


def test_a_secret_that_does_not_exist() -> None:
    descriptor = ResourceDescriptor(clazz=Model, api_key=Secret("NO_SUCH_KEY_ANYWHERE"))
    text = failure(asks_for("model", model=descriptor), ResourceFailed)
    assert "the environment variable 'NO_SUCH_KEY_ANYWHERE', which contains a secret, is not set" in text


def test_an_event_that_is_returned_instead_of_sent() -> None:
    def plain(event: InputEvent, ctx: RunnerContext) -> Any:
        return OutputEvent(1)

    async def waiting(event: InputEvent, ctx: RunnerContext) -> Any:
        return OutputEvent(1)

    for function in (plain, waiting):
        text = failure(agent_of(function), InvalidArgument)
        assert "the action returned OutputEvent(output=1) instead of sending it" in text
        assert "ctx.send_event(event)" in text


def test_other_results_are_ignored() -> None:
    agent = Agent("shop").add_action(
        "act", [InputEvent], lambda event, ctx: ctx.short_term_memory.set("a", 1)
    )
    assert run_agent(agent, [1]).outputs == []


def test_a_skipped_input_is_logged_without_advice_to_skip_it(caplog: pytest.LogCaptureFixture) -> None:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        raise ValueError("no")

    run_agent(agent_of(act), [1], options=SKIP)
    assert "the input is skipped: ActionFailed" in caplog.text
    assert "ValueError: no" in caplog.text
    assert "ON_ERROR" not in caplog.text


class Panic(BaseException):
    """As raised by extensions in Rust (`pyo3_runtime.PanicException`)."""


def _waits(raised: BaseException) -> Agent:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        await asyncio.sleep(0)
        raise raised

    return agent_of(act)


def _calls(raised: BaseException) -> Agent:
    def call() -> None:
        raise raised

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        await ctx.durable_execute_async(call)

    return agent_of(act)


def _runs_through(raised: BaseException) -> Agent:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        raise raised

    return agent_of(act)


@pytest.mark.parametrize("act", [_waits, _calls, _runs_through])
@pytest.mark.parametrize(
    "raised", [SystemExit(3), Panic("out of range"), BaseExceptionGroup("two", [Panic()])]
)
def test_an_action_that_raises_a_base_exception_fails_like_any_other(
    act: Callable[[BaseException], Agent], raised: BaseException
) -> None:
    text = failure(act(raised), ActionFailed)
    assert f"{type(raised).__name__}: {raised}" in text


@pytest.mark.parametrize("act", [_waits, _calls])
def test_a_call_that_closes_itself_is_a_failure(act: Callable[[BaseException], Agent]) -> None:
    assert "GeneratorExit" in failure(act(GeneratorExit()), ActionFailed)


def test_actions_that_yield_or_return_lists_of_events() -> None:
    def yields(event: InputEvent, ctx: RunnerContext) -> Any:
        yield OutputEvent(1)

    async def yields_later(event: InputEvent, ctx: RunnerContext) -> Any:
        yield OutputEvent(1)

    for function in (yields, yields_later):
        assert "the action yields instead of sending" in failure(agent_of(function), InvalidArgument)
    listed = agent_of(lambda event, ctx: [OutputEvent(1)])
    assert "the action returned [OutputEvent(output=1)]" in failure(listed, InvalidArgument)


def test_an_error_that_cannot_be_shown() -> None:
    class Bad(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    def act(event: InputEvent, ctx: RunnerContext) -> None:
        raise Bad

    assert "Bad: <str() raised RuntimeError>" in failure(agent_of(act), ActionFailed)


def test_a_blocking_function_that_raises_stop_iteration() -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        await ctx.durable_execute_async(next, iter(()))

    assert "the function raised StopIteration" in failure(agent_of(act), ActionFailed)


def test_an_action_that_cancels_itself() -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0.01)

    assert "CancelledError" in failure(agent_of(act), ActionFailed)


def test_tasks_left_running_by_a_failed_action_cannot_write() -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        async def late() -> None:
            await asyncio.sleep(0.05)
            ctx.short_term_memory.set("late", 1)

        async def fails() -> None:
            raise ValueError("no")

        if event.input == 1:
            await asyncio.gather(late(), fails())
        await asyncio.sleep(0.1)
        ctx.send_event(OutputEvent(ctx.short_term_memory.to_dict()))

    assert run_agent(agent_of(act), [1, 2, 3], options=SKIP).outputs == [{}, {}]


def test_a_key_that_is_not_equal_to_itself() -> None:
    agent = agent_of(lambda event, ctx: ctx.send_event(OutputEvent(event.input)))
    inputs = [{"key": float("nan"), "value": 1}, {"key": 2, "value": 2}]
    with pytest.raises(InvalidArgument, match="the key nan has no identity that survives a restart"):
        run_agent(agent, inputs)
    assert run_agent(agent, inputs, options=SKIP).outputs == [2]


def test_an_output_event_without_an_output() -> None:
    text = failure(sends(lambda: Event(type="_output_event", attributes={})), InvalidArgument)
    assert "the output event has no output" in text


def test_secrets_are_masked_in_errors_of_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACTION_SECRET", "sk-hidden")

    class Client(Resource):
        def __init__(self, api_key: str) -> None:
            self.api_key = api_key

    def act(event: InputEvent, ctx: RunnerContext) -> None:
        raise ValueError(f"401 for {ctx.get_resource('c', ResourceType.VECTOR_STORE).api_key}")

    agent = agent_of(act)
    agent.add_resource(
        "c", ResourceType.VECTOR_STORE, ResourceDescriptor(Client, api_key=Secret("ACTION_SECRET"))
    )
    assert "ValueError: 401 for ***" in failure(agent, ActionFailed)


def test_agents_of_one_job_have_separate_threads() -> None:
    """A small pool of one agent must not become the pool of another."""
    both = threading.Barrier(2, timeout=300)

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(await ctx.durable_execute_async(both.wait)))

    env = AgentsExecutionEnvironment.get_execution_environment(engine="local", parallelism=1)
    inputs = [{"key": key, "value": key} for key in ("a", "b")]
    env.get_config().set(AgentExecutionOptions.NUM_ASYNC_THREADS, 1)
    first = env.from_list([]).apply(agent_of(act)).to_list()
    env.get_config().set(AgentExecutionOptions.NUM_ASYNC_THREADS, 2)
    second = env.from_list(inputs).apply(agent_of(act)).to_list()
    env.execute("pools")
    assert first == []
    assert len(second) == 2


def test_settings_are_checked_when_the_agent_is_applied() -> None:
    env = AgentsExecutionEnvironment.get_execution_environment(engine="local")
    env.get_config().set_str("max-steps", "many")
    with pytest.raises(InvalidArgument, match="the option 'max-steps' cannot be 'many'"):
        env.from_list([]).apply(agent_of(lambda event, ctx: None))
    env = AgentsExecutionEnvironment.get_execution_environment(engine="local")
    with pytest.raises(InvalidArgument, match="there is no option 'on-eror'; did you mean 'on-error'"):
        env.get_config().set_str("on-eror", "skip")
    env.get_config().set(AgentConfigOptions.EVENT_LISTENERS, [3])
    with pytest.raises(InvalidArgument, match="3 is not an event listener"):
        env.from_list([]).apply(agent_of(lambda event, ctx: None))
